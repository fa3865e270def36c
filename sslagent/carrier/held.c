/* held.c: a list of blocks, oldest first, each with its frames in a row. No frame is moved, so a frame that is being
 * sent stays where it is while others are confirmed.
 */
#include "sslagent/carrier/held.h"

#include <stdbool.h>

#define ALIGNMENT 8u
#define RUN_LEN   (16u * 1024u) /* a stream that holds much takes blocks of so many bytes for small frames */

static size_t frame_len(size_t payload_len)
{
	const size_t len = offsetof(struct held_frame, wire) + FRAME_HEADER_LEN + payload_len;

	return (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static struct held_frame *frame_at(struct held_block *b, uint32_t at)
{
	return (struct held_frame *)(void *)(b->data + at);
}

/* --- out --- */

static void drop_block(struct held *h, struct buffers *buffers)
{
	struct held_block *b = h->first;

	h->first = b->next;
	h->len -= b->cap;
	if (!h->first)
		h->last = NULL;
	buffers_give(buffers, b, b->cap);
}

void held_clear(struct held *h, struct buffers *buffers)
{
	h->room = NULL;
	while (h->first)
		drop_block(h, buffers);
}

void held_give_up(struct held *h, struct buffers *buffers)
{
	held_clear(h, buffers);
	h->state = HELD_BROKEN;
}

static bool is_confirmed(const struct held *h, uint64_t number, uint64_t end)
{
	return number <= h->received && end <= h->drained;
}

void held_confirm(struct held *h, struct buffers *buffers, uint64_t bytes, uint64_t frames)
{
	h->drained = bytes;
	h->received = frames;
	h->room = NULL;
	while (h->first && is_confirmed(h, h->first->number, h->first->end))
		drop_block(h, buffers);
}

/* --- in --- */

/* A block for @len bytes of frames behind the last one. */
static int held_add_block(struct held *h, struct buffers *buffers, size_t len)
{
	const size_t needed = sizeof(struct held_block) + len, run = h->len < RUN_LEN ? h->len : RUN_LEN;
	uint32_t cap;
	struct held_block *b = buffers_take(buffers, needed > run ? needed : run, &cap);

	if (!b)
		return -1;
	*b = (struct held_block){ .cap = cap };
	if (h->first)
		h->last->next = b;
	else
		h->first = b;
	h->last = b;
	h->len += cap;
	return 0;
}

static bool held_has_room(const struct held *h, size_t len)
{
	const struct held_block *b = h->last;

	return b && b->cap - sizeof *b - b->len >= len;
}

uint8_t *held_room(struct held *h, struct buffers *buffers, size_t cap, size_t limit)
{
	const size_t len = frame_len(cap);

	h->room = NULL;
	if (h->state == HELD_BROKEN)
		return NULL;
	if (!held_has_room(h, len) && (h->len + len > limit || held_add_block(h, buffers, len) < 0)) {
		held_give_up(h, buffers);
		return NULL;
	}
	h->room = frame_at(h->last, h->last->len);
	return h->room->wire + FRAME_HEADER_LEN;
}

struct held_frame *held_add(struct held *h, enum frame_type type, uint8_t flags, size_t len)
{
	struct held_frame *f = h->room;

	if (!f)
		return NULL;
	h->room = NULL;
	h->frames++;
	h->bytes += type == FRAME_DATA ? len : 0;
	f->number = h->frames;
	f->end = h->bytes;
	f->len = (uint16_t)len;
	f->type = (uint8_t)type;
	f->flags = flags;
	h->last->number = f->number;
	h->last->end = f->end;
	h->last->len += (uint32_t)frame_len(len);
	return f;
}

/* --- what is here --- */

static struct held_frame *next_of_all(const struct held *h, struct held_walk *w)
{
	if (!w->block)
		*w = (struct held_walk){ h->first, 0 };
	while (w->block && w->at == w->block->len)
		*w = (struct held_walk){ w->block->next, 0 };
	if (!w->block)
		return NULL;
	struct held_frame *f = frame_at(w->block, w->at);
	w->at += (uint32_t)frame_len(f->len);
	return f;
}

struct held_frame *held_next(const struct held *h, struct held_walk *w)
{
	struct held_frame *f;

	do
		f = next_of_all(h, w);
	while (f && is_confirmed(h, f->number, f->end));
	return f;
}

uint64_t held_first(const struct held *h, uint64_t *bytes_before)
{
	const struct held_frame *f = held_next(h, &(struct held_walk){ 0 });

	*bytes_before = f ? f->end - (f->type == FRAME_DATA ? f->len : 0) : h->bytes;
	return f ? f->number : h->frames + 1;
}
