/* link_stream.c: the streams of a link as carriers of connections. A frame is written into the link's output. If the
 * stream may outlive its link, the frame is written into memory of the stream (held.h), which it stays in until RAgent
 * has confirmed it, and goes to the link from there. While the stream is parked there is no link, and while it awaits
 * its turn on the next one, frames are only held.
 */
#include <string.h>

#include "net/memory/container_of.h"
#include "net/points/mutant.h"
#include "net/report/log_pace.h"
#include "net/stream/rings.h"
#include "proto/error.h"
#include "proto/tls_record.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"

#define HELD_SMALL_FRAMES (256u * 1024u) /* bytes, beside the windows */

static struct link_stream *stream_of(struct carrier *c)
{
	return (struct link_stream *)c;
}

/* --- what it holds --- */

static struct connection_home *link_stream_home(const struct link_stream *s)
{
	return s->link->home->connections;
}

static struct buffers *buffers_of(const struct link_stream *s)
{
	return worker_buffers(link_stream_home(s)->worker);
}

/* It holds more or less than before. */
static void link_stream_weigh(struct link_stream *s)
{
	if (s->holding.len != s->held.len)
		holdings_set(&link_stream_home(s)->held, &s->holding, s->held.len);
}

/* The bytes that connections keep make the budget for held frames smaller. No connection ends because of held frames.
 * 0: there is no limit. */
static uint64_t link_stream_budget(const struct connection_home *home)
{
	const struct holdings *kept = &home->holdings;

	if (kept->limit == 0)
		return 0;
	return kept->len < kept->limit ? kept->limit - kept->len : 1;
}

/* Above the budget, the streams that hold most cannot outlive their links any more. */
static void link_stream_relieve(struct connection_home *home)
{
	struct holding *h;

	home->held.limit = link_stream_budget(home);
	while ((h = holdings_greatest(&home->held)) != NULL) {
		struct link_stream *s = container_of(h, struct link_stream, holding);
		count(COUNT_HELD_GIVEN_UP);
		log_paced(LOG_INFO, &s->connection_id, "cannot outlive its link",
			"ragent=%s cause=\"too much is kept\" limit=%llu remedy=limits.kept", s->link->peer,
			(unsigned long long)home->held.limit);
		held_give_up(&s->held, buffers_of(s));
		link_stream_weigh(s);
	}
}

void link_stream_confirm(struct link_stream *s, const struct frame_accepted *a)
{
	held_confirm(&s->held, buffers_of(s), a->drained, a->received);
	link_stream_weigh(s);
}

void link_stream_free(struct link_stream *s)
{
	held_clear(&s->held, buffers_of(s));
	link_stream_weigh(s);
	slabs_give(&s->link->home->stream_blocks, s);
}

void link_stream_drop(struct link_stream *s)
{
	streams_remove(&s->link->streams, s->id);
	link_stream_free(s);
}

/* --- one frame --- */

/* Parked, or RAgent has not got yet what is held. */
static bool link_stream_is_silent(const struct link_stream *s)
{
	return s->link->stage == LINK_PARKED || s->turn == LINK_TURN_AWAITS;
}

static uint8_t *link_stream_room(struct link_stream *s, size_t cap)
{
	/* RAgent grants a window beyond what its client has taken. A block may be half empty. */
	const size_t limit = 4 * (size_t)link_stream_home(s)->conf->limits.window_len + HELD_SMALL_FRAMES;
	uint8_t *room = s->proven == LINK_PROVEN ? held_room(&s->held, buffers_of(s), cap, limit) : NULL;

	return room || link_stream_is_silent(s) ? room : framed_reserve(&s->link->framed, cap);
}

void link_stream_pass(struct link_stream *s, struct held_frame *f)
{
	/* law 1: the same bytes as before, sealed once */
	int r = framed_pass(&s->link->framed, s->id, (enum frame_type)f->type, f->flags, f->wire, f->len);

	if (r < 0 && r != CSSL_E_STATE)
		carrier_link_fail(s->link, r);
}

