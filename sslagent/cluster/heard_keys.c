/* heard_keys.c: a hash table; the ids are random. */
#include "sslagent/cluster/heard_keys.h"

#include <stdlib.h>

struct heard_keys {
	size_t mask;
	struct heard_key *buckets[];
};

struct heard_keys *heard_keys_create(unsigned senders)
{
	struct heard_keys *h;
	size_t buckets = 16;

	while (buckets < (size_t)senders * KEYS_HELD)
		buckets *= 2;
	h = calloc(1, sizeof *h + buckets * sizeof(struct heard_key *));
	if (h)
		h->mask = buckets - 1;
	return h;
}

static void key_free(struct heard_key *k)
{
	datagram_key_destroy(k->key);
	free(k);
}

void heard_keys_destroy(struct heard_keys *h)
{
	if (!h)
		return;
	for (size_t bucket = 0; bucket <= h->mask; bucket++)
		for (struct heard_key *next, *k = h->buckets[bucket]; k; k = next) {
			next = k->next;
			key_free(k);
		}
	free(h);
}

struct heard_key *heard_keys_find(const struct heard_keys *h, uint64_t id)
{
	struct heard_key *k = h->buckets[id & h->mask];

	while (k && k->id != id)
		k = k->next;
	return k;
}

struct heard_key *heard_keys_add(
	struct heard_keys *h, unsigned sender, unsigned workers, uint64_t id, enum aead aead, const uint8_t *secret)
{
	struct heard_key *k;

	if (heard_keys_find(h, id))
		return NULL;
	k = calloc(1, sizeof *k + (workers + 1) * sizeof(struct replay_window));
	if (!k)
		return NULL;
	k->key = datagram_key_create(id, aead, secret);
	if (!k->key) {
		free(k);
		return NULL;
	}
	k->id = id;
	k->sender = sender;
	k->workers = workers;
	k->next = h->buckets[id & h->mask];
	h->buckets[id & h->mask] = k;
	return k;
}

void heard_keys_remove(struct heard_keys *h, struct heard_key *k)
{
	struct heard_key **link = &h->buckets[k->id & h->mask];

	while (*link != k)
		link = &(*link)->next;
	*link = k->next;
	key_free(k);
}

void heard_key_prove(struct heard_key *k, const uint64_t *first)
{
	for (unsigned worker = 0; worker <= k->workers; worker++)
		replay_window_init(&k->windows[worker], first ? first[worker] : 0);
	k->state = KEY_PROVEN;
}
