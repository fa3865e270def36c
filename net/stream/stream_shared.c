/* stream_shared.c: a stream whose bytes go through memory that both processes share (rings.h). A byte on the socket is
 * a bell that wakes the other side. A side that is awake needs no bell, so under load there are few. The end of the
 * socket is the end of the stream, after all bytes in the ring.
 *
 * Bytes are copied between that memory and private memory in both directions, because the other process can write to it
 * at any moment: a cipher reads back its output to compute the tag, and a nonce read from there could be an old one
 * (laws 1 and 12). The owner also decrypts input in place, and the other process must not see that plaintext.
 */
#include <string.h>
#include <unistd.h>

#include "net/stream/stream_fault.h"
#include "net/stream/stream_kept.h"
#include "net/stream/stream_shared.h"
#include "net/stream/stream_state.h"

int stream_share(struct stream *s, int fd, enum rings_side side)
{
	if (s->state != STREAM_OPEN || s->kind != STREAM_KIND_UNIX || s->rings) {
		close(fd);
		return UV_EINVAL;
	}
	int r = rings_open(fd, side, &s->rings);
	if (r == 0)
		worker_at_turn_end(s->worker, &s->turn); /* for bytes that are there already */
	return r;
}

int stream_shared_fd(const struct stream *s)
{
	return s->rings ? rings_fd(s->rings) : -1;
}

/* Tell the other side to look. */
static void shared_ring(struct stream *s)
{
	if (!stream_fault_holds_bell(s))
		stream_send_bell(s);
}

/* --- output --- */

/* The other side may have cleared our request to be woken. A side that still waits makes a new request. */
bool stream_shared_is_full(struct stream *s)
{
	return rings_waits_for_room(s->rings) && !rings_wait_for_room(s->rings);
}

bool stream_shared_stage(struct stream *s, const void *data, size_t len)
{
	size_t room_len;

	if (stream_shared_is_full(s))
		return false;
	uint8_t *room = rings_room(s->rings, &room_len);
	if (s->out.end + len > room_len)
		return false;
	/* sealed in private memory, and only then copied to where the other process can write (laws 1 and 12) */
	if (s->out.end)
		memcpy(room, s->out.data, s->out.end);
	memcpy(room + s->out.end, data, len);
	rings_stage(s->rings, s->out.end + len);
	s->out.end = 0; /* the flush gives the buffer back */
	return true;
}

/* Copy as much of the output as there is room for. */
static size_t shared_copy_out(struct stream *s)
{
	size_t len;
	uint8_t *room = rings_room(s->rings, &len);

	if (len > s->out.end)
		len = s->out.end;
	if (len)
		memcpy(room, s->out.data, len);
	return len;
}

static void shared_wait_for_room(struct stream *s, size_t taken)
{
	if (taken)
		memmove(s->out.data, s->out.data + taken, s->out.end - taken);
	s->out.end -= (uint32_t)taken;
	if (rings_wait_for_room(s->rings))
		worker_at_turn_end(s->worker, &s->turn);
}

void stream_shared_flush(struct stream *s)
{
	size_t len = shared_copy_out(s);

	s->written += (uint32_t)(rings_staged(s->rings) + len);
	bool sleeps = rings_publish(s->rings, len);
	if (len == s->out.end) {
		s->out_last = s->out.end;
		stream_drop_output(s);
	} else {
		shared_wait_for_room(s, len);
	}
	if (sleeps)
		shared_ring(s);
}

/* --- input --- */

static void shared_give_room(struct stream *s, size_t len)
{
	if (rings_used(s->rings, len))
		shared_ring(s);
}

/* So many bytes that the owner used where they are; at most about a ring full of them. */
static size_t shared_read_in_place(struct stream *s)
{
	size_t all = 0, used = 1;

	while (used > 0 && all < RINGS_LEN && s->reading == READING_ON && stream_kept(s) == 0) {
		size_t len;
		const uint8_t *input = rings_input(s->rings, &len);
		used = input && len > 0 ? s->ops->on_shared(s, input, len) : 0;
		if (used > 0 && stream_is_open(s))
			shared_give_room(s, used);
		all += used;
	}
	return all;
}

/* One read of so many bytes. */
static size_t shared_read_once(struct stream *s)
{
	size_t len, most;
	const size_t in_place = s->ops->on_shared ? shared_read_in_place(s) : 0;

	if (s->reading != READING_ON)
		return in_place;
	const uint8_t *input = rings_input(s->rings, &len);
	if (!input) {
		stream_tell_end(s, UV_EPROTO);
		return 0;
	}
	if (len == 0 || in_place >= RINGS_LEN)
		return in_place;
	uint8_t *room = stream_read_room(s, &most);
	if (most == 0) {
		stream_tell_end(s, UV_ENOBUFS);
		return 0;
	}
	if (len > most)
		len = most;
	memcpy(room, input, len);
	shared_give_room(s, len);
	stream_deliver_read(s, len);
	return in_place + len;
}

/* This runs again at the end of the turn: bytes that arrive meanwhile need no bell. Only after that may this side
 * sleep. It does not wait for more in a loop: of 2 to 40 us of that a request cost 1.0 to 2.2 times the CPU, and took
 * longer (1, 4 and 16 busy connections on two processors). */
void stream_shared_look(struct stream *s)
{
	if (!stream_is_open(s) || s->reading != READING_ON)
		return;
	rings_stay_awake(s->rings);
	if (rings_has_input(s->rings) && stream_fault_holds_read(s)) {
		stream_fault_pause_reading(s);
		return;
	}
	size_t read = shared_read_once(s);
	if (stream_is_open(s) && s->reading == READING_ON && (read > 0 || rings_sleep(s->rings)))
		worker_at_turn_end(s->worker, &s->turn);
}

/* No rule may hold this read back, because the end is reported only once. There were not more bytes than fill the
 * ring. */
bool stream_shared_is_read(struct stream *s)
{
	size_t left = RINGS_LEN, read = 1;

	while (stream_is_open(s) && left > 0 && read > 0) {
		read = shared_read_once(s);
		left -= read < left ? read : left;
	}
	return stream_is_open(s) && s->reading == READING_ON;
}
