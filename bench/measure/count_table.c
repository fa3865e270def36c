/* count_table.c: an entry for each id; nothing is ever removed. */
#include "bench/measure/count_table.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/memory/table.h"
#include "proto/error.h"

struct entry {
	struct table_link link;
	char id[COUNT_ID_MAX]; /* zero-padded */
	uint64_t count;
};

struct count_table {
	struct table entries;
	struct count_totals totals;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
};

struct count_table *count_table_create(void)
{
	struct count_table *t = calloc(1, sizeof *t);
	if (t)
		crypto_shorthash_keygen(t->hash_key);
	return t;
}

void count_table_destroy(struct count_table *t)
{
	if (!t)
		return;
	for (struct table_link *l = table_walk(&t->entries, NULL), *next; l; l = next) {
		next = table_walk(&t->entries, l);
		free(container_of(l, struct entry, link));
	}
	table_clear(&t->entries);
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

static uint64_t count_table_hash_of(const struct count_table *t, const char id[static COUNT_ID_MAX])
{
	uint64_t hash;
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)id, COUNT_ID_MAX, t->hash_key);
	return hash;
}

/* NULL: there is none. */
static struct entry *count_table_find(const struct count_table *t, const char id[static COUNT_ID_MAX])
{
	struct table_link *l = table_first(&t->entries, count_table_hash_of(t, id));
	while (l && memcmp(container_of(l, struct entry, link)->id, id, COUNT_ID_MAX) != 0)
		l = table_next(l);
	return l ? container_of(l, struct entry, link) : NULL;
}

/* NULL: out of memory. */
static struct entry *count_table_enter(struct count_table *t, const char id[static COUNT_ID_MAX])
{
	struct entry *e = calloc(1, sizeof *e);
	if (!e || table_add(&t->entries, &e->link, count_table_hash_of(t, id)) < 0) {
		free(e);
		return NULL;
	}
	memcpy(e->id, id, COUNT_ID_MAX);
	t->totals.ids++;
	return e;
}

int64_t count_table_add(struct count_table *t, const char *id)
{
	char padded[COUNT_ID_MAX];
	int r = pad_id(id, padded);
	if (r)
		return r;
	struct entry *e = count_table_find(t, padded);
	if (!e && t->totals.ids == COUNT_TABLE_MAX)
		return CSSL_E_FULL;
	if (!e && !(e = count_table_enter(t, padded)))
		return CSSL_E_NO_MEMORY;
	e->count++;
	t->totals.executions++;
	if (e->count > t->totals.most)
		t->totals.most = e->count;
	return (int64_t)e->count;
}

uint64_t count_table_get(const struct count_table *t, const char *id)
{
	char padded[COUNT_ID_MAX];
	const struct entry *e = pad_id(id, padded) ? NULL : count_table_find(t, padded);
	return e ? e->count : 0;
}

struct count_totals count_table_totals(const struct count_table *t)
{
	return t->totals;
}
