/* link.c: frames from RAgent to connections and back. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "net/memory/prefetch.h"
#include "net/report/error_text.h"
#include "net/report/log_pace.h"
#include "net/socket/endpoints.h"
#include "proto/error.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"
#include "sslagent/preamble/preamble_stream.h"
#include "sslagent/tls/tls_contexts.h"

#define QUIET_PART 10u /* of carrier_link_patience_ms() */

static struct carrier_link *carrier_link_of(struct framed *f)
{
	return container_of(f, struct carrier_link, framed);
}

void carrier_link_fail(struct carrier_link *l, int error)
{
	if (l->failure || l->framed.stream.state >= STREAM_CLOSING)
		return;
	l->failure = error;
	worker_at_turn_end(l->home->connections->worker, &l->doom);
}

/* After a failed write the end of the stream follows by itself, and the streams may wait for the next link. Otherwise
 * the other side must not wait for the message. */
static void carrier_link_not_sent(struct carrier_link *l, size_t len)
{
	if (l->framed.stream.state != STREAM_FAILED)
		carrier_link_fail(l, len > FRAME_PAYLOAD_MAX ? CSSL_E_TOO_LONG : CSSL_E_NO_MEMORY);
}

void carrier_link_send_message(struct carrier_link *l, enum frame_type type, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *room = len <= FRAME_PAYLOAD_MAX ? framed_reserve(&l->framed, len) : NULL;

	if (room)
		framed_commit(&l->framed, 0, type, 0, protobuf_c_message_pack(m, room));
	else
		carrier_link_not_sent(l, len);
}

void carrier_link_respond(struct carrier_link *l, const uint8_t *response, size_t len)
{
	if (len > FRAME_PAYLOAD_MAX || framed_send(&l->framed, 0, FRAME_RESPONSE, 0, response, len) < 0)
		carrier_link_not_sent(l, len);
}

/* --- frames that begin a stream --- */

#define FIRST_EPOCH 1u
#define CLEAR_EPOCH 0u /* before the first owner */

/* 0 or CSSL_E_RANGE. */
static int read_id(const ProtobufCBinaryData *id, struct connection_id *out)
{
	if (id->len != CONNECTION_ID_LEN)
		return CSSL_E_RANGE;
	memcpy(out->bytes, id->data, CONNECTION_ID_LEN);
	return 0;
}

static int open_stream(struct carrier_link *l, uint32_t id, const ProtobufCMessage *m)
{
	const Cssl__LinkOpen *open = (const Cssl__LinkOpen *)m;
	struct carrier_home *home = l->home;
	struct connection_id connection;
	enum end_reason why = END_INTERNAL;

	if (read_id(&open->connection_id, &connection) < 0 || !endpoints_message_is_sane(open->endpoints))
		return CSSL_E_RANGE;
	const struct tls_listener *listener = tls_listener_find(home->connections->contexts, open->listener);
	if (!listener)
		return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER, open->listener);
	if (home->ops->is_leaving(home->process))
		return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__LEAVING, "draining");
	struct link_stream *s = link_stream_add(l, id, &connection, FIRST_EPOCH);
	if (s)
		s->connection = connection_open(home->connections, &s->carrier, listener, &connection,
			open->disposition, open->endpoints, &why);
	if (s && s->connection)
		return 0;
	if (s)
		link_stream_drop(s);
	return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__BUSY,
		why == END_INTERNAL ? cssl_strerror(CSSL_E_NO_MEMORY) : end_reason_text(why));
}

static void on_preamble_said(void *holder, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	link_stream_say(holder, type, flags, payload, len);
}

static void on_preamble_over(void *holder)
{
	link_stream_ended(holder);
}

