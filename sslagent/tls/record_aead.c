/* record_aead.c: a list of contexts per cipher, most recently used first. A key that is still loaded only sets the
 * nonce. Any other key takes the context at the list's end (or a new one while there are fewer than
 * RECORD_AEAD_CONTEXTS). So a busy key stays loaded: fewer than RECORD_AEAD_CONTEXTS other keys are used between two of
 * its uses. */
#include "sslagent/tls/record_aead.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "proto/error.h"
#include "sslagent/tls/tls_library.h"

struct record_context {
	TAILQ_ENTRY(record_context) place;
	struct record_key *user;   /* the loaded key, or NULL */
	struct aead_context *aead; /* NULL: there never was a key, or it was dropped */
};

struct context_list {
	struct aead_cipher *cipher;
	TAILQ_HEAD(contexts, record_context) all; /* the newest first */
	unsigned count;
};

struct record_aead {
	struct context_list lists[RECORD_CIPHER_COUNT];
};

static const char *const cipher_names[] = {
	[RECORD_AES_128_GCM] = "AES-128-GCM",
	[RECORD_AES_256_GCM] = "AES-256-GCM",
	[RECORD_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
};

int record_cipher_find(const char *aead, enum record_cipher *out)
{
	for (unsigned i = 0; i < RECORD_CIPHER_COUNT; i++) {
		if (strcasecmp(aead, cipher_names[i]) == 0) {
			*out = (enum record_cipher)i;
			return 0;
		}
	}
	return CSSL_E_TYPE;
}

struct record_aead *record_aead_create(void)
{
	struct record_aead *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	for (unsigned i = 0; i < RECORD_CIPHER_COUNT; i++) {
		struct context_list *list = &a->lists[i];
		TAILQ_INIT(&list->all);
		list->cipher = aead_cipher_fetch(tls_library(), cipher_names[i]);
		if (!list->cipher) {
			record_aead_destroy(a);
			return NULL;
		}
	}
	return a;
}

void record_aead_destroy(struct record_aead *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < RECORD_CIPHER_COUNT; i++) {
		struct context_list *list = &a->lists[i];
		for (struct record_context *c; (c = TAILQ_FIRST(&list->all));) {
			TAILQ_REMOVE(&list->all, c, place);
			assert(!c->user);
			aead_context_free(list->cipher, c->aead);
			free(c);
		}
		aead_cipher_free(list->cipher);
	}
	free(a);
}

void record_key_drop(struct record_aead *a, struct record_key *k)
{
	struct context_list *list = &a->lists[k->cipher];
	struct record_context *c = k->context;

	if (!c)
		return;
	aead_context_free(list->cipher, c->aead);
	c->aead = NULL;
	c->user = NULL;
	k->context = NULL;
	TAILQ_REMOVE(&list->all, c, place);
	TAILQ_INSERT_TAIL(&list->all, c, place);
}

/* The least recently used context, ready to be loaded for @k; NULL: out of memory. */
static struct record_context *context_take(struct context_list *list, struct record_key *k)
{
	struct record_context *c = TAILQ_LAST(&list->all, contexts), *fresh = NULL;

	if (!c || (c->user && list->count < RECORD_AEAD_CONTEXTS))
		fresh = calloc(1, sizeof *fresh);
	if (fresh) {
		TAILQ_INSERT_TAIL(&list->all, fresh, place);
		list->count++;
		c = fresh;
	}
	if (!c)
		return NULL;
	if (c->user)
		c->user->context = NULL;
	c->user = k;
	k->context = c;
	return c;
}

/* A context with @k and the nonce set. */
static struct aead_context *record_aead_load(
	struct record_aead *a, struct record_key *k, const uint8_t *nonce, enum aead_direction direction)
{
	struct context_list *list = &a->lists[k->cipher];
	struct record_context *c = k->context;
	const uint8_t *key = NULL;

	if (!c) {
		c = context_take(list, k);
		if (!c)
			return NULL;
		key = k->bytes;
	}
	if (TAILQ_FIRST(&list->all) != c) {
		TAILQ_REMOVE(&list->all, c, place);
		TAILQ_INSERT_HEAD(&list->all, c, place);
	}
	if (!c->aead)
		c->aead = aead_context_create(list->cipher);
	if (c->aead && aead_context_begin(list->cipher, c->aead, direction, key, nonce) == 0)
		return c->aead;
	record_key_drop(a, k);
	return NULL;
}

int record_aead_seal(struct record_aead *a, struct record_key *k, const struct record_operation *o, const uint8_t *tail)
{
	const struct aead_cipher *cipher = a->lists[k->cipher].cipher;
	struct aead_context *x = record_aead_load(a, k, o->nonce, AEAD_SEALS);
	uint8_t *end = o->out + o->len;
	size_t len = o->len;

	if (!x || aead_context_ad(cipher, x, o->ad, o->ad_len) < 0)
		return CSSL_E_CRYPTO;
	/* in place there is room behind the plaintext: one call less for each record */
	if (tail && o->in == o->out) {
		*end++ = *tail;
		len++;
		tail = NULL;
	}
	if (len > 0 && aead_context_run(cipher, x, o->in, len, o->out) < 0)
		return CSSL_E_CRYPTO;
	if (tail && aead_context_run(cipher, x, tail, 1, end++) < 0)
		return CSSL_E_CRYPTO;
	return aead_context_seal(cipher, x, end);
}

int record_aead_open(struct record_aead *a, struct record_key *k, const struct record_operation *o)
{
	const struct aead_cipher *cipher = a->lists[k->cipher].cipher;
	struct aead_context *x = record_aead_load(a, k, o->nonce, AEAD_OPENS);

	if (!x || aead_context_ad(cipher, x, o->ad, o->ad_len) < 0 ||
		(o->len > 0 && aead_context_run(cipher, x, o->in, o->len, o->out) < 0))
		return CSSL_E_CRYPTO;
	return aead_context_open(cipher, x, o->in + o->len);
}
