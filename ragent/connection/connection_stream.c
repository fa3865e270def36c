/* connection_stream.c: the current stream in both directions. Frames to its agent leave at the end of the turn. */
#include "net/memory/container_of.h"
#include "net/points/mutant.h"
#include "proto/error.h"
#include "ragent/connection/connection_clear.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/dispatch/agents.h"

/* ACCEPTED_IF_ALONG: so few frames that they are still in the owner's cache when their memory is used again.
 * ACCEPTED_IF_HELD: fewer cost more answers; with more, the owner writes small answers into memory that its cache has
 * lost.
 */
static const unsigned stream_held[] = { [ACCEPTED_IF_ALONG] = 8, [ACCEPTED_IF_HELD] = 16, [ACCEPTED_IF_SILENT] = 1 };

#define LATER_MS 10u /* one tick of the deadlines */

/* In again.next: the frames that the image has are over. */
#define ALL_NEW UINT64_MAX

/* --- places --- */

static void stream_lose(struct connection *c, struct place *p)
{
	agents_leave(connection_agents(c), link_agent(p->link), AGENT_OWNERSHIPS);
	*p = (struct place){ NULL, 0 };
}

static void stream_leave(struct connection *c, struct place *p)
{
	if (!p->link)
		return;
	link_stream_end(p->link, p->stream);
	stream_lose(c, p);
}

void connection_release_current(struct connection *c)
{
	if (c->busy)
		link_wait_cancel(&c->busy->waiter);
	stream_leave(c, &c->now.current);
}

void connection_release_frozen(struct connection *c, enum frozen_hears hears)
{
	struct place *frozen = c->busy ? &c->busy->frozen : NULL;

	if (!frozen || !frozen->link)
		return;
	if (hears == FROZEN_HEARS)
		link_send(frozen->link, frozen->stream, FRAME_DETACH, 0, NULL, 0);
	stream_leave(c, frozen);
}

bool connection_lose_stream(struct connection *c, const struct link *l, uint32_t stream)
{
	if (c->busy && l == c->busy->frozen.link && stream == c->busy->frozen.stream)
		stream_lose(c, &c->busy->frozen);
	if (l != c->now.current.link || stream != c->now.current.stream)
		return false;
	if (c->busy)
		link_wait_cancel(&c->busy->waiter);
	stream_lose(c, &c->now.current);
	return true;
}

int connection_begin_stream(struct connection *c, struct link *l)
{
	connection_touch(c); /* law 2: how it was before is true until what names this stream is saved */
	connection_owe_queued(c);
	uint32_t stream = link_stream_begin(l, c);

	if (stream == 0) {
		connection_end(c, END_INTERNAL, END_RESET);
		return -1;
	}
	c->now.current = (struct place){ l, stream };
	agents_enter(connection_agents(c), link_agent(l), AGENT_OWNERSHIPS);
	c->now.account = (struct stream_account){ .base = c->slot.bytes_written,
		.received = c->now.queued - c->slot.bytes_written,
		.stream = connection_stream_name(c) };
	c->busy->again = (struct again){ 0 };
	c->now.tail_told = TAIL_UNTOLD;
	c->busy->move_answer = MOVE_ANSWER_NOT_DUE;
	c->busy->orders = 0;
	counter_add(&c->home->counters.records_replayed, kept_sent_records(&c->busy->kept));
	kept_rewind(&c->busy->kept);
	return 0;
}

/* --- what the client has got --- */

/* How many bytes of the current stream the client's TCP connection has taken. */
static uint64_t stream_drained(const struct connection *c)
{
	return c->slot.bytes_written > c->now.account.base ? c->slot.bytes_written - c->now.account.base : 0;
}

/* So many frames the owner need not hold. Without a table no process goes on after this one, but this one does after a
 * broken link: it needs those that it has not got. */
static uint64_t stream_received(const struct connection *c)
{
	if (!link_outlived(c->now.current.link))
		return 0;
	return c->home->table ? c->now.account.frames_saved : c->now.account.frames;
}

static void stream_acknowledge(struct connection *c)
{
	uint8_t payload[FRAME_ACCEPTED_MAX];
	struct frame_accepted a = {
		.server_records = c->now.position.server_records,
		.drained = stream_drained(c),
		.write_generation = c->now.position.write_generation + (mutant("commit-promised") ? 1 : 0),
	};

	if (!connection_takes_bytes(c))
		return;
	a.received = stream_received(c);
	const size_t len = frame_accepted_write(payload, &a);
	if (link_send(c->now.current.link, c->now.current.stream, FRAME_ACCEPTED, 0, payload, len) < 0)
		return;
	c->now.account.told = a.drained;
	c->now.account.frames_told = c->now.account.frames;
}

static bool stream_is_due(const struct connection *c, enum accepted_when when)
{
	const struct stream_account *a = &c->now.account;

	if (when == ACCEPTED_NOW)
		return true;
	if (when == ACCEPTED_IF_DRAINED)
		return stream_drained(c) - a->told >=
		       (c->now.state == CONNECTION_PREAMBLE ? FRAME_PREAMBLE_WINDOW : connection_window(c)) / 2;
	return c->now.current.link && link_outlived(c->now.current.link) &&
	       a->frames - a->frames_told >= stream_held[when];
}

void connection_acknowledge(struct connection *c, enum accepted_when when)
{
	if (stream_is_due(c, when))
		stream_acknowledge(c);
}

/* --- to its agent --- */

