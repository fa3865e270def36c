/* table.h: a hash table that grows. Its owner embeds a link in each item, hashes the key and compares it. Without
 * memory to grow the chains become longer. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Embedded in an item. */
struct table_link {
	struct table_link *next;
	uint64_t hash;
};

/* Embedded; all zero is an empty table without memory of its own. */
struct table {
	struct table_link **buckets;
	size_t bucket_count, count;
};

/* As the key of an item that strangers can choose, only a keyed hash is good (crypto_shorthash()); ids that are random
 * need none. 0, or CSSL_E_NO_MEMORY: the table has no bucket at all. */
int table_add(struct table *t, struct table_link *link, uint64_t hash);
/* @link is in the table. */
void table_remove(struct table *t, struct table_link *link);
/* The items of that hash, the last added first: table_next() until NULL. */
struct table_link *table_first(const struct table *t, uint64_t hash);
struct table_link *table_next(const struct table_link *link);
/* Every item, in no order: NULL as @link gives the first. Only that item may be removed before the next is asked for,
 * and then the next is asked for first. */
struct table_link *table_walk(const struct table *t, const struct table_link *link);
/* Free the buckets; items are their owner's. The table is empty. */
void table_clear(struct table *t);
