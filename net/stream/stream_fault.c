/* stream_fault.c: fault points of streams, in test builds. Bytes that a rule holds back stay in their place: output
 * in its buffer, input in the kernel. So their order never changes.
 */
#include "net/stream/stream_fault.h"

#include "net/loop/wheel.h"

#ifdef CSSL_TEST_POINTS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "net/stream/stream_state.h"

#define ASK_AGAIN_MS 20u
#define PART_OF      4096u /* larger output may go in part; the messages that links send for themselves are smaller */

enum way_state {
	WAY_ASKS,
	WAY_WAITS,  /* deadline set; then it asks again */
	WAY_DELAYS, /* deadline set; then it passes */
	WAY_PASSES,
	WAY_CUT,
};

struct way {
	char point[32];
	struct deadline due;
	enum way_state state;
};

struct stream_fault {
	struct stream *stream;
	const char *peer;
	struct way read, write, bell;
	char part[32]; /* the point that lets a part of the output pass */
	enum { NO_PART_WENT, A_PART_WENT } parts;
};

/* Is this way held now? */
static bool way_holds(struct stream_fault *f, struct way *way)
{
	uint64_t ms = 0;

	if (way->state == WAY_PASSES) {
		way->state = WAY_ASKS;
		return false;
	}
	if (way->state != WAY_ASKS)
		return true;
	switch (fault_at(way->point, f->peer, &ms)) {
	case FAULT_DELAY: way->state = WAY_DELAYS; break;
	case FAULT_DROP:
		way->state = WAY_WAITS;
		ms = ASK_AGAIN_MS;
		break;
	case FAULT_CUT: way->state = WAY_CUT; return true;
	default: return false;
	}
	deadline_set_in_full(f->stream->worker, &way->due, ms);
	return true;
}

static void way_goes_on(struct way *way)
{
	way->state = way->state == WAY_DELAYS ? WAY_PASSES : WAY_ASKS;
}

static void on_write_due(struct deadline *d)
{
	struct stream_fault *f = container_of(d, struct stream_fault, write.due);

	way_goes_on(&f->write);
	stream_flush_soon(f->stream);
}

static void on_read_due(struct deadline *d)
{
	struct stream_fault *f = container_of(d, struct stream_fault, read.due);

	way_goes_on(&f->read);
	if (f->stream->reading != READING_HELD)
		return;
	f->stream->reading = READING_KEPT;
	stream_flush_soon(f->stream);
}

/* Tell the other side to look, unless a rule holds that back. */
static void fault_ring(struct stream_fault *f)
{
	if (!way_holds(f, &f->bell))
		stream_send_bell(f->stream);
}

static void on_bell_due(struct deadline *d)
{
	struct stream_fault *f = container_of(d, struct stream_fault, bell.due);

	way_goes_on(&f->bell);
	fault_ring(f);
}

int stream_fault_holds_bell(struct stream *s)
{
	return s->fault && way_holds(s->fault, &s->fault->bell);
}

/* Write the first @len bytes of the output. Returns how many were written. */
static size_t fault_hand_out(struct stream *s, size_t len)
{
	size_t room_len;

	if (!s->rings) {
		int n = stream_send_now(s, s->out.data, len, 0);
		return n > 0 ? (size_t)n : 0;
	}
	uint8_t *room = rings_room(s->rings, &room_len);
	if (len > room_len)
		len = room_len;
	memcpy(room, s->out.data, len);
	if (rings_publish(s->rings, len))
		fault_ring(s->fault);
	return len;
}

/* Write half of a large output, and nothing more while the rule exists. */
static bool fault_holds_part(struct stream_fault *f)
{
	struct stream *s = f->stream;
	size_t gone = 0;

	if (f->parts == NO_PART_WENT && s->out.end < PART_OF)
		return false;
	if (fault_at(f->part, f->peer, NULL) != FAULT_DROP) {
		f->parts = NO_PART_WENT;
		return false;
	}
	if (f->parts == NO_PART_WENT)
		gone = fault_hand_out(s, s->out.end / 2);
	f->parts = A_PART_WENT;
	memmove(s->out.data, s->out.data + gone, s->out.end - gone);
	s->out.end -= (uint32_t)gone;
	s->written += (uint32_t)gone;
	f->write.state = WAY_WAITS;
	deadline_set(s->worker, &f->write.due, ASK_AGAIN_MS);
	return true;
}

int stream_fault_holds_write(struct stream *s)
{
	struct stream_fault *f = s->fault;

	if (!f)
		return 0;
	if (f->write.state == WAY_ASKS && fault_holds_part(f))
		return 1;
	if (!way_holds(f, &f->write))
		return 0;
	if (f->write.state == WAY_CUT) {
		stream_reset_on_close(s, true);
		stream_read_stop(s);
		stream_fail(s, UV_ECONNRESET);
	}
	return 1;
}

int stream_fault_watches(const struct stream *s)
{
	return s->fault && (fault_active() || s->fault->write.state != WAY_ASKS);
}

int stream_fault_holds_read(struct stream *s)
{
	return s->fault && way_holds(s->fault, &s->fault->read);
}

void stream_fault_pause_reading(struct stream *s)
{
	struct stream_fault *f = s->fault;

	if (!f || f->read.state == WAY_ASKS || f->read.state == WAY_PASSES)
		return;
	if (f->read.state == WAY_CUT) {
		stream_reset_on_close(s, true);
		stream_tell_end(s, UV_ECONNRESET);
		return;
	}
	uv_read_stop(&s->uv.stream);
	s->reading = READING_HELD;
}

void stream_fault_clear(struct stream *s)
{
	if (!s->fault)
		return;
	deadline_cancel(&s->fault->read.due);
	deadline_cancel(&s->fault->write.due);
	deadline_cancel(&s->fault->bell.due);
	free(s->fault);
	s->fault = NULL;
}

void stream_set_fault(struct stream *s, const char *name, const char *peer)
{
	if (s->state == STREAM_CLOSING)
		return;
	stream_fault_clear(s);
	struct stream_fault *f = calloc(1, sizeof *f);
	if (!f)
		return; /* tests also make memory run out: then this stream has no faults */
	f->stream = s;
	f->peer = peer;
	f->read.due.fn = on_read_due;
	f->write.due.fn = on_write_due;
	f->bell.due.fn = on_bell_due;
	snprintf(f->read.point, sizeof f->read.point, "%s.read", name);
	snprintf(f->write.point, sizeof f->write.point, "%s.write", name);
	snprintf(f->bell.point, sizeof f->bell.point, "%s.bell", name);
	snprintf(f->part, sizeof f->part, "%s.part", name);
	s->fault = f;
}
#endif
