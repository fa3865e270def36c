/* copies.c: one current and one pending sealed copy. This file cannot read them; it compares only their generations. */
#include "ragent/connection/ownership/copies.h"

#include <string.h>

#include "proto/error.h"

void sealed_blob_drop(struct sealed_blob **place, struct blocks *from)
{
	if (*place)
		fine_block_give(from, *place, sealed_blob_len(*place));
	*place = NULL;
}

void sealed_blob_part(struct sealed_blob **current, struct sealed_blob **former, struct blocks *from)
{
	if (*former) {
		sealed_blob_drop(current, from);
		return;
	}
	*former = *current;
	*current = NULL;
}

int sealed_blob_make(struct sealed_blob **out, struct blocks *from, const struct copy_offer *o)
{
	*out = NULL;
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
	*out = b;
	return 0;
}

int copies_set(struct copies *c, struct blocks *from, const struct copy_offer *o)
{
	struct sealed_blob *fresh;
	int r = sealed_blob_make(&fresh, from, o);

	if (!fresh)
		return r;
	sealed_blob_drop(&c->pending, from); /* it is older than the one that came now */
	sealed_blob_part(&c->current, &c->former, from);
	c->current = fresh;
	return 0;
}

int copies_offer(struct copies *c, struct blocks *from, const struct copy_offer *o)
{
	struct sealed_blob *fresh;
	int r = sealed_blob_make(&fresh, from, o);

	if (!fresh)
		return r;
	sealed_blob_drop(&c->pending, from);
	c->pending = fresh;
	return 0;
}

bool copies_commit(struct copies *c, struct blocks *from, const struct position *p)
{
	if (!c->pending || !position_reached(p, c->pending->read_generation, c->pending->write_generation))
		return false;
	sealed_blob_part(&c->current, &c->former, from);
	c->current = c->pending;
	c->pending = NULL;
	return true;
}

void copies_clear(struct copies *c, struct blocks *from)
{
	sealed_blob_drop(&c->current, from);
	sealed_blob_drop(&c->pending, from);
	sealed_blob_drop(&c->former, from);
}
