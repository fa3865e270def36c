/* connection_client.c: what a client sent is taken by one handler for each state: its PROXY header, first records,
 * later records, bytes in clear. No read brings more than has room among the kept records, so a part of a record is all
 * that waits in the client's stream.
 */
#include <stdlib.h>

#include "net/memory/container_of.h"
#include "net/memory/prefetch.h"
#include "net/report/log.h"
#include "ragent/connection/connection_clear.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_stream.h"

#define FLUSH_MARK (32u * 1024u) /* so many bytes of a frame are written at once, from the link's own buffer */

static struct busy_part *client_busy(struct stream *s)
{
	return container_of(s, struct busy_part, client);
}

static struct connection *client_connection(struct stream *s)
{
	return client_busy(s)->connection;
}

/* --- when it is read --- */

void connection_begin_reading(struct connection *c)
{
	stream_set_read_max(&c->busy->client, (uint32_t)connection_window(c));
	stream_set_flush_mark(&c->busy->client, FLUSH_MARK);
	stream_set_fault(&c->busy->client, "client", NULL);
	if (c->now.reading == CLIENT_READING && c->now.tail != TAIL_FIN)
		stream_read_start(&c->busy->client);
}

/* A handshake that begins again may keep more than a window. */
static size_t client_room(const struct connection *c)
{
	const size_t len = kept_len(&c->busy->kept);

	return len < connection_window(c) ? connection_window(c) - len : 0;
}

static bool client_may_be_read(const struct connection *c)
{
	return !connection_client_waits(c) && client_room(c) >= TLS_RECORD_MAX;
}

/* The next read brings what has room beside the @unused bytes. A read of 0 bytes would look like the client's end. */
static void client_bound_reads(struct connection *c, size_t unused)
{
	const size_t room = client_room(c);

	stream_set_read_max(&c->busy->client, (uint32_t)(room > unused ? room - unused : TLS_RECORD_MAX));
}

void connection_resume_reading(struct connection *c)
{
	if (!client_may_be_read(c))
		return;
	client_bound_reads(c, stream_kept(&c->busy->client));
	if (c->now.reading == CLIENT_READING)
		return;
	c->now.reading = CLIENT_READING;
	stream_read_start(&c->busy->client);
}

static void client_pause_reading(struct connection *c)
{
	if (client_may_be_read(c) || c->now.reading == CLIENT_PAUSED)
		return;
	c->now.reading = CLIENT_PAUSED;
	stream_read_stop(&c->busy->client);
}

/* @unused bytes wait behind those that were kept. */
static void client_read_less(struct connection *c, size_t unused)
{
	client_bound_reads(c, unused);
	client_pause_reading(c);
}

void connection_read_less(struct connection *c)
{
	client_read_less(c, stream_kept(&c->busy->client));
}

/* Behind the client's FIN nothing is read anyway. */
static enum client_pace client_pace_now(const struct connection *c, enum client_pace pace)
{
	if (c->now.tail == TAIL_FIN)
		return CLIENT_GOES_ON;
	return pace == CLIENT_GOES_ON && connection_is_unheard(c) ? CLIENT_UNHEARD : pace;
}

void connection_set_pace(struct connection *c, enum client_pace pace)
{
	c->busy->pace = (uint8_t)client_pace_now(c, pace);
	if (connection_client_waits(c)) /* it cannot finish that record now */
		partials_note(&c->home->partials, &c->busy->partial, 0, PARTIAL_SAME_RECORD, 0);
	client_pause_reading(c);
	connection_resume_reading(c);
}

/* A rule of the fault file may name the client. */
enum fault_action connection_fault_at(const struct connection *c, const char *point)
{
	struct sockaddr_storage client;
	char text[ADDRESS_TEXT_MAX] = "";

	if (!fault_active())
		return FAULT_NONE;
	endpoint_sockaddr(&c->endpoints.client, 0, &client);
	enum fault_action action = fault_at(point, address_format((const struct sockaddr *)&client, text), NULL);
	if (action == FAULT_FAIL)
		abort();
	return action;
}

/* --- its records --- */

static void client_is_heard(struct connection *c)
{
	c->now.active_ms = connection_now_ms(c);
	if (c->busy->pace == CLIENT_UNHEARD)
		c->busy->pace = CLIENT_GOES_ON;
}

