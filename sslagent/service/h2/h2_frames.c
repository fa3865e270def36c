/* h2_frames.c: counts the bytes of the frames of one direction. */
#include "sslagent/service/h2/h2_frames.h"

#include <string.h>

static size_t take_head(struct h2_frames *f, const uint8_t *data, size_t len, enum h2_event *event)
{
	size_t n = H2_FRAME_HEAD_LEN - f->head_len;

	n = n < len ? n : len;
	memcpy(f->head + f->head_len, data, n);
	f->head_len = (uint8_t)(f->head_len + n);
	if (f->head_len < H2_FRAME_HEAD_LEN)
		return n;
	f->left = h2_frames_head(f).len;
	f->wanted = f->gathered_len = 0;
	*event = H2_HEAD;
	return n;
}

static size_t take_payload(struct h2_frames *f, const uint8_t *data, size_t len, enum h2_event *event)
{
	size_t n = f->wanted - f->gathered_len;

	if (n == 0) {
		n = f->left < len ? f->left : len;
	} else {
		n = n < len ? n : len;
		memcpy(f->gathered + f->gathered_len, data, n);
		f->gathered_len = (uint8_t)(f->gathered_len + n);
		*event = f->gathered_len == f->wanted ? H2_GATHERED : H2_NOTHING;
	}
	f->left -= (uint32_t)n;
	return n;
}

size_t h2_frames_take(struct h2_frames *f, const uint8_t *data, size_t len, enum h2_event *event)
{
	*event = H2_NOTHING;
	size_t n = f->head_len < H2_FRAME_HEAD_LEN ? take_head(f, data, len, event) : take_payload(f, data, len, event);

	if (f->head_len == H2_FRAME_HEAD_LEN && f->left == 0)
		f->head_len = 0;
	return n;
}

void h2_frames_want(struct h2_frames *f, size_t len)
{
	f->gathered_len = 0;
	f->wanted = len <= f->left ? (uint8_t)len : 0;
}

struct h2_frame h2_frames_head(const struct h2_frames *f)
{
	return (struct h2_frame){
		.len = (uint32_t)f->head[0] << 16 | wire_load_u16(f->head + 1),
		.type = f->head[3],
		.flags = f->head[4],
		.stream = wire_load_u32(f->head + 5) & H2_STREAM_MAX,
	};
}

size_t h2_frames_to_end(const struct h2_frames *f)
{
	if (f->head_len == 0)
		return 0;
	return f->head_len < H2_FRAME_HEAD_LEN ? H2_FRAME_HEAD_LEN - f->head_len : f->left;
}

void h2_put_head(struct wire_writer *w, const struct h2_frame *frame)
{
	wire_put_u24(w, frame->len);
	wire_put_u8(w, frame->type);
	wire_put_u8(w, frame->flags);
	wire_put_u32(w, frame->stream);
}
