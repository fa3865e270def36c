/* copies.c: one current and one pending sealed copy. This file cannot read them; it compares only their generations. */
#include "ragent/connection/copies.h"

#include <string.h>

#include "proto/error.h"

static void drop(struct sealed_blob **place, struct fine_blocks *from)
{
	if (*place)
		fine_block_give(from, *place, sealed_blob_len(*place));
	*place = NULL;
}

static int replace(struct sealed_blob **place, struct fine_blocks *from, const struct copy_offer *o)
{
	if (o->len == 0)
		return 0;
	if (o->len > COPY_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct sealed_blob *b = fine_block_take(from, sizeof *b + o->len);
	if (!b)
		return CSSL_E_NO_MEMORY;
	b->read_generation = o->read_generation;
	b->write_generation = o->write_generation;
	b->len = (uint32_t)o->len;
	memcpy(b->data, o->data, o->len);
	struct sealed_blob *before = *place;
	*place = b;
	drop(&before, from);
	return 0;
}

int copies_set(struct copies *c, struct fine_blocks *from, const struct copy_offer *o)
{
	int r = replace(&c->current, from, o);

	if (r == 0 && o->len)
		drop(&c->pending, from); /* it is older than the one that came now */
	return r;
}

int copies_offer(struct copies *c, struct fine_blocks *from, const struct copy_offer *o)
{
	return replace(&c->pending, from, o);
}

int copies_commit(struct copies *c, struct fine_blocks *from, const struct position *p)
{
	if (!c->pending || !position_reached(p, c->pending->read_generation, c->pending->write_generation))
		return 0;
	drop(&c->former, from);
	c->former = c->current;
	c->current = c->pending;
	c->pending = NULL;
	return 1;
}

void copies_forget_former(struct copies *c, struct fine_blocks *from)
{
	drop(&c->former, from);
}

void copies_clear(struct copies *c, struct fine_blocks *from)
{
	drop(&c->current, from);
	drop(&c->pending, from);
	drop(&c->former, from);
}