static void stream_tell_tail(struct connection *c)
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
		connection_acknowledge(c, ACCEPTED_IF_ALONG);
	if (connection_send_kept(c, 0) == 0)
		stream_tell_tail(c);
}

static void stream_on_waiter(struct link_waiter *w)
{
	connection_send_records(container_of(w, struct busy_part, waiter)->connection);
}

/* --- messages that may wait --- */

/* Usually something else is sent meanwhile anyway, or the message is no longer needed. This saves a system call here
 * and a turn of the agent's loop for each. The tickets after a handshake of TLS 1.3 go with the first answer, but not
 * to clients of mail. A client's FIN matters only if the conversation is not over; after close_notify the owner ends it
 * by itself. */

static void stream_on_later(struct deadline *d)
{
	struct busy_part *a = container_of(d, struct busy_part, later);

	a->fin = FIN_AT_ONCE;
	stream_flush_soon(&a->client);
	connection_send_records(a->connection);
}

/* Not if the service is mail. A client with Nagle's algorithm (RFC 896) sends nothing after its Finished before that is
 * acknowledged, and the tickets are what acknowledges it. Mail clients use it more often than not, and would wait for a
 * tick at each connection. */
static bool stream_may_hold_tickets(const struct connection *c)
{
	return c->now.agreed->protocol_version == TLS13_VERSION_WIRE && stream_pending(&c->busy->client) &&
	       connection_service(c)->start != SERVICE_MAY_START_AS_SMTP;
}

void connection_say_later(struct connection *c, enum later what)
{
	if (what == LATER_FIN)
		c->busy->fin = FIN_LATER;
	else if (stream_may_hold_tickets(c))
		stream_hold(&c->busy->client);
	else
		return;
	if (!deadline_is_set(&c->busy->later))
		deadline_set(c->home->worker, &c->busy->later, LATER_MS);
}

void connection_stream_init(struct busy_part *a)
{
	a->later.fn = stream_on_later;
	a->waiter.fn = stream_on_waiter;
}

/* --- the link came again --- */

/* Is the next frame one that the image does not have? */
static void again_pass_image(struct connection *c)
{
	struct again *a = &c->busy->again;

	if (a->next > c->now.account.frames)
		a->next = a->byte < a->written ? ALL_NEW : 0;
}

void connection_again(struct connection *c, uint64_t next, uint64_t bytes, uint64_t written)
{
	c->busy->again = (struct again){ .next = next, .byte = bytes, .written = written };
	c->now.account.stream = connection_stream_name(c);
	c->now.tail_told = TAIL_UNTOLD;
	again_pass_image(c);
}

/* Of @len bytes that come again, those that the client has already. */
static size_t again_pass_bytes(struct again *a, size_t len)
{
	const uint64_t left = a->byte < a->written ? a->written - a->byte : 0;

	a->byte += len;
	return left < len ? (size_t)left : len;
}

static size_t again_had_bytes(struct connection *c, size_t len)
{
	struct again *a = &c->busy->again;

	if (a->next != ALL_NEW)
		return 0;
	const size_t had = again_pass_bytes(a, len);
	if (a->byte >= a->written)
		a->next = 0;
	return had;
}

/* --- for the client --- */

bool connection_exceeds_window(struct connection *c, size_t len)
{
	if (c->now.account.received + len - c->now.account.told <= connection_window(c) + FRAME_PAYLOAD_MAX)
		return false;
	connection_end(c, END_LINK_VIOLATION, END_RESET);
	return true;
}

static int stream_write_on(struct connection *c, const uint8_t *data, size_t len)
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
	const size_t had = again_had_bytes(c, f->len);
	int r = stream_write_on(c, f->payload + had, f->len - had);

	if (r < 0)
		return r;
	c->now.active_ms = connection_now_ms(c);
	c->now.account.received += f->len;
	return 0;
}

/* Only its bytes count, and of these only those that were lost with the process. */
static void again_write(struct connection *c, const struct frame *f)
{
	const size_t had = again_pass_bytes(&c->busy->again, f->len), lost = f->len - had;

	if (lost && stream_write_on(c, f->payload + had, lost) == 0)
		connection_shut_if_due(c);
}

void connection_count_records(struct connection *c, enum records_of whose, const struct tls_record_run *run)
{
	const bool of_client = whose == RECORDS_OF_CLIENT;
	struct ragent_counters *n = &c->home->counters;
	struct listener_counters *of_listener = connection_counts(c);
	/* the first of the types; the other ones follow */
	counter *by_type = of_client ? &n->client_change_cipher_spec : &n->server_change_cipher_spec;
	uint32_t *types = of_client ? c->now.client_types : c->now.server_types;

	for (unsigned i = 0; i < sizeof run->by_type / sizeof run->by_type[0]; i++) {
		if (run->by_type[i] == 0)
			continue;
		types[i] += run->by_type[i];
		counter_add(&by_type[i], run->by_type[i]);
	}
	counter_add(of_client ? &n->client_bytes : &n->server_bytes, run->len);
	counter_add(of_client ? &of_listener->client_bytes : &of_listener->server_bytes, run->len);
}

bool connection_had_frame(struct connection *c, const struct frame *f)
{
	struct again *a = &c->busy->again;

	if (a->next == 0 || a->next == ALL_NEW || mutant("frame-taken-twice"))
		return false;
	a->next++;
	if (f->type == FRAME_DATA)
		again_write(c, f);
	again_pass_image(c);
	return true;
}