static void client_violated(struct connection *c, const struct tls_record_header *bad)
{
	counter_add(&c->home->counters.client_violations, 1);
	log_event(LOG_DEBUG, &c->id, "record violation", "type=%02x version=%04x length=%u", bad->type, bad->version,
		bad->length);
	connection_void(c);
	c->busy->bad = *bad;
	c->now.tail = TAIL_VIOLATION;
}

/* While the client has received no record, the handshake can begin again with its first record. Later, the successor
 * of a lost owner asks again from the checkpoint on. All records, with @more bytes of them that just came, must fit
 * into a window, because an agent takes no more. */
static bool client_may_replay(const struct connection *c, size_t more)
{
	const struct position *p = &c->now.position;

	if (p->stage == POSITION_HANDSHAKE)
		return p->server_records == 0;
	return p->response != POSITION_AT_CHECKPOINT && position_replays_from(p, c->busy->kept.first_record) &&
	       kept_replay_len(&c->busy->kept) <= connection_limits(c)->replay_len &&
	       kept_replay_len(&c->busy->kept) + kept_len(&c->busy->kept) + more <= connection_window(c);
}

void connection_trim_replay(struct connection *c, size_t more)
{
	if (kept_replay_len(&c->busy->kept) > 0 && !client_may_replay(c, more))
		kept_forget_consumed(&c->busy->kept, &c->home->blocks);
}

/* Keep whole records while there is room. Returns the bytes used; all of them once the client's records are over. */
static size_t client_keep_records(struct connection *c, const uint8_t *data, size_t len)
{
	size_t used = 0;

	while (used < len && c->now.tail == TAIL_NONE) {
		struct tls_record_run run;
		struct tls_record_header bad;
		int r = tls_record_scan_run(data + used, len - used, client_room(c), &run, &bad);
		connection_trim_replay(c, run.len);
		if (run.len && kept_append(&c->busy->kept, &c->home->blocks, data + used, run.len, run.records) < 0) {
			connection_end(c, END_INTERNAL, END_RESET);
			return len;
		}
		connection_count_records(c, RECORDS_OF_CLIENT, &run);
		c->now.client_bytes += run.len;
		used += run.len;
		if (r < 0)
			client_violated(c, &bad);
		else if (run.len == 0)
			return used;
	}
	return c->now.tail == TAIL_NONE ? used : len;
}

static size_t client_take_records(struct connection *c, uint8_t *data, size_t len)
{
	size_t used = client_keep_records(c, data, len);

	if (c->now.state == CONNECTION_CLOSING)
		return len;
	client_read_less(c, len - used);
	connection_send_records(c);
	return used;
}

/* --- all of it --- */

/* Returns how many bytes it used; 0: it waits for more. What follows from the bytes, and is told to agents, is done
 * when they count as used. */
static size_t client_take_in_state(struct connection *c, uint8_t *data, size_t len)
{
	size_t n;

	switch ((enum connection_state)c->now.state) {
	case CONNECTION_PROXY: return connection_take_proxy(c, data, len);
	case CONNECTION_HELLO:
		/* with the whole hello the connection leaves this state, and takes the same bytes as records */
		n = connection_take_hello(c, data, len);
		return n || c->now.state == CONNECTION_HELLO ? n : client_take_records(c, data, len);
	case CONNECTION_PREAMBLE:
	case CONNECTION_RELAYED: return connection_clear_take(c, data, len);
	case CONNECTION_REATTACHING:
		return connection_is_in_clear(c) ? connection_clear_take(c, data, len)
						 : client_take_records(c, data, len);
	case CONNECTION_LINGERING: connection_discards(c, len); return len;
	case CONNECTION_CLOSING: return len;
	default: return client_take_records(c, data, len);
	}
}

static size_t client_take(struct connection *c, uint8_t *data, size_t len)
{
	const enum connection_state was = c->now.state;
	const size_t used = client_take_in_state(c, data, len);

	if (c->slot.bytes_read != SLOT_BYTES_UNKNOWN)
		c->slot.bytes_read += used;
	if (used && was == CONNECTION_OWNED)
		storm_sends(&c->home->storm, c->now.accepted_ms, connection_now_ms(c));
	if (used && was == CONNECTION_PROXY && c->now.state == was)
		connection_header_is_over(c);
	/* if it has tried to find an owner, the next attempt has its deadline already */
	if (used && was == CONNECTION_RESTING && c->now.state == was && c->now.attempts == 0 &&
		connection_needs_owner(c))
		connection_wake(c, NO_AGENT);
	return used;
}