static int begin_preamble(struct carrier_link *l, uint32_t id, const ProtobufCMessage *message)
{
	const Cssl__LinkPreamble *m = (const Cssl__LinkPreamble *)message;
	struct carrier_home *home = l->home;
	const struct conf_listener *conf = conf_listener_find(home->connections->conf, m->listener);
	struct connection_id connection;

	if (read_id(&m->connection_id, &connection) < 0 || !endpoints_message_is_sane(m->endpoints))
		return CSSL_E_RANGE;
	if (!conf || !conf_has_preamble(conf))
		return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER, m->listener);
	struct link_stream *s =
		home->ops->is_leaving(home->process) ? NULL : link_stream_add(l, id, &connection, CLEAR_EPOCH);
	const struct preamble_stream_place place = { on_preamble_said, on_preamble_over, s };
	if (s)
		s->clear = preamble_stream_open(&home->preambles, &place, conf, &connection, m->endpoints);
	if (s && s->clear)
		return 0;
	if (s)
		link_stream_drop(s);
	return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__BUSY, "no room, or draining");
}

static int adopt_stream(struct carrier_link *l, uint32_t id, const ProtobufCMessage *m)
{
	const Cssl__LinkSslId *ssl_id = (const Cssl__LinkSslId *)m;
	struct connection_id connection;

	if (!endpoints_message_is_sane(ssl_id->endpoints))
		return CSSL_E_RANGE;
	if (read_id(&ssl_id->connection_id, &connection) < 0 || !ssl_id->position)
		return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__INTERNAL, "malformed SSL_ID");
	/* of one that is frozen here, no other agent took the state: it is on its way back */
	const struct connection *here = connection_table_find(&l->home->connections->table, &connection);
	if (l->home->ops->is_leaving(l->home->process) && !(here && here->state == CONNECTION_FROZEN))
		return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__LEAVING, "draining");
	struct link_stream *s = link_stream_add(l, id, &connection, ssl_id->epoch);
	if (!s)
		return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__BUSY, cssl_strerror(CSSL_E_NO_MEMORY));
	/* records and bytes count on from those of the owners before */
	s->client_records = ssl_id->position->client_records;
	s->held.bytes = ssl_id->undrained;
	struct connection *c = connection_adopt(l->home->connections, &s->carrier, ssl_id);
	/* of a connection that ended at once, the stream is dropped already, or holds END */
	if (c)
		s->connection = c;
	else if (streams_find(&l->streams, id) && !s->is_over)
		link_stream_drop(s);
	return 0;
}

/* --- frames on a stream --- */

static int carrier_link_on_records(struct link_stream *s, const struct frame *f, uint8_t *payload)
{
	struct carrier_link *l = s->link;
	struct connection *c = s->connection; /* it may end meanwhile, and @s with it */
	struct tls_record_batch batch;
	struct tls_record_header bad;

	if (f->flags & FRAME_PLAINTEXT)
		return CSSL_E_TRUNCATED;
	for (size_t used = 0; used < f->len; used += batch.len) {
		int r = tls_record_take(payload + used, f->len - used, SIZE_MAX, &batch, &bad);
		if (r < 0 || (batch.count < TLS_RECORD_BATCH && used + batch.len < f->len))
			return CSSL_E_TRUNCATED;
		if (streams_find(&l->streams, f->stream) == s)
			s->client_records += batch.count;
		connection_records(c, batch.records, batch.count);
	}
	return 0;
}

static int on_move(struct link_stream *s, const struct frame *f)
{
	Cssl__LinkMove *move = cssl__link_move__unpack(NULL, f->len, f->payload);

	if (!move)
		return CSSL_E_TRUNCATED;
	const bool sane =
		move->cause == CSSL__CAUSE__CAUSE_REST || (move->next_epoch >= 2 && move->next_epoch <= UINT16_MAX);
	if (sane) {
		s->order = move->order;
		connection_move(s->connection, move);
	}
	cssl__link_move__free_unpacked(move, NULL);
	return sane ? 0 : CSSL_E_RANGE;
}

