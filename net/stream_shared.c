/* stream_shared.c: a stream whose bytes go through memory that both processes have (rings.h). A byte on the socket is a
 * bell: look. Whoever is awake is not rung for, so at load there are few. The socket's end still is the stream's end,
 * behind what the ring has.
 *
 * Output collects right in the ring and is published by a flush; while the ring is full it collects in a buffer as
 * anywhere else. Input is copied out of the ring before anybody looks at it, because the other process can still write
 * there; that also keeps what the owner makes of it in place, a client's plaintext, to this process.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream_inside.h"

int stream_share(struct stream *s, int fd, enum rings_side side)
{
	if (s->state != STREAM_OPEN || s->kind != STREAM_KIND_UNIX || s->rings) {
		close(fd);
		return UV_EINVAL;
	}
	int r = rings_open(fd, side, &s->rings);
	if (r == 0)
		worker_at_turn_end(s->worker, &s->turn); /* what is there already */
	return r;
}

int stream_shared_fd(const struct stream *s)
{
	return s->rings ? rings_fd(s->rings) : -1;
}

/* A socket that is full of bells rings. */
static void ring_bell(struct stream *s)
{
	if (send(stream_fileno(s), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		stream_fail(s, -errno);
}

/* --- output --- */

int stream_shared_grow(struct stream *s, size_t needed)
{
	size_t len;

	if (s->out.data && !rings_owns(s->rings, s->out.data))
		return 0; /* behind what waits for room */
	uint8_t *room = rings_room(s->rings, &len);
	if (len < needed)
		return 0;
	s->out.data = room;
	s->out.cap = (uint32_t)len;
	worker_at_turn_end(s->worker, &s->turn);
	return 1;
}

/* As much of the waiting output as there is room for. */
static size_t copy_out(struct stream *s)
{
	size_t len;
	uint8_t *room = rings_room(s->rings, &len);

	if (len > s->out.end)
		len = s->out.end;
	memcpy(room, s->out.data, len);
	return len;
}

static void wait_for_room(struct stream *s, size_t taken)
{
	if (taken)
		memmove(s->out.data, s->out.data + taken, s->out.end - taken);
	s->out.end -= (uint32_t)taken;
	if (rings_wait_for_room(s->rings))
		worker_at_turn_end(s->worker, &s->turn);
}

void stream_shared_flush(struct stream *s)
{
	size_t len = rings_owns(s->rings, s->out.data) ? s->out.end : copy_out(s);
	int sleeps = rings_publish(s->rings, len);

	s->written += (uint32_t)len;
	if (len == s->out.end) {
		s->out_last = s->out.end;
		stream_out_give_back(s);
	} else {
		wait_for_room(s, len);
	}
	if (sleeps)
		ring_bell(s);
}

/* --- input --- */

static void take(struct stream *s, const uint8_t *input, size_t len)
{
	size_t most;
	uint8_t *room = stream_read_room(s, &most);

	if (most == 0) {
		stream_tell_end(s, UV_ENOBUFS);
		return;
	}
	if (len > most)
		len = most;
	memcpy(room, input, len);
	if (rings_used(s->rings, len))
		ring_bell(s);
	stream_deliver_read(s, len);
}

/* One read. 1: it read something. */
static int read_once(struct stream *s)
{
	size_t len;

	if (s->reading != READING_ON)
		return 0;
	const uint8_t *input = rings_input(s->rings, &len);
	if (!input) {
		stream_tell_end(s, UV_EPROTO);
		return 0;
	}
	if (len == 0)
		return 0;
	if (stream_fault_holds_read(s)) {
		stream_fault_pause_reading(s);
		return 0;
	}
	take(s, input, len);
	return 1;
}

/* The end of a turn comes here again, so that what arrives meanwhile needs no bell, and only then is it time to sleep.
 */
void stream_shared_look(struct stream *s)
{
	if (!stream_is_open(s) || s->reading != READING_ON)
		return;
	rings_stay_awake(s->rings);
	int again = read_once(s);
	if (stream_is_open(s) && s->reading == READING_ON && (again || rings_sleep(s->rings)))
		worker_at_turn_end(s->worker, &s->turn);
}

int stream_shared_is_read(struct stream *s)
{
	while (stream_is_open(s) && read_once(s))
		;
	return stream_is_open(s) && s->reading == READING_ON;
}
