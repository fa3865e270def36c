/* copies.c: one current and one pending sealed copy. This file cannot read them; it compares only their generations. */
#include "ragent/connection/ownership/copies.h"

#include <string.h>

#include "net/points/fault.h"
#include "proto/error.h"

void sealed_blob_drop(struct sealed_blob **place, struct blocks *from)
{
	if (*place)
		fine_block_give(from, *place, sealed_blob_len(*place));
	*place = NULL;
}

/* *@current goes. The valid image for the next process may name it, so it waits as *@former until another image is
 * valid. If one waits already, no image names the current one. */
static void blob_part(struct sealed_blob **current, struct sealed_blob **former, struct blocks *from)
{
	if (*former) {
		sealed_blob_drop(current, from);
		return;
	}
	*former = *current;
	*current = NULL;
}

static int blob_make(struct sealed_blob **out, struct blocks *from, const struct copy_offer *o)
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

static void copies_go_on(struct copies *c, struct blocks *from)
{
	blob_part(&c->current, &c->former, from);
	c->current = c->pending;
	c->pending = NULL;
}

int copies_offer(struct copies *c, struct blocks *from, const struct copy_offer *o)
{
	struct sealed_blob *fresh;
	int r = blob_make(&fresh, from, o);

	if (!fresh)
		return r;
	sealed_blob_drop(&c->pending, from); /* it is older than the one that came now */
	c->pending = fresh;
	if (o->of == COPY_OF_LIVE)
		copies_go_on(c, from);
	return 0;
}

bool copies_commit(struct copies *c, struct blocks *from, const struct position *p)
{
	if (!c->pending || !position_reached(p, c->pending->read_generation, c->pending->write_generation))
		return false;
	copies_go_on(c, from);
	return true;
}

void copies_clear(struct copies *c, struct blocks *from)
{
	sealed_blob_drop(&c->current, from);
	sealed_blob_drop(&c->pending, from);
	sealed_blob_drop(&c->former, from);
}

int note_set(struct note *n, struct blocks *from, const uint8_t *data, size_t len)
{
	struct sealed_blob *fresh;
	int r = blob_make(&fresh, from, &(struct copy_offer){ .data = data, .len = len });

	if (!fresh)
		return r < 0 ? r : CSSL_E_TOO_LONG;
	note_drop(n, from);
	n->current = fresh;
	fault_at("note.set", NULL, NULL);
	return 0;
}

void note_drop(struct note *n, struct blocks *from)
{
	blob_part(&n->current, &n->former, from);
}