static int on_connection_frame(struct link_stream *s, const struct frame *f, uint8_t *payload)
{
	struct frame_violation v;

	switch (f->type) {
	case FRAME_DATA: return carrier_link_on_records(s, f, payload);
	case FRAME_FIN: connection_fin(s->connection); return 0;
	case FRAME_MOVE: return on_move(s, f);
	case FRAME_VIOLATION:
		if (frame_violation_read(f, &v) < 0)
			return CSSL_E_TRUNCATED;
		connection_violation(s->connection, &v);
		return 0;
	case FRAME_FINISH:
		if (f->payload[0] >= END_REASON_COUNT)
			return CSSL_E_RANGE;
		connection_give_up(s->connection, (enum end_reason)f->payload[0]);
		return 0;
	default: return CSSL_E_TYPE;
	}
}

static int on_accepted(struct link_stream *s, const struct frame *f, const uint8_t *payload)
{
	struct frame_accepted a;
	int r = frame_accepted_read(f, &a);

	if (r < 0)
		return r;
	/* more than was sent, or less than before */
	if (s->connection && !connection_may_have_drained(s->connection, a.drained))
		return CSSL_E_RANGE;
	link_stream_confirm(s, &a);
	if (s->clear)
		return preamble_stream_frame(s->clear, f, payload);
	if (s->connection)
		connection_accepted(s->connection, &a); /* it may end, and the stream with it */
	return 0;
}

static int on_over(struct link_stream *s, enum end_reason reason)
{
	streams_remove(&s->link->streams, s->id);
	carrier_link_forget_stream(s, reason < END_REASON_COUNT ? reason : END_CLIENT_RESET);
	return 0;
}

/* Of one that came from a link before: now RAgent goes on with it here. In clear it may be over then. false: it has
 * been freed. */
static bool put_to_work(struct link_stream *s)
{
	struct carrier_link *l = s->link;
	const uint32_t id = s->id;

	if (s->carrier.pace == CARRIER_AT_WORK)
		return true;
	s->carrier.pace = CARRIER_AT_WORK;
	if (s->clear)
		preamble_stream_go_on(s->clear);
	return streams_find(&l->streams, id) == s;
}

/* --- frames on the link --- */

static void say_load(struct carrier_link *l)
{
	Cssl__LinkLoad load = CSSL__LINK_LOAD__INIT;

	l->home->ops->load(l->home->process, &load);
	carrier_link_send_message(l, FRAME_LOAD, &load.base);
}

static int carrier_link_on_request(struct carrier_link *l, const struct frame *f)
{
	Cssl__LinkRequest *request = cssl__link_request__unpack(NULL, f->len, f->payload);

	if (!request)
		return CSSL_E_TRUNCATED;
	l->home->ops->request(l->home->process, l->number, request);
	return 0;
}

static int carrier_link_begin_stream(struct carrier_link *l, const struct frame *f,
	const ProtobufCMessageDescriptor *message,
	int (*opener)(struct carrier_link *l, uint32_t stream, const ProtobufCMessage *m))
{
	ProtobufCMessage *m = protobuf_c_message_unpack(message, NULL, f->len, f->payload);

	if (!m)
		return CSSL_E_TRUNCATED;
	int r = streams_find(&l->streams, f->stream) ? CSSL_E_STATE : opener(l, f->stream, m);
	protobuf_c_message_free_unpacked(m, NULL);
	return r;
}

static int on_stream_frame(struct carrier_link *l, const struct frame *f, uint8_t *payload)
{
	struct link_stream *s = streams_find(&l->streams, f->stream);

	if (f->stream == 0 || f->type >= FRAME_KEPT) /* only agents send it */
		return CSSL_E_TYPE;
	if (!s) { /* it ended here while the frame was on its way, or never existed */
		count(COUNT_FRAMES_STALE);
		return 0;
	}
	if (f->type == FRAME_CLOSE)
		return on_over(s, (enum end_reason)f->payload[0]);
	if (!put_to_work(s))
		return 0;
	if (f->type == FRAME_ACCEPTED)
		return on_accepted(s, f, payload);
	if (f->type == FRAME_DETACH)
		return s->clear ? CSSL_E_STATE : on_over(s, END_DONE);
	if (s->clear && f->type == FRAME_DATA)
		s->client_records += f->len;
	if (s->clear)
		return preamble_stream_frame(s->clear, f, payload); /* @s may be over then */
	/* if it is over, what crossed END on its way has no effect */
	return s->connection ? on_connection_frame(s, f, payload) : 0;
}