/* After link_stream_room(): @len bytes were written into the room. */
static void link_stream_commit(struct link_stream *s, enum frame_type type, uint8_t flags, size_t len)
{
	struct held_frame *f = held_add(&s->held, type, flags, len);

	if (!f)
		framed_commit(&s->link->framed, s->id, type, flags, len);
	else if (!link_stream_is_silent(s))
		link_stream_pass(s, f);
	link_stream_weigh(s);
	link_stream_relieve(link_stream_home(s));
}

/* RAgent must not wait for a frame that was lost here, so the link ends. */
static void link_stream_fail(struct link_stream *s, int error)
{
	s->held.state = HELD_BROKEN;
	if (!link_stream_is_silent(s) && s->link->framed.stream.state != STREAM_FAILED)
		carrier_link_fail(s->link, error);
}

void link_stream_say(struct link_stream *s, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	uint8_t *room = link_stream_room(s, len);

	if (!room) {
		link_stream_fail(s, CSSL_E_NO_MEMORY);
		return;
	}
	if (len)
		memcpy(room, payload, len);
	link_stream_commit(s, type, flags, len);
}

/* --- the carrier --- */

#ifdef CSSL_TEST_POINTS
/* The mistake of sealing straight in the ring, between reserve and send. */
static _Thread_local struct {
	uint8_t *room; /* NULL: not made */
	const uint8_t *ring;
} in_ring;

static uint8_t *room_in_ring(const struct link_stream *s, uint8_t *room, size_t cap)
{
	size_t len = 0;
	uint8_t *ring = s->link->framed.stream.rings ? rings_room(s->link->framed.stream.rings, &len) : NULL;

	in_ring.room = len >= cap ? room : NULL;
	in_ring.ring = ring;
	return in_ring.room ? ring : room;
}

static void take_from_ring(size_t len)
{
	if (in_ring.room)
		memcpy(in_ring.room, in_ring.ring, len);
	in_ring.room = NULL;
}
#else
#define room_in_ring(s, room, cap) room
#define take_from_ring(len)        (void)0
#endif

/* Private memory (law 12). */
static uint8_t *link_carrier_reserve(struct carrier *c, size_t cap)
{
	uint8_t *room = link_stream_room(stream_of(c), cap);

	return room && mutant("sealed-in-ring") ? room_in_ring(stream_of(c), room, cap) : room;
}

static void link_carrier_send(struct carrier *c, size_t len, uint8_t flags)
{
	if (mutant("sealed-in-ring"))
		take_from_ring(len);
	link_stream_commit(stream_of(c), FRAME_DATA, flags, len);
}

static void link_carrier_consumed(struct carrier *c, const struct frame_consumed *consumed, uint8_t flags)
{
	uint8_t payload[FRAME_CONSUMED_LEN];

	frame_consumed_write(payload, consumed);
	link_stream_say(stream_of(c), FRAME_CONSUMED, flags, payload, sizeof payload);
}

static void link_carrier_fin(struct carrier *c, uint8_t flags)
{
	link_stream_say(stream_of(c), FRAME_FIN, flags, NULL, 0);
}

void link_stream_ended(struct link_stream *s)
{
	s->connection = NULL;
	s->clear = NULL;
	s->is_over = 1;
	/* END may be lost with its link; and what is only held may have to come again */
	if (!link_stream_is_silent(s) && (s->proven != LINK_PROVEN || s->held.state != HELD_WHOLE))
		link_stream_drop(s);
}

/* It does not come again on another link. */
static void say_cause(const struct link_stream *s)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__Cause cause = CSSL__LINK_RESPONSE__CAUSE__INIT;

	cause.stream = s->id;
	cause.text = (char *)(s->connection ? connection_cause(s->connection) : ""); /* it may end in its first call */
	response.what_case = CSSL__LINK_RESPONSE__WHAT_CAUSE;
	response.cause = &cause;
	if (cause.text[0] && s->link->stage == LINK_OPEN)
		carrier_link_send_message(s->link, FRAME_RESPONSE, &response.base);
}

static void link_carrier_end(struct carrier *c, enum end_reason reason, enum carrier_end how)
{
	struct link_stream *s = stream_of(c);
	uint8_t payload = (uint8_t)reason;

	say_cause(s);
	link_stream_say(s, FRAME_END, how == CARRIER_ABORT ? FRAME_ABORT : 0, &payload, 1);
	link_stream_ended(s);
}

