/* own_provider_check.c: once at start, some 80 computations: all algorithms against OpenSSL's, with keys and inputs on
 * both sides of a block's end, and X25519 against RFC 7748. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#include "net/points/fault.h"
#include "proto/error.h"
#include "sslagent/tls/own_provider_internal.h"

#define OURS      OWN_PROVIDER_PROPERTIES
#define THEIRS    "provider!=" OWN_PROVIDER_NAME
#define INPUT_LEN 384u
#define OUT_MAX   160u

/* A result of either implementation; 0 bytes: it failed. */
struct result {
	uint8_t bytes[OUT_MAX];
	size_t len;
};

static bool check_equal(const struct result *a, const struct result *b)
{
	return a->len > 0 && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* --- HMAC --- */

/* Key and data begin where the input does. */
static struct result check_mac(OSSL_LIB_CTX *library, const char *query, const char *hash, const uint8_t *input,
	size_t key_len, size_t data_len)
{
	struct result r = { .len = 0 };

	if (!EVP_Q_mac(library, "HMAC", query, hash, NULL, input, key_len, input, data_len, r.bytes, sizeof r.bytes,
		    &r.len))
		r.len = 0;
	if (strcmp(query, OURS) == 0 && fault_at("own_provider.check", NULL, NULL) == FAULT_FAIL)
		r.bytes[0] ^= 1;
	return r;
}

static bool macs_agree(OSSL_LIB_CTX *library, const struct own_hash *hash, const uint8_t *input)
{
	const size_t key_lens[] = { 1, hash->len, hash->block_len, hash->block_len + 1 };
	const size_t data_lens[] = { 0, hash->block_len - 1, INPUT_LEN };
	bool ok = true;

	for (unsigned i = 0; ok && i < 12; i++) {
		const size_t key = key_lens[i / 3], data = data_lens[i % 3];
		struct result ours = check_mac(library, OURS, hash->name, input, key, data);
		struct result theirs = check_mac(library, THEIRS, hash->name, input, key, data);
		ok = check_equal(&ours, &theirs);
	}
	return ok;
}

/* --- TLS13-KDF and TLS1-PRF --- */

/* Each of these parts begins somewhere in the input. 0 bytes: there is none. */
struct kdf_input {
	const char *algorithm, *label;
	size_t secret_len, salt_len, data_len, out_len;
	int mode;
};

static OSSL_PARAM *check_put(OSSL_PARAM *p, const char *name, const void *data, size_t len)
{
	if (len > 0)
		*p++ = OSSL_PARAM_construct_octet_string(name, (void *)data, len);
	return p;
}

static OSSL_PARAM *put_tls13(OSSL_PARAM *p, struct kdf_input *in, const uint8_t *input)
{
	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &in->mode);
	p = check_put(p, OSSL_KDF_PARAM_PREFIX, "tls13 ", 6);
	p = check_put(p, OSSL_KDF_PARAM_LABEL, in->label, strlen(in->label));
	p = check_put(p, OSSL_KDF_PARAM_KEY, input, in->secret_len);
	p = check_put(p, OSSL_KDF_PARAM_SALT, input + 100, in->salt_len);
	return check_put(p, OSSL_KDF_PARAM_DATA, input + 100, in->data_len);
}

static OSSL_PARAM *put_tls12(OSSL_PARAM *p, const struct kdf_input *in, const uint8_t *input)
{
	p = check_put(p, OSSL_KDF_PARAM_SECRET, input, in->secret_len);
	p = check_put(p, OSSL_KDF_PARAM_SEED, in->label, strlen(in->label));
	p = check_put(p, OSSL_KDF_PARAM_SEED, input + 100, in->data_len);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, NULL, 0); /* as OpenSSL does */
	return p;
}

static struct result check_derive(
	OSSL_LIB_CTX *library, const char *query, const char *hash, struct kdf_input in, const uint8_t *input)
{
	struct result r = { .len = in.out_len };
	EVP_KDF *kdf = EVP_KDF_fetch(library, in.algorithm, query);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[8], *p = params;

	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)hash, 0);
	p = strcmp(in.algorithm, OSSL_KDF_NAME_TLS1_PRF) == 0 ? put_tls12(p, &in, input) : put_tls13(p, &in, input);
	*p = OSSL_PARAM_construct_end();
	if (!ctx || EVP_KDF_derive(ctx, r.bytes, in.out_len, params) != 1)
		r.len = 0;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return r;
}

/* The derivations of a handshake. TLS 1.3: secrets from secrets, then keys and secrets from those, with and without a
 * transcript. TLS 1.2: the master secret, the key block, and the contents of both Finished messages. */