/* RAgent pings more often. If the network is cut so that nothing comes, TCP notices it only by bytes of its own that
 * nobody acknowledges: the load is some. It is said once: RAgent may hear it, and must not think that all is well. */
static void on_quiet(struct deadline *d)
{
	say_load(container_of(d, struct carrier_link, quiet_due));
}

static void expect_more(struct carrier_link *l)
{
	deadline_set(l->home->connections->worker, &l->quiet_due, carrier_link_patience_ms(l) / QUIET_PART);
}

static void carrier_link_foresee(struct framed *framed, uint32_t stream, enum framed_distance distance)
{
	const struct link_stream *s = streams_find(&carrier_link_of(framed)->streams, stream);

	if (s && distance == FRAMED_NEXT)
		prefetch(s->connection, sizeof(struct connection));
	else
		prefetch(s, sizeof *s);
}

static int carrier_link_on_frame(struct framed *framed, const struct frame *f, uint8_t *payload)
{
	struct carrier_link *l = carrier_link_of(framed);

	if (l->failure)
		return 0;
	expect_more(l);
	switch (f->type) {
	case FRAME_OPEN: return carrier_link_begin_stream(l, f, &cssl__link_open__descriptor, open_stream);
	case FRAME_SSL_ID: return carrier_link_begin_stream(l, f, &cssl__link_ssl_id__descriptor, adopt_stream);
	case FRAME_PREAMBLE: return carrier_link_begin_stream(l, f, &cssl__link_preamble__descriptor, begin_preamble);
	case FRAME_REATTACH: return carrier_link_reattach(l, f);
	case FRAME_PROOF: return carrier_link_take_proof(l, f);
	case FRAME_REQUEST: return carrier_link_on_request(l, f);
	case FRAME_PING:
		say_load(l); /* first, because it reports the waiting output, which should not include the answer */
		framed_send(&l->framed, 0, FRAME_PONG, 0, payload, f->len);
		return 0;
	default: return on_stream_frame(l, f, payload);
	}
}

/* --- life --- */

void carrier_link_forget_stream(struct link_stream *s, enum end_reason reason)
{
	if (s->clear)
		preamble_stream_forget(s->clear);
	else if (s->connection)
		connection_forget(s->connection, reason);
	link_stream_free(s);
}

static void forget_stream(void *ctx, uint32_t id, void *holder)
{
	carrier_link_forget_stream(holder, END_AGENT_LOST);
}

void carrier_link_give_up_streams(struct carrier_link *l, void (*fn)(void *ctx, uint32_t id, void *holder))
{
	struct streams streams = l->streams;

	l->streams = (struct streams){ 0 };
	streams_each(&streams, fn, l);
	streams_clear(&streams);
}

void carrier_link_stop(struct carrier_link *l)
{
	turn_end_cancel(&l->doom);
	deadline_cancel(&l->quiet_due);
	link_turns_clear(l);
	framed_close(&l->framed);
}

void carrier_link_close(struct carrier_link *l)
{
	if (l->stage == LINK_PARKED) {
		carrier_link_end_parked(l);
		return;
	}
	if (l->framed.stream.state >= STREAM_CLOSING)
		return;
	/* law 7: nobody can take these streams over here, so their connections stop sealing at once */
	carrier_link_stop(l);
	l->stage = LINK_OVER;
	carrier_link_give_up_streams(l, forget_stream);
}

static void carrier_link_on_written(struct framed *framed, size_t len)
{
	link_turns_written(carrier_link_of(framed), len);
}

static void carrier_link_on_end(struct framed *framed, int error)
{
	carrier_link_fail(carrier_link_of(framed), error);
}

