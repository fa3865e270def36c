/* connection_budget.c: a holding for each connection, the greatest first (net/holdings.h). */
#include "net/container_of.h"
#include "net/log.h"
#include "ragent/connection/connection_body.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_saved.h"

static size_t budget_weight(const struct connection *c)
{
	const struct busy_part *a = c->busy;
	const size_t note = a->note.current ? fine_block_len(sealed_blob_len(a->note.current)) : 0;

	return a->kept.cap + a->unused + connection_log_len(c) + note + (c->now.queued - c->slot.bytes_written);
}

void connection_weigh(struct connection *c)
{
	if (c->busy)
		holdings_set(&c->home->holdings, &c->busy->holding, budget_weight(c));
}

/* Gives up bytes that are only needed if the agent is lost, and the unused part of the block. */
static void budget_give_up_replay(struct connection *c)
{
	struct busy_part *a = c->busy;

	const bool may_drop = a->note.current && connection_service(c)->loss != SERVICE_RESOLVES_LOSS;

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
		note_drop(&a->note, &c->home->blocks);
	if (table_slot_has_all(&c->slot))
		connection_save(c);
	connection_weigh(c);
}

static void budget_give_up_log(struct connection *c)
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
		struct connection *c = container_of(h, struct busy_part, holding)->connection;
		uint32_t before = h->len;
		budget_give_up_replay(c);
		if (h->len == before)
			budget_give_up_log(c);
		if (h->len < before)
			continue;
		counter_add(&home->counters.kept_ended, 1);
		log_paced(LOG_WARNING, &c->id, "connection ended to free memory", "bytes=%u of=%llu limit=%llu", before,
			(unsigned long long)home->holdings.len, (unsigned long long)home->holdings.limit);
		connection_end_at_once(c, END_OVERLOADED);
		holdings_set(&home->holdings, h, 0);
	}
}