static bool derivations_agree(OSSL_LIB_CTX *library, const struct own_hash *hash, const uint8_t *input)
{
	static const char tls13[] = OSSL_KDF_NAME_TLS1_3_KDF, tls12[] = OSSL_KDF_NAME_TLS1_PRF;
	const size_t n = hash->len;
	const struct kdf_input rows[] = {
		{ tls13, "derived", 0, 0, 0, n, EVP_KDF_HKDF_MODE_EXTRACT_ONLY },
		{ tls13, "derived", n, 0, 0, n, EVP_KDF_HKDF_MODE_EXTRACT_ONLY },
		{ tls13, "derived", n, n, 0, n, EVP_KDF_HKDF_MODE_EXTRACT_ONLY },
		{ tls13, "derived", 0, n, 0, n, EVP_KDF_HKDF_MODE_EXTRACT_ONLY },
		{ tls13, "key", n, 0, 0, 16, EVP_KDF_HKDF_MODE_EXPAND_ONLY },
		{ tls13, "iv", n, 0, 0, 12, EVP_KDF_HKDF_MODE_EXPAND_ONLY },
		{ tls13, "exp master", n, 0, n, n, EVP_KDF_HKDF_MODE_EXPAND_ONLY },
		{ tls13, "finished", n, 0, 0, OUT_MAX, EVP_KDF_HKDF_MODE_EXPAND_ONLY },
		{ tls12, "extended master secret", 32, 0, n, 48, 0 },
		{ tls12, "master secret", hash->block_len + 1, 0, 64, 48, 0 },
		{ tls12, "key expansion", 48, 0, 64, OUT_MAX, 0 },
		{ tls12, "client finished", 48, 0, n, 12, 0 },
		{ tls12, "server finished", 48, 0, n, n, 0 },
	};
	bool ok = true;

	for (unsigned i = 0; ok && i < sizeof rows / sizeof rows[0]; i++) {
		struct result ours = check_derive(library, OURS, hash->name, rows[i], input);
		struct result theirs = check_derive(library, THEIRS, hash->name, rows[i], input);
		ok = check_equal(&ours, &theirs);
	}
	return ok;
}

/* --- X25519 --- */

#define X25519_LEN 32u

static EVP_PKEY *x25519_key(OSSL_LIB_CTX *library, const char *query, const char *part, const uint8_t *bytes)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(library, "X25519", query);
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string(part, (void *)bytes, X25519_LEN),
		OSSL_PARAM_construct_end() };
	EVP_PKEY *key = NULL;

	if (!ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
		EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, (OSSL_PARAM *)params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* The shared secret of @private and @public. */
static struct result check_agree(
	OSSL_LIB_CTX *library, const char *query, const uint8_t *private, const uint8_t *public)
{
	EVP_PKEY *own = x25519_key(library, query, OSSL_PKEY_PARAM_PRIV_KEY, private);
	EVP_PKEY *peer = x25519_key(library, query, OSSL_PKEY_PARAM_PUB_KEY, public);
	EVP_PKEY_CTX *ctx = own ? EVP_PKEY_CTX_new_from_pkey(library, own, query) : NULL;
	struct result r = { .len = sizeof r.bytes };

	if (!ctx || !peer || EVP_PKEY_derive_init(ctx) != 1 || EVP_PKEY_derive_set_peer(ctx, peer) != 1 ||
		EVP_PKEY_derive(ctx, r.bytes, &r.len) != 1)
		r.len = 0;
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(peer);
	EVP_PKEY_free(own);
	return r;
}

static struct result public_of(OSSL_LIB_CTX *library, const char *query, const uint8_t *private)
{
	EVP_PKEY *key = x25519_key(library, query, OSSL_PKEY_PARAM_PRIV_KEY, private);
	struct result r = { .len = 0 };

	if (!key || EVP_PKEY_get_octet_string_param(
			    key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, r.bytes, sizeof r.bytes, &r.len) != 1)
		r.len = 0;
	EVP_PKEY_free(key);
	return r;
}

/* RFC 7748 6.1: both public keys and their shared secret. */
static bool x25519_is_that_of_the_rfc(OSSL_LIB_CTX *library)
{
	static const uint8_t alice[X25519_LEN] = { 0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1,
		0x72, 0x51, 0xb2, 0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5,
		0x1d, 0xb9, 0x2c, 0x2a };
	static const struct result bob = { { 0xde, 0x9e, 0xdb, 0x7d, 0x7b, 0x7d, 0xc1, 0xb4, 0xd3, 0x5b, 0x61, 0xc2,
						   0xec, 0xe4, 0x35, 0x37, 0x3f, 0x83, 0x43, 0xc8, 0x5b, 0x78, 0x67,
						   0x4d, 0xad, 0xfc, 0x7e, 0x14, 0x6f, 0x88, 0x2b, 0x4f },
		X25519_LEN };
	static const struct result shared = { { 0x4a, 0x5d, 0x9d, 0x5b, 0xa4, 0xce, 0x2d, 0xe1, 0x72, 0x8e, 0x3b, 0xf4,
						      0x80, 0x35, 0x0f, 0x25, 0xe0, 0x7e, 0x21, 0xc9, 0x47, 0xd1, 0x9e,
						      0x33, 0x76, 0xf0, 0x9b, 0x3c, 0x1e, 0x16, 0x17, 0x42 },
		X25519_LEN };
	struct result r = check_agree(library, OURS, alice, bob.bytes);

	return check_equal(&r, &shared);
}

static bool x25519_agrees(OSSL_LIB_CTX *library, const uint8_t *input)
{
	struct result ours = public_of(library, OURS, input), theirs = public_of(library, THEIRS, input);
	bool ok = check_equal(&ours, &theirs);

	ours = check_agree(library, OURS, input + 1, theirs.bytes);
	theirs = check_agree(library, THEIRS, input + 1, theirs.bytes);
	return ok && check_equal(&ours, &theirs);
}

int own_provider_check(OSSL_LIB_CTX *library)
{
	const struct own_hash *sha256 = own_hash_named("SHA2-256"), *sha384 = own_hash_named("SHA2-384");
	uint8_t input[INPUT_LEN];

	for (unsigned i = 0; i < INPUT_LEN; i++)
		input[i] = (uint8_t)(i * 131 + (i >> 3));
	return x25519_is_that_of_the_rfc(library) && x25519_agrees(library, input) &&
			       macs_agree(library, sha256, input) && macs_agree(library, sha384, input) &&
			       derivations_agree(library, sha256, input) && derivations_agree(library, sha384, input)
		       ? 0
		       : CSSL_E_MISMATCH;
}
