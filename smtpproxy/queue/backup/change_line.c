/* change_line.c: a ring of changes, and a ring of the calls that carry the first of them. */
#include "smtpproxy/queue/backup/change_line.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/error.h"

#define RING_FIRST 256u

static int change_grow(struct change_line *l)
{
	uint32_t cap = l->cap ? 2 * l->cap : RING_FIRST;
	struct change *ring = malloc(cap * sizeof *ring);

	if (!ring)
		return CSSL_E_NO_MEMORY;
	for (uint32_t i = 0; i < l->count; i++)
		ring[i] = *change_at(l, i);
	free(l->ring);
	l->ring = ring;
	l->cap = cap;
	l->first = 0;
	return 0;
}

static struct destination_changes *change_counts(struct change_line *l, const struct item *i)
{
	return i && i->to ? &i->to->changes[l->backup] : &l->other;
}

int change_push(struct change_line *l, enum change_kind kind, struct item *i)
{
	if (l->count == l->cap && change_grow(l))
		return CSSL_E_NO_MEMORY;
	if (i)
		item_hold(i);
	change_counts(l, i)->unanswered++;
	*change_at(l, l->count++) = (struct change){ .item = i, .kind = kind };
	return 0;
}

static uint32_t change_bytes(const struct change *c)
{
	if (c->kind == CHANGE_PUT)
		return c->item->sealed_len + c->item->note_len;
	return c->kind == CHANGE_REPLACE ? c->item->note_len : ITEM_FIELD_LEN;
}

static bool change_fits(struct change_line *l, const struct change_call *call)
{
	const struct change *c = change_at(l, l->sent + call->changes);
	const struct change *before = change_at(l, l->sent + call->changes - 1);

	if (c->kind != before->kind || c->kind == CHANGE_MARK)
		return false;
	/* One call stores a message and its decided transaction, so that no server has only one of them. */
	if (c->kind == CHANGE_PUT && before->item->with == c->item)
		return true;
	return call->changes < CALL_CHANGES_MAX && call->bytes + change_bytes(c) <= CALL_BYTES_MAX;
}

uint32_t change_next_call(struct change_line *l, uint64_t version, struct change_call *call)
{
	*call = (struct change_call){ .version = version };
	if (l->sent == l->count || l->calls_count == WINDOW_CALLS_MAX || l->bytes >= WINDOW_BYTES_MAX)
		return 0;
	/* A full server refuses a PUT and takes the MARK behind it, and the marker would be wrong until it is
	 * overwritten: for ever, if this gateway dies. So a MARK leaves when all before it is answered, and a refusal
	 * drops it. */
	if (l->sent && change_at(l, l->sent)->kind == CHANGE_MARK)
		return 0;
	do {
		call->bytes += change_bytes(change_at(l, l->sent + call->changes));
		call->changes++;
	} while (l->sent + call->changes < l->count && change_fits(l, call));
	l->calls[(l->calls_first + l->calls_count++) % WINDOW_CALLS_MAX] = *call;
	l->sent += call->changes;
	l->bytes += call->bytes;
	return call->changes;
}

struct change_call change_call_answered(struct change_line *l)
{
	struct change_call call = l->calls[l->calls_first];

	assert(l->calls_count);
	l->calls_first = (l->calls_first + 1) % WINDOW_CALLS_MAX;
	l->calls_count--;
	l->bytes -= call.bytes;
	return call;
}

struct change change_pop(struct change_line *l, enum change_outcome outcome)
{
	struct change c = *change_at(l, 0);

	assert(l->count && l->sent);
	change_counts(l, c.item)->unanswered--;
	change_counts(l, c.item)->answered += outcome == CHANGE_MADE;
	l->first = (l->first + 1) & (l->cap - 1);
	l->count--;
	l->sent--;
	return c;
}

uint32_t change_unsend(struct change_line *l)
{
	uint32_t sent = l->sent;

	l->sent = l->calls_first = l->calls_count = 0;
	l->bytes = 0;
	return sent;
}

void change_clear(struct change_line *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct item *item = change_at(l, i)->item;

		change_counts(l, item)->unanswered--;
		if (item)
			item_drop(item);
	}
	free(l->ring);
	*l = (struct change_line){ .backup = l->backup };
}
