/* connection_table.c: connections of a worker by id. Ids are random, so their first bytes are the hash. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/connection/connection.h"

static struct connection **bucket_of(const struct connection_table *t, const struct connection_id *id)
{
	uint64_t hash;

	memcpy(&hash, id->bytes, sizeof hash);
	return &t->buckets[hash & (t->bucket_count - 1)];
}

struct connection *connection_table_find(const struct connection_table *t, const struct connection_id *id)
{
	if (t->count == 0)
		return NULL;
	for (struct connection *c = *bucket_of(t, id); c; c = c->next_by_id) {
		if (memcmp(&c->id, id, sizeof *id) == 0)
			return c;
	}
	return NULL;
}

struct connection *connection_table_find_sealing(const struct connection_table *t, const struct connection_id *id)
{
	if (t->count == 0)
		return NULL;
	for (struct connection *c = *bucket_of(t, id); c; c = c->next_by_id) {
		if (c->live && c->state != CONNECTION_FROZEN && memcmp(&c->id, id, sizeof *id) == 0)
			return c;
	}
	return NULL;
}

static int grow(struct connection_table *t)
{
	size_t bucket_count = t->bucket_count ? t->bucket_count * 2 : CONNECTION_TABLE_MIN;
	struct connection_table bigger = { calloc(bucket_count, sizeof *bigger.buckets), bucket_count, t->count };

	if (!bigger.buckets)
		return CSSL_E_NO_MEMORY;
	for (size_t i = 0; i < t->bucket_count; i++) {
		for (struct connection *c = t->buckets[i], *next; c; c = next) {
			struct connection **at = bucket_of(&bigger, &c->id);
			next = c->next_by_id;
			c->next_by_id = *at;
			*at = c;
		}
	}
	free(t->buckets);
	*t = bigger;
	return 0;
}

int connection_table_add(struct connection_table *t, struct connection *c)
{
	if (t->count >= t->bucket_count && grow(t) < 0)
		return CSSL_E_NO_MEMORY;
	struct connection **at = bucket_of(t, &c->id);
	c->next_by_id = *at;
	*at = c;
	t->count++;
	return 0;
}

void connection_table_remove(struct connection_table *t, struct connection *c)
{
	for (struct connection **at = bucket_of(t, &c->id); *at; at = &(*at)->next_by_id) {
		if (*at == c) {
			*at = c->next_by_id;
			t->count--;
			return;
		}
	}
}
