/* held.c: a list, oldest first. Each frame has memory of its own, so that nothing is moved while others are confirmed.
 */
#include "sslagent/carrier/held.h"

#include <stdlib.h>
#include <string.h>

static void drop_first(struct held *h)
{
	struct held_frame *f = h->first;

	h->first = f->next;
	h->len -= sizeof *f + f->len;
	free(f);
}

void held_clear(struct held *h)
{
	while (h->first)
		drop_first(h);
}

void held_give_up(struct held *h)
{
	held_clear(h);
	h->state = HELD_BROKEN;
}

static void append(struct held *h, struct held_frame *f)
{
	if (h->first)
		h->last->next = f;
	else
		h->first = f;
	h->last = f;
	h->len += sizeof *f + f->len;
}

static void drop_confirmed(struct held *h)
{
	while (h->first && h->first->number <= h->received && h->first->end <= h->drained)
		drop_first(h);
}

void held_add(struct held *h, enum frame_type type, uint8_t flags, const uint8_t *payload, size_t len, size_t limit)
{
	if (h->state == HELD_BROKEN)
		return;
	struct held_frame *f = h->len + sizeof *f + len <= limit ? malloc(sizeof *f + len) : NULL;
	if (!f) {
		held_give_up(h);
		return;
	}
	h->frames++;
	h->bytes += type == FRAME_DATA ? len : 0;
	*f = (struct held_frame){
		.number = h->frames, .end = h->bytes, .len = (uint16_t)len, .type = (uint8_t)type, .flags = flags
	};
	if (len)
		memcpy(f->payload, payload, len);
	append(h, f);
	drop_confirmed(h);
}

void held_drained(struct held *h, uint64_t bytes)
{
	h->drained = bytes;
	drop_confirmed(h);
}

void held_received(struct held *h, uint64_t frames)
{
	h->received = frames;
	drop_confirmed(h);
}

uint64_t held_first(const struct held *h)
{
	return h->first ? h->first->number : h->frames + 1;
}

uint64_t held_first_byte(const struct held *h)
{
	if (!h->first)
		return h->bytes;
	return h->first->end - (h->first->type == FRAME_DATA ? h->first->len : 0);
}