/* If reading is paused, the client is not at fault for the bytes that wait. They are read after the pause. */
static void client_note_partial(struct connection *c, size_t left, size_t used)
{
	if (c->now.reading == CLIENT_PAUSED || connection_is_over(c))
		left = 0;
	if (left == 0 && !c->busy->partial.len)
		return;
	partials_note(&c->home->partials, &c->busy->partial, left, used ? PARTIAL_NEW_RECORD : PARTIAL_SAME_RECORD,
		connection_now_ms(c));
	if (c->home->partials.len > c->home->partials.budget)
		connection_end_partials(c->home);
}

void connection_end_partials(struct connection_home *home)
{
	struct partial *p;

	while ((p = partials_victim(&home->partials, worker_now_ms(home->worker))) != NULL) {
		struct busy_part *a = container_of(p, struct busy_part, partial);
		connection_end(a->connection, END_OVERLOADED, END_RESET);
	}
}

static size_t client_on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct connection *c = client_connection(s);
	struct connection_home *home = c->home;
	size_t used = 0, n;

	connection_fault_at(c, "records.read");
	connection_log_input(c, data, len);
	/* before the header of a balancer, the client is unknown */
	if (c->now.state != CONNECTION_PROXY)
		connection_work_on_bytes_begins(c);
	connection_fault_at(c, "records.came");
	client_is_heard(c);
	do {
		n = client_take(c, data + used, len - used);
		used += n;
	} while (n && used < len);
	connection_save_amid_input(c, data + used, len - used);
	client_note_partial(c, len - used, used);
	c->busy->unused = (uint32_t)(len - used);
	connection_weigh(c);
	connection_relieve(c->home);
	connection_work_ends(home);
	return used;
}

/* --- its end, and what it took --- */

/* Nobody else has to hear that its client goes. */
static bool client_may_go(const struct connection *c)
{
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_PREAMBLE:
	case CONNECTION_RELAYED: return c->busy->preamble->now.said == PREAMBLE_NOTHING;
	case CONNECTION_RESTING: return !connection_needs_owner(c);
	default: return c->now.state <= CONNECTION_WAITING;
	}
}

static void client_on_fin(struct connection *c)
{
	if (c->now.tail == TAIL_NONE)
		c->now.tail = TAIL_FIN;
	if (client_may_go(c))
		connection_end(c, END_CLIENT_CLOSED, END_ORDERLY);
	else if (c->now.state == CONNECTION_LINGERING)
		connection_linger(c);
	else if (c->now.state == CONNECTION_OWNED)
		connection_say_later(c, LATER_FIN);
	else
		connection_send_records(c);
}

static void client_on_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct connection *c = client_connection(s);

	if (c->now.state == CONNECTION_CLOSING)
		return;
	if (end == STREAM_EOF)
		client_on_fin(c);
	else
		connection_end_if_broken(c);
}

static void client_on_written(struct stream *s, size_t len)
{
	struct connection *c = client_connection(s);

	c->slot.bytes_written += len;
	counter_add(&c->home->counters.client_queued_bytes, -(uint64_t)len);
	if (c->now.state == CONNECTION_LINGERING)
		connection_linger(c);
	else if (c->now.state == CONNECTION_RESTING)
		connection_may_compact(c);
	else
		connection_acknowledge(c, ACCEPTED_IF_DRAINED);
	connection_weigh(c);
	connection_save_if_changed(c);
}

static void client_on_closed(struct stream *s)
{
	struct busy_part *a = client_busy(s);

	if (a->connection)
		connection_free(a->connection);
	else
		slabs_give(&a->home->busy_parts, a);
}

static void client_foresee(const struct stream *s)
{
	const struct busy_part *a = container_of(s, const struct busy_part, client);

	prefetch(a->connection, sizeof *a->connection);
	if (a->connection)
		connection_foresee_frame(a->connection, FRAMED_NEXT);
}

const struct stream_ops connection_client_ops = {
	.on_data = client_on_data,
	.foresee = client_foresee,
	.on_end = client_on_end,
	.on_written = client_on_written,
	.on_closed = client_on_closed,
};
