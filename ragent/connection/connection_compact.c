/* connection_compact.c: the memory of a connection. A silent one, resting or owned, gives its busy part back to the
 * worker. It can do so when nothing is left over: no records, no bytes for the client, no caller that waits for it. Its
 * descriptor goes into the worker's dormant set. As soon as input comes, or bytes for the client, it gets a new busy
 * part.
 *
 * A connection becomes compact at the end of the turn, so that a callback that uses it is not disturbed.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/container_of.h"
#include "proto/error.h"
#include "ragent/connection/connection_internal.h"

struct kept connection_kept(const struct connection *c)
{
	const uint64_t records = c->now.position.now.client_records;

	if (c->busy)
		return c->busy->kept;
	return (struct kept){ .first_record = records, .consumed_record = records, .next_record = records };
}

static bool is_in_order(const struct connection *c)
{
	if (c->now.tail != TAIL_NONE || c->now.server_side != SERVER_OPEN || c->now.reading != CLIENT_READING)
		return false;
	return c->now.state == CONNECTION_OWNED || (c->now.state == CONNECTION_RESTING && !connection_needs_owner(c));
}

static bool is_exposed(const struct exposure *e, const struct position *p)
{
	return e->losses || e->silent || e->records > p->checkpoint.client_records;
}

bool connection_leaves_nothing_over(const struct connection *c)
{
	const struct busy_part *a = c->busy;

	if (!is_in_order(c))
		return false;
	if (!a)
		return true;
	if (is_exposed(&a->exposure, &c->now.position))
		return false;
	if (a->frozen.link || a->order || a->download || a->partial.len || a->waiter.prev || a->pause_began_ms ||
		a->move_answer != MOVE_ANSWER_NOT_DUE || a->again.next)
		return false;
	if (c->now.queued != c->slot.bytes_written) /* also what the stream wrote in this turn, and has not told yet */
		return false;
	return !a->kept.data && a->kept.next_record == c->now.position.now.client_records &&
	       a->client.state == STREAM_OPEN && !stream_kept(&a->client);
}

static void make_compact(struct connection *c)
{
	struct busy_part *a = c->busy;
	connection_release_held(c, 1);
	int fd = stream_dup_fd(&a->client);

	if (fd >= 0 && dormant_add(c->home->dormant, fd, c) < 0) {
		close(fd);
		fd = -1;
	}
	if (fd < 0) { /* on failure it keeps its busy part */
		stream_read_start(&a->client);
		return;
	}
	c->slot.fd = fd;
	holdings_set(&c->home->holdings, &a->holding, 0);
	c->busy = NULL;
	a->connection = NULL;
	deadline_cancel(&a->later);
	stream_close(&a->client);
	connection_save(c);
	sealed_blob_drop(&a->download_former, &c->home->blocks); /* no image names it any more */
}

static void on_turn_end(struct turn_end *t)
{
	struct busy_part *a = container_of(t, struct busy_part, compact_due);

	if (connection_leaves_nothing_over(a->connection))
		make_compact(a->connection);
}

void connection_may_compact(struct connection *c)
{
	if (c->busy)
		worker_at_turn_end(c->home->worker, &c->busy->compact_due);
}

int connection_add_busy(struct connection *c)
{
	struct busy_part *a = slabs_take(&c->home->busy_parts);

	if (!a)
		return CSSL_E_NO_MEMORY;
	*a = (struct busy_part){ .connection = c };
	a->home = c->home;
	a->compact_due.fn = on_turn_end;
	a->later.fn = connection_on_later;
	a->waiter.fn = connection_on_waiter;
	c->busy = a;
	return 0;
}

void connection_free_busy(struct connection *c)
{
	if (!c->busy)
		return;
	turn_end_cancel(&c->busy->compact_due);
	handshake_limit_leave(c->home->handshakes, &c->busy->place);
	connection_preamble_drop(c);
	holdings_set(&c->home->holdings, &c->busy->holding, 0);
	deadline_cancel(&c->busy->later);
	slabs_give(&c->home->busy_parts, c->busy);
	c->busy = NULL;
}

int connection_expand(struct connection *c)
{
	if (c->busy)
		return 0;
	const struct kept kept = connection_kept(c);
	int r = connection_add_busy(c);
	if (r < 0)
		return r;
	int fd = c->slot.fd;
	dormant_remove(c->home->dormant, fd, c);
	c->slot.fd = -1;
	r = stream_open_fd(&c->busy->client, c->home->worker, &connection_client_ops, fd);
	if (r < 0) {
		connection_free_busy(c);
		return r;
	}
	c->busy->kept = kept;
	connection_save(c); /* from now on it changes */
	connection_begin_reading(c);
	if (c->now.state == CONNECTION_OWNED) /* so that it becomes compact again in any case */
		connection_arm_deadline(c);
	return 0;
}

int connection_expand_or_end(struct connection *c)
{
	int r = connection_expand(c);

	if (r < 0)
		connection_end(c, END_INTERNAL, END_RESET);
	return r;
}

void connection_on_input(void *holder)
{
	connection_expand_or_end(holder);
}

/* The memory is freed later, as everywhere, because the caller may still use it. */
void connection_close_compact(struct connection *c, enum connection_end_how how)
{
	const struct linger reset = { .l_onoff = 1 };

	if (c->slot.fd >= 0) {
		if (how == END_RESET)
			setsockopt(c->slot.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		dormant_remove(c->home->dormant, c->slot.fd, c);
		close(c->slot.fd);
	}
	c->slot.fd = -1;
	connection_set_deadline(c, 0);
}

/* --- the budget for bytes --- */

/* A worker's budget for the bytes that it keeps for its connections: client records that wait, or are kept to be asked
 * again; the copies of them for the next process; bytes that clients have not received; notes. Above the budget, the
 * connection that keeps most first gives up bytes that it can do without, then those for the next process, and then
 * ends. An idle connection keeps nothing, so it is never asked. */

static size_t weight(const struct connection *c)
{
	const struct busy_part *a = c->busy;
	const size_t note = a->download ? fine_block_len(sealed_blob_len(a->download)) : 0;

	return a->kept.cap + a->unused + connection_log_len(c) + note + (c->now.queued - c->slot.bytes_written);
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

	const bool may_drop = a->download && connection_service(c)->loss != SERVICE_RESOLVES_LOSS;

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
		struct connection *c = container_of(h, struct busy_part, holding)->connection;
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