static void link_carrier_say(struct carrier *c, enum frame_type type, const ProtobufCMessage *m)
{
	struct link_stream *s = stream_of(c);
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *room = len <= FRAME_PAYLOAD_MAX ? link_stream_room(s, len) : NULL;

	if (!room) {
		link_stream_fail(s, len > FRAME_PAYLOAD_MAX ? CSSL_E_TOO_LONG : CSSL_E_NO_MEMORY);
		return;
	}
	link_stream_commit(s, type, 0, protobuf_c_message_pack(m, room));
}

static unsigned records_of(const struct held_frame *f)
{
	struct tls_record_run run = { 0 };
	struct tls_record_header bad;

	if (f->type == FRAME_DATA)
		tls_record_scan_run(f->wire + FRAME_HEADER_LEN, f->len, f->len, &run, &bad);
	return run.records;
}

static ptrdiff_t link_carrier_unconfirmed(const struct carrier *c)
{
	const struct link_stream *s = (const struct link_stream *)c;
	struct held_walk w = { 0 };
	struct held_frame *f;
	ptrdiff_t records = 0;

	if (s->proven != LINK_PROVEN || s->held.state != HELD_WHOLE)
		return -1;
	while ((f = held_next(&s->held, &w)) != NULL)
		records += records_of(f);
	return records;
}

static void link_carrier_flush(struct carrier *c)
{
	if (!link_stream_is_silent(stream_of(c)))
		stream_flush(&stream_of(c)->link->framed.stream);
}

static void link_carrier_refused(struct carrier *c, Cssl__LinkRefused__Reason reason, const char *detail)
{
	Cssl__LinkRefused m = CSSL__LINK_REFUSED__INIT;

	m.reason = reason;
	m.detail = (char *)detail;
	m.order = stream_of(c)->order;
	link_carrier_say(c, FRAME_REFUSED, &m.base);
}

static void link_carrier_retire(struct carrier *c)
{
	struct carrier_link *l = stream_of(c)->link;

	link_stream_drop(stream_of(c));
	if (l->stage != LINK_PARKED)
		return;
	count(COUNT_STREAMS_ADOPTED_ANEW);
	carrier_link_end_parked_if_empty(l);
}

static const struct carrier_ops link_carrier = {
	.reserve = link_carrier_reserve,
	.send = link_carrier_send,
	.consumed = link_carrier_consumed,
	.fin = link_carrier_fin,
	.end = link_carrier_end,
	.say = link_carrier_say,
	.unconfirmed = link_carrier_unconfirmed,
	.flush = link_carrier_flush,
	.refused = link_carrier_refused,
	.retire = link_carrier_retire,
};

/* --- life --- */

struct link_stream *link_stream_of(struct carrier *c)
{
	return c->ops == &link_carrier ? stream_of(c) : NULL;
}

struct link_stream *link_stream_add(
	struct carrier_link *l, uint32_t id, const struct connection_id *connection, uint32_t epoch)
{
	struct link_stream *s = slabs_take(&l->home->stream_blocks);

	if (!s)
		return NULL;
	*s = (struct link_stream){ .carrier.ops = &link_carrier,
		.id = id,
		.link = l,
		.connection_id = *connection,
		.epoch = epoch,
		.proven = (uint8_t)l->proven };
	if (streams_add(&l->streams, id, s) == 0)
		return s;
	slabs_give(&l->home->stream_blocks, s);
	return NULL;
}

int link_stream_refuse(struct carrier_link *l, uint32_t id, Cssl__LinkRefused__Reason reason, const char *detail)
{
	struct link_stream s = { .carrier.ops = &link_carrier, .id = id, .link = l };

	if (reason == CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER)
		log_paced(LOG_WARNING, NULL, "unknown listener",
			"listener=%s ragent=%s remedy=\"restart this agent with RAgent's cluster file\"", detail,
			l->peer);
	link_carrier_refused(&s.carrier, reason, detail);
	return 0;
}
