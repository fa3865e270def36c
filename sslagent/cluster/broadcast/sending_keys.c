/* sending_keys.c: two keys in guarded memory. */
#include "sslagent/cluster/broadcast/sending_keys.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "proto/error.h"

struct sending_keys {
	pthread_mutex_t lock; /* of the secrets */
	struct {
		struct sending_key current, next;
	} * secrets; /* sodium_malloc; next.generation 0: none */
	_Atomic uint32_t generation;
	int64_t next_ms; /* time of making */
};

static void sending_key_make(struct sending_key *key, uint32_t generation)
{
	key->generation = generation;
	key->aead = aead_preferred();
	do
		randombytes_buf(&key->id, sizeof key->id);
	while (key->id == 0);
	randombytes_buf(key->secret, sizeof key->secret);
}

struct sending_keys *sending_keys_create(void)
{
	struct sending_keys *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->secrets = sodium_malloc(sizeof *k->secrets);
	if (!k->secrets) {
		free(k);
		return NULL;
	}
	sodium_memzero(k->secrets, sizeof *k->secrets);
	pthread_mutex_init(&k->lock, NULL);
	sending_key_make(&k->secrets->current, 1);
	atomic_store(&k->generation, 1);
	return k;
}

void sending_keys_destroy(struct sending_keys *k)
{
	if (!k)
		return;
	sodium_free(k->secrets);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

uint32_t sending_keys_generation(const struct sending_keys *k)
{
	return atomic_load_explicit(&((struct sending_keys *)k)->generation, memory_order_acquire);
}

unsigned sending_keys_list(struct sending_keys *k, struct sending_key out[static 2])
{
	pthread_mutex_lock(&k->lock);
	out[0] = k->secrets->current;
	out[1] = k->secrets->next;
	pthread_mutex_unlock(&k->lock);
	return out[1].generation != 0 ? 2 : 1;
}

int sending_keys_roll(struct sending_keys *k, int64_t now_ms)
{
	if (k->secrets->next.generation != 0)
		return CSSL_E_BUSY;
	pthread_mutex_lock(&k->lock);
	sending_key_make(&k->secrets->next, k->secrets->current.generation + 1);
	pthread_mutex_unlock(&k->lock);
	k->next_ms = now_ms;
	return 0;
}

bool sending_keys_step(struct sending_keys *k, bool is_held, int64_t now_ms)
{
	if (k->secrets->next.generation == 0 || (!is_held && now_ms - k->next_ms < SENDING_KEY_PATIENCE_MS))
		return false;
	pthread_mutex_lock(&k->lock);
	k->secrets->current = k->secrets->next;
	sodium_memzero(&k->secrets->next, sizeof k->secrets->next);
	pthread_mutex_unlock(&k->lock);
	atomic_store_explicit(&k->generation, k->secrets->current.generation, memory_order_release);
	return true;
}
