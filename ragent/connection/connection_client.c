/* connection_client.c: the client's side of a connection: when it is read (what came is in connection_input.c), its
 * end, and what it has got; and the records that the current stream has not got yet.
 *
 * Reading stops while there is no room for what the client sends. It also stops while the owner opens no record: what
 * the client sends then waits in its kernel, and costs neither work nor memory here.
 */
#include <stdlib.h>

#include "net/container_of.h"
#include "net/mutant.h"
#include "net/prefetch.h"
#include "net/stream.h"
#include "proto/error.h"
#include "ragent/connection/connection_internal.h"

/* With records that go to the owner anyway, tell it that it need not hold so many frames any more: so few that they are
 * still in its cache when their memory is used again. */
#define RELEASE_ALONG 8u
#define LATER_MS      10u           /* one tick of the deadlines */
#define FLUSH_MARK    (32u * 1024u) /* so many bytes of a frame are written at once, from the link's own buffer */

static struct busy_part *busy_of(struct stream *s)
{
	return container_of(s, struct busy_part, client);
}

static struct connection *of_stream(struct stream *s)
{
	return busy_of(s)->connection;
}

/* --- to the owner --- */

bool connection_takes_bytes(const struct connection *c)
{
	return c->now.current.link && link_open(c->now.current.link) && c->now.state != CONNECTION_REATTACHING;
}

static void tell_tail(struct connection *c)
{
	uint8_t payload[FRAME_VIOLATION_LEN];
	struct frame_violation v = { c->busy->bad.type, c->busy->bad.version, c->busy->bad.length };

	if (c->now.tail == TAIL_NONE || c->now.tail_told == TAIL_TOLD || c->busy->fin == FIN_LATER)
		return;
	c->now.tail_told = TAIL_TOLD;
	if (c->now.tail == TAIL_FIN) {
		link_send(c->now.current.link, c->now.current.stream, FRAME_FIN, 0, NULL, 0);
		return;
	}
	frame_violation_write(payload, &v);
	link_send(c->now.current.link, c->now.current.stream, FRAME_VIOLATION, 0, payload, sizeof payload);
}

int connection_send_kept(struct connection *c, uint8_t flags)
{
	const uint8_t *data;
	size_t len;

	while ((len = kept_unsent(&c->busy->kept, FRAME_PAYLOAD_MAX, &data)) > 0) {
		if (link_full(c->now.current.link)) {
			link_wait(c->now.current.link, &c->busy->waiter);
			return -1;
		}
		if (link_send(c->now.current.link, c->now.current.stream, FRAME_DATA, flags, data, len) < 0)
			return -1;
		kept_mark_sent(&c->busy->kept, len);
	}
	return 0;
}

void connection_send_records(struct connection *c)
{
	if (connection_speaks_clear(c)) {
		connection_clear_pump(c);
		return;
	}
	if (!connection_takes_bytes(c))
		return;
	if (kept_unsent_len(&c->busy->kept) > 0)
		connection_release_held(c, RELEASE_ALONG);
	if (connection_send_kept(c, 0) == 0)
		tell_tail(c);
}

