/* connection_holding.c: a worker's budget for the bytes that it keeps for its connections: client records that wait,
 * or are kept to be asked again; the copies of them for the next process; bytes that clients have not received;
 * downloads. Above the budget, the connection that keeps most first gives up bytes that it can do without, then those
 * for the next process, and then ends. An idle connection keeps nothing, so it is never asked.
 */
#include "net/container_of.h"
#include "net/log_pace.h"
#include "ragent/connection/connection_internal.h"

static struct connection *connection_of(struct holding *h)
{
	return container_of(h, struct busy_part, holding)->connection;
}

static size_t weight(const struct connection *c)
{
	const struct busy_part *a = c->busy;
	const size_t note = a->download ? fine_block_len(sealed_blob_len(a->download)) : 0;

	return a->kept.cap + a->unused + connection_log_len(c) + note + (c->queued - c->slot.bytes_written);
}

void connection_weigh(struct connection *c)
{
	if (c->busy)
		holdings_set(&c->home->holdings, &c->busy->holding, weight(c));
}

/* Gives up bytes that are only needed if the agent is lost, and the unused part of the block. */
static void give_up_replay(struct connection *c)
{
	struct busy_part *a = c->busy;

	const int may_drop = a->download && connection_service(c)->loss != SERVICE_RESOLVES_LOSS;

	if (kept_replay_len(&a->kept) > 0 || may_drop) {
		counter_add(&c->home->counters.kept_given_up, 1);
		log_paced(LOG_INFO, &c->id, "replay given up",
			"cause=\"the connections keep too many bytes\" effect=\"no repetition after a loss\" "
			"limit=%llu remedy=limits.kept",
			(unsigned long long)c->home->holdings.limit);
	}
	kept_forget_consumed(&a->kept, &c->home->blocks);
	kept_fit(&a->kept, &c->home->blocks);
	if (may_drop)
		connection_drop_note(c);
	if (table_slot_has_all(&c->slot))
		connection_save(c);
	connection_weigh(c);
}

static void give_up_log(struct connection *c)
{
	if (connection_log_len(c) == 0)
		return;
	counter_add(&c->home->counters.logs_given_up, 1);
	log_paced(LOG_INFO, &c->id, "cannot outlive a death",
		"cause=\"too much is kept\" limit=%llu remedy=limits.kept",
		(unsigned long long)c->home->holdings.limit);
	connection_give_up_log(c);
	connection_weigh(c);
}

void connection_relieve(struct connection_home *home)
{
	struct holding *h;

	while ((h = holdings_greatest(&home->holdings)) != NULL) {
		struct connection *c = connection_of(h);
		uint32_t before = h->len;
		give_up_replay(c);
		if (h->len == before)
			give_up_log(c);
		if (h->len < before)
			continue;
		counter_add(&home->counters.kept_ended, 1);
		log_paced(LOG_WARNING, &c->id, "connection ended to free memory", "bytes=%u of=%llu limit=%llu", before,
			(unsigned long long)home->holdings.len, (unsigned long long)home->holdings.limit);
		connection_end_at_once(c, END_OVERLOADED);
		holdings_set(&home->holdings, h, 0);
	}
}
