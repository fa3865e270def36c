/* item.c: the index is a table of pointers with linear probing; a multiplication spreads the ids. A removal moves
 * the later items of a run back, so there are no dead slots. */
#include "smtpproxy/queue/items/item.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define SLOTS_FIRST 1024u
#define TO(state)   (1u << ITEM_##state)

static const struct {
	const char *name;
	unsigned may_move_to;
} states[ITEM_STATES] = {
	[ITEM_STORING] = { "storing",
		TO(PARKED) | TO(READY) | TO(DEFERRED) | TO(HELD) | TO(KEPT) | TO(OPAQUE) | TO(GONE) },
	[ITEM_PARKED] = { "parked", TO(READY) | TO(GONE) },
	[ITEM_READY] = { "ready", TO(TAKEN) | TO(HELD) | TO(GONE) },
	[ITEM_TAKEN] = { "taken", TO(READY) | TO(DEFERRED) | TO(HELD) | TO(GONE) },
	[ITEM_DEFERRED] = { "deferred", TO(READY) | TO(HELD) | TO(GONE) },
	[ITEM_HELD] = { "held", TO(STORING) | TO(READY) | TO(GONE) },
	[ITEM_KEPT] = { "kept", TO(GONE) },
	[ITEM_OPAQUE] = { "unreadable", TO(STORING) },
	[ITEM_GONE] = { "gone", 0 },
};

void item_move(struct item *i, enum item_state to)
{
	assert(states[i->state].may_move_to & 1u << to);
	i->state = (uint8_t)to;
}

const char *item_state_name(enum item_state s)
{
	return states[s].name;
}

static size_t slot_home(const struct item_set *set, uint64_t id)
{
	return (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (set->cap - 1);
}

static void slot_place(struct item_set *set, struct item *i)
{
	size_t at = slot_home(set, i->id);

	while (set->slots[at])
		at = (at + 1) & (set->cap - 1);
	set->slots[at] = i;
}

static int slots_make_room(struct item_set *set)
{
	size_t cap = set->cap ? 2 * set->cap : SLOTS_FIRST;
	struct item **slots;

	if (set->cap && 4 * (set->count + 1) <= 3 * set->cap)
		return 0;
	slots = calloc(cap, sizeof *slots);
	if (!slots)
		return CSSL_E_NO_MEMORY;
	free(set->slots);
	set->slots = slots;
	set->cap = cap;
	for (struct item *i = set->oldest; i; i = i->newer)
		slot_place(set, i);
	return 0;
}

struct item *item_add(struct item_set *set, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t sealed_len)
{
	struct item *i;

	if (slots_make_room(set))
		return NULL;
	i = calloc(1, sizeof *i);
	if (!i)
		return NULL;
	i->id = id;
	i->kind = (uint8_t)kind;
	i->sealed = sealed;
	i->sealed_len = (uint32_t)sealed_len;
	i->refs = 1;
	i->older = set->newest;
	*(set->newest ? &set->newest->newer : &set->oldest) = i;
	set->newest = i;
	slot_place(set, i);
	set->count++;
	set->bytes += sealed_len;
	return i;
}

static size_t slot_find(const struct item_set *set, uint64_t id)
{
	size_t at;

	if (!set->cap)
		return SIZE_MAX;
	for (at = slot_home(set, id); set->slots[at]; at = (at + 1) & (set->cap - 1))
		if (set->slots[at]->id == id)
			return at;
	return SIZE_MAX;
}

struct item *item_find(const struct item_set *set, uint64_t id)
{
	size_t at = slot_find(set, id);

	return at == SIZE_MAX ? NULL : set->slots[at];
}

static void slot_clear(struct item_set *set, size_t hole)
{
	size_t mask = set->cap - 1;

	for (size_t at = (hole + 1) & mask; set->slots[at]; at = (at + 1) & mask) {
		size_t wanted = slot_home(set, set->slots[at]->id);

		if (((at - wanted) & mask) < ((at - hole) & mask))
			continue; /* it must not be in front of where it belongs */
		set->slots[hole] = set->slots[at];
		hole = at;
	}
	set->slots[hole] = NULL;
}

void item_remove(struct item_set *set, struct item *i)
{
	size_t at = slot_find(set, i->id);

	assert(at != SIZE_MAX);
	slot_clear(set, at);
	*(i->older ? &i->older->newer : &set->oldest) = i->newer;
	*(i->newer ? &i->newer->older : &set->newest) = i->older;
	i->older = i->newer = NULL;
	set->count--;
	set->bytes -= i->sealed_len + i->note_len;
	item_drop(i);
}

void item_set_sealed(struct item_set *set, struct item *i, uint8_t *sealed, size_t len)
{
	set->bytes += len;
	set->bytes -= i->sealed_len;
	i->sealed = sealed;
	i->sealed_len = (uint32_t)len;
}

void item_set_note(struct item_set *set, struct item *i, uint8_t *note, size_t len)
{
	set->bytes += len;
	set->bytes -= i->note_len;
	free(i->note);
	i->note = note;
	i->note_len = (uint32_t)len;
}

void item_drop(struct item *i)
{
	assert(i->refs);
	if (--i->refs)
		return;
	if (i->with)
		item_drop(i->with);
	free(i->sealed);
	free(i->note);
	free(i);
}

void item_set_clear(struct item_set *set)
{
	while (set->oldest)
		item_remove(set, set->oldest);
	free(set->slots);
	memset(set, 0, sizeof *set);
}

void item_field(enum item_kind kind, uint64_t id, char out[static ITEM_FIELD_LEN])
{
	static const char digits[] = "0123456789abcdef";

	out[0] = (char)kind;
	for (unsigned i = 0; i < 16; i++)
		out[1 + i] = digits[id >> (60 - 4 * i) & 15];
}

int item_field_parse(const char *field, size_t len, enum item_kind *kind, uint64_t *id)
{
	static const char kinds[] = { ITEM_MESSAGE, ITEM_STATE, ITEM_DECIDED, ITEM_ORDER, ITEM_GRAVE };
	char hex[ITEM_FIELD_LEN] = "";

	if (len != ITEM_FIELD_LEN || !memchr(kinds, field[0], sizeof kinds))
		return CSSL_E_RANGE;
	memcpy(hex, field + 1, sizeof hex - 1);
	if (strspn(hex, "0123456789abcdef") != sizeof hex - 1)
		return CSSL_E_RANGE;
	*kind = (enum item_kind)field[0];
	*id = strtoull(hex, NULL, 16);
	return 0;
}