void connection_on_waiter(struct link_waiter *w)
{
	connection_send_records(container_of(w, struct busy_part, waiter)->connection);
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

bool connection_client_waits(const struct connection *c)
{
	return c->busy && c->busy->pace == CLIENT_WAITS;
}

bool connection_is_unheard(const struct connection *c)
{
	return c->busy && c->busy->pace != CLIENT_GOES_ON;
}

/* A handshake that begins again may keep more than a window. */
size_t connection_room(const struct connection *c)
{
	const size_t len = kept_len(&c->busy->kept);

	return len < connection_window(c) ? connection_window(c) - len : 0;
}

static bool may_read(const struct connection *c)
{
	return !connection_client_waits(c) && connection_room(c) >= TLS_RECORD_MAX;
}

/* The next read brings what has room beside the @unused bytes. A read of 0 bytes would look like the client's end. */
static void bound_reads(struct connection *c, size_t unused)
{
	const size_t room = connection_room(c);

	stream_set_read_max(&c->busy->client, (uint32_t)(room > unused ? room - unused : TLS_RECORD_MAX));
}

void connection_resume_reading(struct connection *c)
{
	if (!may_read(c))
		return;
	bound_reads(c, stream_kept(&c->busy->client));
	if (c->now.reading == CLIENT_READING)
		return;
	c->now.reading = CLIENT_READING;
	stream_read_start(&c->busy->client);
}

static void pause_reading(struct connection *c)
{
	if (may_read(c) || c->now.reading == CLIENT_PAUSED)
		return;
	c->now.reading = CLIENT_PAUSED;
	stream_read_stop(&c->busy->client);
}

void connection_read_less(struct connection *c, size_t unused)
{
	bound_reads(c, unused);
	pause_reading(c);
}

/* Behind the client's FIN nothing is read anyway. */
static enum client_pace pace_now(const struct connection *c, enum client_pace pace)
{
	if (c->now.tail == TAIL_FIN)
		return CLIENT_GOES_ON;
	return pace == CLIENT_GOES_ON && connection_is_unheard(c) ? CLIENT_UNHEARD : pace;
}

void connection_set_pace(struct connection *c, enum client_pace pace)
{
	c->busy->pace = (uint8_t)pace_now(c, pace);
	if (connection_client_waits(c))
		connection_forget_partial(c); /* it cannot finish that record now */
	pause_reading(c);
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

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	return connection_client_said(of_stream(s), data, len);
}

/* --- messages that may wait --- */

/* Usually something else is sent meanwhile anyway, or the message is no longer needed. This saves a system call here
 * and a turn of the agent's loop for each. The tickets after a handshake of TLS 1.3 go with the first answer, but not
 * to clients of mail. A client's FIN matters only if the conversation is not over; after close_notify the owner ends it
 * by itself. */

void connection_on_later(struct deadline *d)
{
	struct busy_part *a = container_of(d, struct busy_part, later);

	a->fin = FIN_AT_ONCE;
	stream_flush_soon(&a->client);
	connection_send_records(a->connection);
}

static void say_later(struct connection *c)
{
	if (!deadline_is_set(&c->busy->later))
		deadline_set(c->home->worker, &c->busy->later, LATER_MS);
}

/* A client with Nagle's algorithm (RFC 896) sends nothing after its Finished before that is acknowledged, and the
 * tickets are what acknowledges it. Mail clients use it more often than not, and would wait for a tick at each
 * connection. */
static bool waits_for_tickets(const struct connection *c)
{
	return connection_service(c)->start == SERVICE_MAY_START_AS_SMTP;
}

void connection_hold_tickets(struct connection *c)
{
	if (c->now.agreed->protocol_version != TLS13_VERSION_WIRE || !stream_pending(&c->busy->client) ||
		waits_for_tickets(c))
		return;
	stream_hold(&c->busy->client);
	say_later(c);
}

static void hold_fin(struct connection *c)
{
	c->busy->fin = FIN_LATER;
	say_later(c);
}

/* --- to the client --- */

bool connection_exceeds_window(struct connection *c, size_t len)
{
	if (c->now.account.received + len - c->now.account.told <= connection_window(c) + FRAME_PAYLOAD_MAX)
		return false;
	connection_end(c, END_LINK_VIOLATION, END_RESET);
	return true;
}

int connection_write(struct connection *c, const uint8_t *data, size_t len)
{
	if (len && stream_write(&c->busy->client, data, len) == CSSL_E_NO_MEMORY) {
		connection_end(c, END_INTERNAL, END_RESET);
		return CSSL_E_NO_MEMORY;
	}
	c->now.queued += len;
	counter_add(&c->home->counters.client_queued_bytes, len);
	return 0;
}

int connection_pass_on(struct connection *c, const struct frame *f)
{
	const size_t had = connection_had_bytes(c, f->len);
	int r = connection_write(c, f->payload + had, f->len - had);

	if (r < 0)
		return r;
	c->now.active_ms = connection_now_ms(c);
	c->now.account.received += f->len;
	return 0;
}

/* --- the client's end, and its taking --- */

static void on_fin(struct connection *c)
{
	if (c->now.tail == TAIL_NONE)
		c->now.tail = TAIL_FIN;
	if (connection_speaks_clear(c))
		connection_clear_fin(c);
	else if (c->now.state <= CONNECTION_WAITING ||
		 (c->now.state == CONNECTION_RESTING && !connection_needs_owner(c)))
		connection_end(c, END_CLIENT_CLOSED, END_ORDERLY);
	else if (c->now.state == CONNECTION_LINGERING)
		connection_linger(c);
	else if (c->now.state == CONNECTION_OWNED)
		hold_fin(c);
	else
		connection_send_records(c);
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct connection *c = of_stream(s);

	if (c->now.state == CONNECTION_CLOSING)
		return;
	if (end == STREAM_EOF)
		on_fin(c);
	else if (c->now.state == CONNECTION_LINGERING)
		connection_close_now(c);
	else
		connection_end(c, END_CLIENT_RESET, END_RESET);
}

/* How many bytes of the current stream the client's TCP connection has taken. */
static uint64_t drained_of_stream(const struct connection *c)
{
	return c->slot.bytes_written > c->now.account.base ? c->slot.bytes_written - c->now.account.base : 0;
}

/* So many frames the owner need not hold. Without a table no process goes on after this one, but this one does after a
 * broken link: it needs those that it has not got. */
static uint64_t received_of_stream(const struct connection *c)
{
	if (!link_outlived(c->now.current.link))
		return 0;
	return c->home->table ? c->now.account.frames_saved : c->now.account.frames;
}

void connection_acknowledge(struct connection *c)
{
	uint8_t payload[FRAME_ACCEPTED_MAX];
	struct frame_accepted a = {
		.server_records = c->now.position.server_records,
		.drained = drained_of_stream(c),
		.write_generation = c->now.position.write_generation + (mutant("commit-promised") ? 1 : 0),
	};

	if (!connection_takes_bytes(c))
		return;
	a.received = received_of_stream(c);
	const size_t len = frame_accepted_write(payload, &a);
	if (link_send(c->now.current.link, c->now.current.stream, FRAME_ACCEPTED, 0, payload, len) < 0)
		return;
	c->now.account.told = a.drained;
	c->now.account.frames_told = c->now.account.frames;
}

void connection_release_held(struct connection *c, unsigned frames)
{
	if (c->now.current.link && link_outlived(c->now.current.link) &&
		c->now.account.frames - c->now.account.frames_told >= frames)
		connection_acknowledge(c);
}

void connection_acknowledge_if_due(struct connection *c)
{
	const uint64_t window = c->now.state == CONNECTION_PREAMBLE ? FRAME_PREAMBLE_WINDOW : connection_window(c);

	if (drained_of_stream(c) - c->now.account.told >= window / 2)
		connection_acknowledge(c);
}

static void on_written(struct stream *s, size_t len)
{
	struct connection *c = of_stream(s);

	c->slot.bytes_written += len;
	counter_add(&c->home->counters.client_queued_bytes, -(uint64_t)len);
	if (c->now.state == CONNECTION_LINGERING)
		connection_linger(c);
	else if (c->now.state == CONNECTION_RESTING)
		connection_may_compact(c);
	else
		connection_acknowledge_if_due(c);
	connection_weigh(c);
	connection_save_if_changed(c);
}

static void on_closed(struct stream *s)
{
	struct busy_part *a = busy_of(s);

	if (a->connection)
		connection_free(a->connection);
	else
		slabs_give(&a->home->busy_parts, a);
}

static void foresee(const struct stream *s)
{
	const struct busy_part *a = container_of(s, const struct busy_part, client);

	prefetch(a->connection, sizeof *a->connection);
	if (a->connection)
		connection_foresee_frame(a->connection, FRAMED_NEXT);
}

const struct stream_ops connection_client_ops = {
	.on_data = on_data,
	.foresee = foresee,
	.on_end = on_end,
	.on_written = on_written,
	.on_closed = on_closed,
};
