/* ticket_keys.c: a short list, newest first. Agents with slightly different clocks may choose different keys for a
 * moment. That is no harm: each agent opens tickets under both. */
#include "sslagent/sessions/ticket_keys.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/counters.h"

#define REACHES_ALL_MS 2000

struct key_list {
	unsigned count;
	struct cluster_ticket_key at[TICKET_KEYS_MAX];
};

struct ticket_keys {
	pthread_mutex_t lock;
	int64_t life_ms;
	struct key_list *keys; /* sodium_malloc */
};

struct ticket_keys *ticket_keys_create(int64_t life_ms)
{
	struct ticket_keys *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->life_ms = life_ms;
	t->keys = sodium_malloc(sizeof *t->keys);
	if (!t->keys) {
		free(t);
		return NULL;
	}
	sodium_memzero(t->keys, sizeof *t->keys);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void ticket_keys_destroy(struct ticket_keys *t)
{
	if (!t)
		return;
	sodium_free(t->keys);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static const struct cluster_ticket_key *ticket_key_find(const struct key_list *keys, const uint8_t *name)
{
	for (unsigned i = 0; i < keys->count; i++)
		if (memcmp(keys->at[i].name, name, TICKET_KEY_NAME_LEN) == 0)
			return &keys->at[i];
	return NULL;
}

/* Keys of equal age are ordered by name, so that all agents have one order. */
static bool ticket_key_is_newer(const struct cluster_ticket_key *a, const struct cluster_ticket_key *b)
{
	if (a->made_ms != b->made_ms)
		return a->made_ms > b->made_ms;
	return memcmp(a->name, b->name, TICKET_KEY_NAME_LEN) < 0;
}

static void ticket_key_insert(struct key_list *keys, const struct cluster_ticket_key *key)
{
	unsigned at = 0;

	while (at < keys->count && !ticket_key_is_newer(key, &keys->at[at]))
		at++;
	if (at == TICKET_KEYS_MAX)
		return;
	if (keys->count == TICKET_KEYS_MAX)
		keys->count--;
	memmove(&keys->at[at + 1], &keys->at[at], (keys->count - at) * sizeof *key);
	keys->at[at] = *key;
	keys->count++;
}

void ticket_keys_make(struct ticket_keys *t, int64_t now_ms)
{
	struct cluster_ticket_key key = { .made_ms = now_ms };

	randombytes_buf(key.name, sizeof key.name);
	randombytes_buf(key.secret, sizeof key.secret);
	pthread_mutex_lock(&t->lock);
	ticket_key_insert(t->keys, &key);
	pthread_mutex_unlock(&t->lock);
	sodium_memzero(&key, sizeof key);
	count(COUNT_TICKET_KEYS_MADE);
}

bool ticket_keys_add(struct ticket_keys *t, const struct cluster_ticket_key *key, int64_t now_ms)
{
	bool known;

	pthread_mutex_lock(&t->lock);
	known = now_ms - key->made_ms >= t->life_ms || ticket_key_find(t->keys, key->name);
	if (!known)
		ticket_key_insert(t->keys, key);
	pthread_mutex_unlock(&t->lock);
	return known;
}

unsigned ticket_keys_list(struct ticket_keys *t, struct cluster_ticket_key out[static TICKET_KEYS_MAX])
{
	unsigned listed;

	pthread_mutex_lock(&t->lock);
	listed = t->keys->count;
	memcpy(out, t->keys->at, listed * sizeof out[0]);
	pthread_mutex_unlock(&t->lock);
	return listed;
}

/* The newest key that all agents have; if every key is too young for that, the oldest key. */
static const struct cluster_ticket_key *to_seal_with(const struct key_list *keys, int64_t now_ms)
{
	for (unsigned i = 0; i < keys->count; i++)
		if (now_ms - keys->at[i].made_ms >= REACHES_ALL_MS)
			return &keys->at[i];
	return keys->count > 0 ? &keys->at[keys->count - 1] : NULL;
}

int ticket_keys_derive(struct ticket_keys *t, const uint8_t *name, const uint8_t salt[static 16], int64_t now_ms,
	struct ticket_key *out)
{
	uint8_t derived[sizeof out->cipher_key + sizeof out->mac_key];
	const struct cluster_ticket_key *key;
	int r = 0;

	pthread_mutex_lock(&t->lock);
	key = name ? ticket_key_find(t->keys, name) : to_seal_with(t->keys, now_ms);
	if (key && now_ms - key->made_ms < t->life_ms) {
		memcpy(out->name, key->name, sizeof out->name);
		crypto_generichash(derived, sizeof derived, salt, 16, key->secret, sizeof key->secret);
	} else {
		r = CSSL_E_KEY_UNKNOWN;
	}
	pthread_mutex_unlock(&t->lock);
	if (r)
		return r;
	memcpy(out->cipher_key, derived, sizeof out->cipher_key);
	memcpy(out->mac_key, derived + sizeof out->cipher_key, sizeof out->mac_key);
	sodium_memzero(derived, sizeof derived);
	return 0;
}

int64_t ticket_keys_newest_age_ms(struct ticket_keys *t, int64_t now_ms)
{
	int64_t age_ms = INT64_MAX;

	pthread_mutex_lock(&t->lock);
	if (t->keys->count > 0)
		age_ms = now_ms - t->keys->at[0].made_ms;
	pthread_mutex_unlock(&t->lock);
	return age_ms;
}

void ticket_keys_expire(struct ticket_keys *t, int64_t now_ms)
{
	pthread_mutex_lock(&t->lock);
	while (t->keys->count > 0 && now_ms - t->keys->at[t->keys->count - 1].made_ms >= t->life_ms)
		sodium_memzero(&t->keys->at[--t->keys->count], sizeof t->keys->at[0]);
	pthread_mutex_unlock(&t->lock);
}
