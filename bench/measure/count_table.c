/* count_table.c: open addressing with linear probing, doubled at three quarters full; nothing is ever removed. */
#include "bench/measure/count_table.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define FIRST_SLOTS 1024u

struct entry {
	char id[COUNT_ID_MAX]; /* zero-padded; id[0] 0: free */
	uint64_t count;
};

struct count_table {
	struct entry *slots;
	size_t mask, used;
	struct count_totals totals;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
};

struct count_table *count_table_create(void)
{
	struct count_table *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->slots = calloc(FIRST_SLOTS, sizeof *t->slots);
	if (!t->slots) {
		free(t);
		return NULL;
	}
	t->mask = FIRST_SLOTS - 1;
	crypto_shorthash_keygen(t->hash_key);
	return t;
}

void count_table_destroy(struct count_table *t)
{
	if (!t)
		return;
	free(t->slots);
	free(t);
}

/* The id zero-padded to its fixed length, so that equal ids are equal memory. */
static int pad_id(const char *id, char out[static COUNT_ID_MAX])
{
	static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(id);
	if (len == 0 || len > COUNT_ID_MAX || strspn(id, legal) != len)
		return CSSL_E_RANGE;
	memset(out, 0, COUNT_ID_MAX);
	memcpy(out, id, len);
	return 0;
}

/* The slot of that id, or the free one where it belongs. */
static struct entry *find(const struct count_table *t, const char id[static COUNT_ID_MAX])
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t at;
	crypto_shorthash(hash, (const uint8_t *)id, COUNT_ID_MAX, t->hash_key);
	memcpy(&at, hash, sizeof at);
	for (;; at++) {
		struct entry *e = &t->slots[at & t->mask];
		if (e->id[0] == 0 || memcmp(e->id, id, COUNT_ID_MAX) == 0)
			return e;
	}
}

static int grow(struct count_table *t)
{
	struct entry *old = t->slots;
	size_t old_count = t->mask + 1;
	struct entry *wider = calloc(old_count * 2, sizeof *wider);
	if (!wider)
		return CSSL_E_NO_MEMORY;
	t->slots = wider;
	t->mask = old_count * 2 - 1;
	for (size_t i = 0; i < old_count; i++) {
		if (old[i].id[0])
			*find(t, old[i].id) = old[i];
	}
	free(old);
	return 0;
}

int64_t count_table_add(struct count_table *t, const char *id)
{
	char padded[COUNT_ID_MAX];
	int r = pad_id(id, padded);
	if (r)
		return r;
	struct entry *e = find(t, padded);
	if (e->id[0] == 0) {
		if (t->used == COUNT_TABLE_MAX)
			return CSSL_E_FULL;
		if (t->used >= (t->mask + 1) / 4 * 3) {
			r = grow(t);
			if (r)
				return r;
			e = find(t, padded);
		}
		memcpy(e->id, padded, COUNT_ID_MAX);
		t->used++;
		t->totals.ids++;
	}
	e->count++;
	t->totals.executions++;
	if (e->count > t->totals.most)
		t->totals.most = e->count;
	return (int64_t)e->count;
}

uint64_t count_table_get(const struct count_table *t, const char *id)
{
	char padded[COUNT_ID_MAX];
	return pad_id(id, padded) ? 0 : find(t, padded)->count;
}

struct count_totals count_table_totals(const struct count_table *t)
{
	return t->totals;
}
