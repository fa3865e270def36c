/* batch.c: seal and open the batches of a link's direction. A nonce is never used twice: the counter rises with every
 * batch over all keys, a cipher that failed or was saved refuses all further work, and the key changes at fixed counts,
 * so both ends change it at the same batch without a message. */
#include "proto/batch.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

static const char next_key_info[] = "cssl link: next batch key";

/* IN_USE -> SAVED (save) -> IN_USE (resume); IN_USE -> FAILED (any error). */
enum batch_state { IN_USE, SAVED, FAILED };

struct batch_cipher {
	enum batch_state state;
	enum aead aead;
	uint32_t batches_per_key;
	uint64_t count; /* batches so far: the next nonce */
	uint8_t key[AEAD_SECRET_LEN];
	struct aead_key *aead_key;
};

struct batch_cipher *batch_cipher_create(
	enum aead aead, const uint8_t key[static AEAD_SECRET_LEN], uint32_t batches_per_key)
{
	if (batches_per_key == 0 || batches_per_key > BATCHES_PER_KEY_MAX)
		return NULL;
	struct batch_cipher *c = OPENSSL_zalloc(sizeof *c);
	if (!c)
		return NULL;
	c->aead = aead;
	c->batches_per_key = batches_per_key;
	memcpy(c->key, key, sizeof c->key);
	c->aead_key = aead_key_create(aead, key);
	if (!c->aead_key) {
		batch_cipher_destroy(c);
		return NULL;
	}
	return c;
}

void batch_cipher_destroy(struct batch_cipher *c)
{
	if (!c)
		return;
	aead_key_destroy(c->aead_key);
	OPENSSL_clear_free(c, sizeof *c);
}

/* HKDF-Expand (RFC 5869 2.3) of a key that is uniform already. */
static int next_key(const uint8_t key[static AEAD_SECRET_LEN], uint8_t out[static AEAD_SECRET_LEN])
{
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (uint8_t *)key, AEAD_SECRET_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (char *)next_key_info, sizeof next_key_info - 1),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
	bool done = context && EVP_KDF_derive(context, out, AEAD_SECRET_LEN, params) == 1;

	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return done ? 0 : CSSL_E_CRYPTO;
}

/* A batch was sealed or opened: count it, and change the key when it was the last under this one. */
static int count_batch(struct batch_cipher *c)
{
	uint8_t key[AEAD_SECRET_LEN];

	c->count++;
	if (c->count % c->batches_per_key != 0)
		return 0;
	int r = next_key(c->key, key);
	if (!r) {
		memcpy(c->key, key, sizeof c->key);
		r = aead_key_replace(c->aead_key, c->key);
	}
	OPENSSL_cleanse(key, sizeof key);
	return r;
}

static void nonce_write(uint8_t out[static AEAD_NONCE_LEN], uint64_t count)
{
	struct wire_writer w = wire_writer(out, AEAD_NONCE_LEN);

	wire_put_u32(&w, 0);
	wire_put_u64(&w, count);
}

static int ready(const struct batch_cipher *c)
{
	if (c->state != IN_USE)
		return CSSL_E_STATE;
	return c->count == UINT64_MAX ? CSSL_E_EXHAUSTED : 0;
}

static int failed(struct batch_cipher *c, int error)
{
	c->state = FAILED;
	return error;
}

int batch_seal_from(struct batch_cipher *c, uint8_t *buf, const uint8_t *plain, size_t len)
{
	uint8_t nonce[AEAD_NONCE_LEN];
	uint8_t *body = buf + BATCH_HEADER_LEN;
	struct aead_message m = { nonce, buf, BATCH_HEADER_LEN, plain, len };
	int r = ready(c);

	if (r)
		return r;
	if (len == 0 || len > BATCH_PLAINTEXT_MAX)
		return failed(c, CSSL_E_TOO_LONG);
	wire_store_u32(buf, (uint32_t)len);
	nonce_write(nonce, c->count);
	r = aead_seal(c->aead_key, &m, body, body + len);
	/* counted before anybody sees the batch: no second one is sealed with this nonce (law 1) */
	if (!r)
		r = count_batch(c);
	return r ? failed(c, r) : 0;
}

int batch_seal(struct batch_cipher *c, uint8_t *buf, size_t len)
{
	return batch_seal_from(c, buf, buf + BATCH_HEADER_LEN, len);
}

int batch_open(struct batch_cipher *c, uint8_t *in, size_t len, uint8_t **plain, size_t *plain_len, size_t *taken)
{
	uint8_t nonce[AEAD_NONCE_LEN];
	int r = ready(c);

	if (r)
		return r;
	if (len < BATCH_HEADER_LEN)
		return BATCH_INCOMPLETE;
	uint8_t *body = in + BATCH_HEADER_LEN;
	size_t body_len = wire_load_u32(in);
	if (body_len == 0 || body_len > BATCH_PLAINTEXT_MAX)
		return failed(c, CSSL_E_RANGE);
	if (len < body_len + BATCH_OVERHEAD)
		return BATCH_INCOMPLETE;
	nonce_write(nonce, c->count);
	struct aead_message m = { nonce, in, BATCH_HEADER_LEN, body, body_len };
	r = aead_open(c->aead_key, &m, body + body_len, body);
	if (!r)
		r = count_batch(c);
	if (r)
		return failed(c, r);
	*plain = body;
	*plain_len = body_len;
	*taken = body_len + BATCH_OVERHEAD;
	return 0;
}

/* aead (1) | zero (3) | batches_per_key (4) | count (8) | key (32) */
int batch_cipher_save(struct batch_cipher *c, uint8_t out[static BATCH_STATE_LEN])
{
	struct wire_writer w = wire_writer(out, BATCH_STATE_LEN);

	if (c->state != IN_USE)
		return CSSL_E_STATE;
	c->state = SAVED; /* from here on only the copy may seal (law 1) */
	wire_put_u8(&w, (uint8_t)c->aead);
	wire_put_u24(&w, 0);
	wire_put_u32(&w, c->batches_per_key);
	wire_put_u64(&w, c->count);
	wire_put_bytes(&w, c->key, sizeof c->key);
	return 0;
}

struct batch_cipher *batch_cipher_restore(const uint8_t in[static BATCH_STATE_LEN])
{
	struct wire_reader r = wire_reader(in, BATCH_STATE_LEN);
	uint8_t aead = wire_u8(&r);
	uint32_t zero = wire_u24(&r);
	uint32_t batches_per_key = wire_u32(&r);
	uint64_t count = wire_u64(&r);

	if (zero != 0)
		return NULL;
	struct batch_cipher *c = batch_cipher_create((enum aead)aead, wire_bytes(&r, AEAD_SECRET_LEN), batches_per_key);
	if (c)
		c->count = count;
	return c;
}

void batch_cipher_resume(struct batch_cipher *c)
{
	if (c->state == SAVED)
		c->state = IN_USE;
}
