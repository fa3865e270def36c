/* owner.c: see owner.h. */
#include <stdlib.h>
#include <string.h>

#include "owner.h"

#define GOT_MAX ((size_t)64 << 20)

static void tell(struct owner *o, enum owner_event event)
{
	ck_assert_uint_eq(o->closed, 0);
	ck_assert_int_ne(o->s.state, STREAM_CLOSING);
	o->told[event]++;
	if (o->react)
		o->react(o, event);
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct owner *o = (struct owner *)s;
	size_t used = len < o->use_max ? len : o->use_max;

	ck_assert_uint_gt(len, 0);
	ck_assert_uint_le(o->got_len + used, GOT_MAX);
	o->got = realloc(o->got, o->got_len + used + 1);
	memcpy(o->got + o->got_len, data, used);
	o->got_len += used;
	o->data_len = len;
	o->data_max = len > o->data_max ? len : o->data_max;
	tell(o, OWNER_DATA);
	return used;
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct owner *o = (struct owner *)s;

	o->end = end;
	o->end_error = uv_error;
	tell(o, OWNER_END);
}

static void on_written(struct stream *s, size_t len)
{
	struct owner *o = (struct owner *)s;

	ck_assert_uint_gt(len, 0);
	o->written += len;
	tell(o, OWNER_WRITTEN);
}

static void on_connected(struct stream *s, int uv_error)
{
	struct owner *o = (struct owner *)s;

	o->connect_error = uv_error;
	tell(o, OWNER_CONNECTED);
}

static void on_flush(struct stream *s)
{
	tell((struct owner *)s, OWNER_FLUSH);
}

static void on_fd(struct stream *s, int fd)
{
	struct owner *o = (struct owner *)s;

	o->fd = fd;
	o->got_len_at_fd = o->got_len;
	tell(o, OWNER_FD);
}

static void on_closed(struct stream *s)
{
	struct owner *o = (struct owner *)s;

	ck_assert_int_eq(s->state, STREAM_CLOSED);
	o->closed++;
}

const struct stream_ops owner_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_written = on_written,
	.on_connected = on_connected,
	.on_flush = on_flush,
	.on_fd = on_fd,
	.on_closed = on_closed,
};

void owner_init(struct owner *o)
{
	memset(o, 0, sizeof *o);
	o->use_max = SIZE_MAX;
	o->fd = -1;
}

int owner_open(struct owner *o, enum transport over)
{
	int fds[2];

	owner_init(o);
	socket_pair(over, fds);
	ck_assert_int_eq(stream_open_fd(&o->s, w, &owner_ops, fds[0]), 0);
	stream_read_start(&o->s);
	return fds[1];
}

void owner_finish(struct owner *o)
{
	if (o->s.state != STREAM_NEW && !o->closed) {
		stream_close(&o->s);
		ck_assert_uint_eq(o->closed, 0);
		wait_until(o->closed);
	}
	ck_assert_uint_le(o->closed, 1);
	free(o->got);
	o->got = NULL;
}

void pattern(uint8_t *out, size_t len, size_t from)
{
	for (size_t i = 0; i < len; i++) {
		size_t at = from + i;
		out[i] = (uint8_t)(at ^ (at >> 8) * 31 ^ (at >> 16) * 17);
	}
}

void assert_pattern(const uint8_t *data, size_t len, size_t from)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t expected;
		pattern(&expected, 1, from + i);
		if (data[i] != expected)
			ck_abort_msg("byte %zu is wrong", from + i);
	}
}
