/* record_aead.c: a list of EVP contexts per cipher, most recently used first. A key that is still loaded only sets the
 * nonce. Any other key takes the context at the list's end (or a new one while there are fewer than
 * RECORD_AEAD_CONTEXTS). So a busy key stays loaded: fewer than RECORD_AEAD_CONTEXTS other keys are used between two of
 * its uses. */
#include "sslagent/tls/record_aead.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/tls_library.h"

struct record_context {
	struct record_context *newer, *older;
	struct record_key *user; /* the loaded key, or NULL */
	EVP_CIPHER_CTX *evp;
};

struct context_list {
	EVP_CIPHER *cipher;
	struct record_context ends; /* ends.older is the newest, ends.newer the oldest */
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
		list->ends.newer = list->ends.older = &list->ends;
		list->cipher = EVP_CIPHER_fetch(tls_library(), cipher_names[i], NULL);
		if (!list->cipher) {
			record_aead_destroy(a);
			return NULL;
		}
	}
	return a;
}

static void context_unlink(struct record_context *c)
{
	c->newer->older = c->older;
	c->older->newer = c->newer;
}

static void context_link_newest(struct context_list *list, struct record_context *c)
{
	c->newer = &list->ends;
	c->older = list->ends.older;
	c->older->newer = c;
	list->ends.older = c;
}

static void context_link_oldest(struct context_list *list, struct record_context *c)
{
	c->older = &list->ends;
	c->newer = list->ends.newer;
	c->newer->older = c;
	list->ends.newer = c;
}

void record_aead_destroy(struct record_aead *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < RECORD_CIPHER_COUNT; i++) {
		struct context_list *list = &a->lists[i];
		for (struct record_context *c = list->ends.older, *next; c && c != &list->ends; c = next) {
			next = c->older;
			assert(!c->user);
			EVP_CIPHER_CTX_free(c->evp);
			free(c);
		}
		EVP_CIPHER_free(list->cipher);
	}
	free(a);
}

void record_key_drop(struct record_aead *a, struct record_key *k)
{
	struct record_context *c = k->context;

	if (!c)
		return;
	EVP_CIPHER_CTX_reset(c->evp);
	c->user = NULL;
	k->context = NULL;
	context_unlink(c);
	context_link_oldest(&a->lists[k->cipher], c);
}

static struct record_context *context_new(struct context_list *list)
{
	struct record_context *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->evp = EVP_CIPHER_CTX_new();
	if (!c->evp) {
		free(c);
		return NULL;
	}
	context_link_oldest(list, c);
	list->count++;
	return c;
}

/* The least recently used context, ready to be loaded for @k; NULL: out of memory. */
static struct record_context *context_take(struct context_list *list, struct record_key *k)
{
	struct record_context *c = list->ends.newer;

	if (c == &list->ends || (c->user && list->count < RECORD_AEAD_CONTEXTS)) {
		struct record_context *fresh = context_new(list);
		if (fresh)
			c = fresh;
		else if (c == &list->ends)
			return NULL;
	}
	if (c->user)
		c->user->context = NULL;
	c->user = k;
	k->context = c;
	return c;
}

/* A context with @k and the nonce set. */
static EVP_CIPHER_CTX *load(struct record_aead *a, struct record_key *k, const uint8_t *nonce, int seal)
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
	if (list->ends.older != c) {
		context_unlink(c);
		context_link_newest(list, c);
	}
	/* Do not pass a cipher that the context has already: OpenSSL would rebuild it (80 ns). */
	const EVP_CIPHER *cipher = EVP_CIPHER_CTX_get0_cipher(c->evp) ? NULL : list->cipher;
	if (EVP_CipherInit_ex2(c->evp, cipher, key, nonce, seal, NULL) == 1)
		return c->evp;
	record_key_drop(a, k);
	return NULL;
}

int record_aead_seal(struct record_aead *a, struct record_key *k, const struct record_operation *o, const uint8_t *tail)
{
	EVP_CIPHER_CTX *evp = load(a, k, o->nonce, 1);
	uint8_t *end = o->out + o->len;
	size_t len = o->len;
	int n = 0;

	if (!evp || EVP_EncryptUpdate(evp, NULL, &n, o->ad, (int)o->ad_len) != 1)
		return CSSL_E_CRYPTO;
	if (tail && o->in == o->out) {
		*end++ = *tail;
		len++;
		tail = NULL;
	}
	if (len > 0 && EVP_EncryptUpdate(evp, o->out, &n, o->in, (int)len) != 1)
		return CSSL_E_CRYPTO;
	if (tail && EVP_EncryptUpdate(evp, end++, &n, tail, 1) != 1)
		return CSSL_E_CRYPTO;
	if (EVP_EncryptFinal_ex(evp, end, &n) != 1 ||
		EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_GET_TAG, RECORD_TAG_LEN, end) != 1)
		return CSSL_E_CRYPTO;
	return 0;
}

int record_aead_open(struct record_aead *a, struct record_key *k, const struct record_operation *o)
{
	EVP_CIPHER_CTX *evp = load(a, k, o->nonce, 0);
	uint8_t tag[RECORD_TAG_LEN];
	int n = 0;

	if (!evp)
		return CSSL_E_CRYPTO;
	memcpy(tag, o->in + o->len, sizeof tag); /* the ctrl takes no pointer to const */
	if (EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_SET_TAG, RECORD_TAG_LEN, tag) != 1 ||
		EVP_DecryptUpdate(evp, NULL, &n, o->ad, (int)o->ad_len) != 1 ||
		(o->len > 0 && EVP_DecryptUpdate(evp, o->out, &n, o->in, (int)o->len) != 1))
		return CSSL_E_CRYPTO;
	return EVP_DecryptFinal_ex(evp, o->out + o->len, &n) == 1 ? 0 : CSSL_E_AUTH;
}