static void on_doom(struct turn_end *t)
{
	struct carrier_link *l = container_of(t, struct carrier_link, doom);

	const bool broken =
		cssl_error_is_own(l->failure); /* because of the other side's frames, or of lack of memory */

	if (broken)
		count(COUNT_LINK_VIOLATIONS);
	log_paced(l->failure == UV_EOF ? LOG_INFO : LOG_WARNING, NULL, "link lost", "ragent=%s streams=%u cause=%s",
		l->peer, l->streams.count, error_text(l->failure));
	count(COUNT_LINKS_LOST);
	if (carrier_link_may_park(l))
		carrier_link_park(l);
	else
		carrier_link_close(l);
}

void carrier_link_free_if_over(struct carrier_link *l)
{
	if (l->stage == LINK_OVER && l->socket == LINK_SOCKET_CLOSED)
		free(l);
}

static void carrier_link_on_closed(struct framed *framed)
{
	struct carrier_link *l = carrier_link_of(framed);

	l->socket = LINK_SOCKET_CLOSED;
	if (l->stage == LINK_PARKED)
		return;
	carrier_home_remove_link(l->home, l);
	l->stage = LINK_OVER;
	carrier_link_free_if_over(l);
}

static const struct framed_ops link_ops = { .on_frame = carrier_link_on_frame,
	.foresee = carrier_link_foresee,
	.on_end = carrier_link_on_end,
	.on_closed = carrier_link_on_closed,
	.on_written = carrier_link_on_written };

const char *carrier_link_ragent(const struct carrier_link *l, uint64_t *boot_id)
{
	*boot_id = l->peer_boot_id;
	return l->peer;
}

/* --- its beginning --- */

void link_arrival_destroy(struct link_arrival *a)
{
	if (a->fd >= 0)
		close(a->fd);
	if (a->memory >= 0)
		close(a->memory);
	sodium_memzero(&a->keys, sizeof a->keys);
	free(a->early);
	free(a);
}

/* NULL: no memory. */
static struct carrier_link *link_make(const struct link_arrival *a)
{
	struct carrier_link *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->home = a->home;
	l->doom.fn = on_doom;
	l->quiet_due.fn = on_quiet;
	memcpy(l->peer, a->peer.name, sizeof l->peer);
	l->peer_boot_id = a->peer.boot_id;
	l->peer_worker = a->peer.worker;
	return l;
}

/* 0, or negative: it is not open. */
static int open_framed(struct carrier_link *l, struct link_arrival *a)
{
	const int fd = a->fd;

	a->fd = -1;
	return framed_open(&l->framed, l->home->connections->worker, &link_ops, fd, &a->keys, a->early, a->early_len);
}

static void carrier_link_serve(struct carrier_link *l, struct link_arrival *a)
{
	const bool in_memory = a->memory >= 0;
	int r = 0;

	l->number = carrier_home_add_link(l->home, l);
	stream_set_lost_limit(&l->framed.stream, (unsigned)carrier_link_patience_ms(l));
	stream_set_fault(&l->framed.stream, "link", l->peer);
	if (in_memory)
		r = framed_share(&l->framed, a->memory, RINGS_TAKER);
	a->memory = -1;
	if (r < 0)
		carrier_link_fail(l, r);
	log_event(LOG_INFO, NULL, "link up", "ragent=%s ragent_worker=%u worker=%u bytes=%s", l->peer, a->peer.worker,
		worker_index(l->home->connections->worker), in_memory ? "memory" : "socket");
	say_load(l);
	expect_more(l);
	if (l->home->ops->is_leaving(l->home->process))
		framed_send(&l->framed, 0, FRAME_LEAVING, 0, NULL, 0);
}

void carrier_link_begin(struct link_arrival *a)
{
	struct carrier_link *l = link_make(a);
	int r = l ? open_framed(l, a) : CSSL_E_NO_MEMORY;

	if (r < 0) {
		log_event(LOG_ERROR, NULL, "link not begun", "ragent=%s cause=%s", a->peer.name, cssl_strerror(r));
		free(l);
	} else {
		carrier_link_serve(l, a);
	}
	link_arrival_destroy(a);
}
