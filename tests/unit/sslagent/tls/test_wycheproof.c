/* test_wycheproof.c: the agent's own HMAC, HKDF and X25519, and the AEADs as it calls them, against the vectors of
 * Project Wycheproof (data/wycheproof/README.md): edge cases of the arithmetic, extreme lengths, changed tags. */
#include <check.h>
#include <jansson.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>

#include "proto/aead.h"
#include "proto/error.h"
#include "sslagent/tls/own_provider_internal.h"
#include "sslagent/tls/record_aead.h"
#include "sslagent/tls/tls_library.h"
#include "tests/source_root.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define OURS      "provider=" OWN_PROVIDER_NAME
#define BYTES_MAX 16384u

/* --- vectors --- */

struct bytes {
	uint8_t data[BYTES_MAX];
	size_t len;
};

static void take_hex(const json_t *vector, const char *name, struct bytes *out)
{
	const char *hex = json_string_value(json_object_get(vector, name));

	ck_assert_msg(hex != NULL, "no %s", name);
	out->len = strlen(hex) / 2;
	ck_assert_uint_le(out->len, sizeof out->data);
	for (size_t i = 0; i < out->len; i++)
		ck_assert_int_eq(sscanf(hex + 2 * i, "%2hhx", &out->data[i]), 1);
}

static size_t number(const json_t *object, const char *name)
{
	return (size_t)json_integer_value(json_object_get(object, name));
}

static int is_valid(const json_t *vector)
{
	return strcmp(json_string_value(json_object_get(vector, "result")), "invalid") != 0;
}

static int has_flag(const json_t *vector, const char *flag)
{
	const json_t *flags = json_object_get(vector, "flags");
	int has = 0;

	for (size_t i = 0; i < json_array_size(flags); i++)
		has |= strcmp(json_string_value(json_array_get(flags, i)), flag) == 0;
	return has;
}

/* 1: the vector was checked; 0: it does not apply. */
typedef int check_fn(const json_t *group, const json_t *vector, const void *how);

/* All vectors of a file; @checked of them apply. */
static void each_vector(const char *file, check_fn *check, const void *how, size_t checked)
{
	char path[512];
	size_t all = 0;

	snprintf(path, sizeof path, "%s/%s", SOURCE_ROOT "/tests/unit/sslagent/tls/data/wycheproof", file);
	json_t *root = json_load_file(path, 0, NULL);
	ck_assert_ptr_nonnull(root);
	const json_t *groups = json_object_get(root, "testGroups");
	for (size_t g = 0; g < json_array_size(groups); g++) {
		const json_t *group = json_array_get(groups, g), *vectors = json_object_get(group, "tests");
		for (size_t i = 0; i < json_array_size(vectors); i++, all++)
			checked -= (size_t)check(group, json_array_get(vectors, i), how);
	}
	ck_assert_uint_eq(all, number(root, "numberOfTests"));
	ck_assert_uint_eq(checked, 0);
	json_decref(root);
}

#define EXPECT(vector, condition)                                                                                      \
	ck_assert_msg(condition, "vector %zu (%s)", number(vector, "tcId"),                                            \
		json_string_value(json_object_get(vector, "comment")))

/* --- HMAC and HKDF --- */

struct hash_row {
	const char *digest, *hmac_file, *hkdf_file;
	size_t hmac_vectors, hkdf_vectors;
};

static const struct hash_row hashes[] = {
	{ "SHA2-256", "hmac_sha256_test.json", "hkdf_sha256_test.json", 174, 86 },
	{ "SHA2-384", "hmac_sha384_test.json", "hkdf_sha384_test.json", 174, 83 },
};

static int check_hmac(const json_t *group, const json_t *vector, const void *how)
{
	static struct bytes key, message, tag;
	const struct hash_row *hash = how;
	const size_t tag_len = number(group, "tagSize") / 8;
	uint8_t out[OWN_HASH_MAX];
	size_t len = 0;

	take_hex(vector, "key", &key);
	take_hex(vector, "msg", &message);
	take_hex(vector, "tag", &tag);
	ck_assert_ptr_nonnull(EVP_Q_mac(tls_library(), "HMAC", OURS, hash->digest, NULL, key.data, key.len,
		message.data, message.len, out, sizeof out, &len));
	EXPECT(vector, tag.len == tag_len && tag_len <= len);
	EXPECT(vector, (memcmp(out, tag.data, tag_len) == 0) == is_valid(vector));
	return 1;
}

START_TEST(hmac_is_right_and_no_changed_tag_is)
{
	each_vector(hashes[_i].hmac_file, check_hmac, &hashes[_i], hashes[_i].hmac_vectors);
}
END_TEST

/* The TLS13-KDF that OpenSSL fetches adds labels to every salt and info, so this asks the two steps below it. */
static int check_hkdf(const json_t *group, const json_t *vector, const void *how)
{
	static struct bytes key, salt, info, expected;
	static uint8_t out[BYTES_MAX];
	const struct hash_row *row = how;
	struct own_hmac h = { .hash = own_hash_named(row->digest), .ctx = EVP_MD_CTX_new() };
	const size_t size = number(vector, "size");
	uint8_t secret[OWN_HASH_MAX];

	take_hex(vector, "ikm", &key);
	take_hex(vector, "salt", &salt);
	take_hex(vector, "info", &info);
	take_hex(vector, "okm", &expected);
	ck_assert_uint_le(size, sizeof out);
	EXPECT(vector, own_hkdf_extract(&h, (struct own_bytes){ salt.data, salt.len },
			       (struct own_bytes){ key.data, key.len }, secret) == 1);
	const int ok = own_hkdf_expand(
		&h, (struct own_bytes){ secret, h.hash->len }, (struct own_bytes){ info.data, info.len }, out, size);
	EXPECT(vector, ok == is_valid(vector));
	EXPECT(vector, !ok || (expected.len == size && memcmp(out, expected.data, size) == 0));
	EVP_MD_CTX_free(h.ctx);
	return 1;
}

START_TEST(hkdf_is_right_up_to_its_greatest_length)
{
	tls_library(); /* loads the digests of own_hash_named() */
	each_vector(hashes[_i].hkdf_file, check_hkdf, &hashes[_i], hashes[_i].hkdf_vectors);
}
END_TEST

/* --- X25519 --- */

static EVP_PKEY *x25519(int selection, const char *part, const struct bytes *b)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(tls_library(), "X25519", OURS);
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string(part, (void *)b->data, b->len),
		OSSL_PARAM_construct_end() };
	EVP_PKEY *key = NULL;

	ck_assert_int_eq(EVP_PKEY_fromdata_init(ctx), 1);
	ck_assert_int_eq(EVP_PKEY_fromdata(ctx, &key, selection, (OSSL_PARAM *)params), 1);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* RFC 8446 7.4.2 refuses a secret of zeros, which the vectors only call acceptable. */
static int check_x25519(const json_t *group, const json_t *vector, const void *how)
{
	static struct bytes private, public, shared;
	uint8_t out[32];
	size_t len = sizeof out;

	take_hex(vector, "private", &private);
	take_hex(vector, "public", &public);
	take_hex(vector, "shared", &shared);
	EVP_PKEY *own = x25519(EVP_PKEY_KEYPAIR, OSSL_PKEY_PARAM_PRIV_KEY, &private);
	EVP_PKEY *peer = x25519(EVP_PKEY_PUBLIC_KEY, OSSL_PKEY_PARAM_PUB_KEY, &public);
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(tls_library(), own, OURS);
	ck_assert_int_eq(EVP_PKEY_derive_init(ctx), 1);
	ck_assert_int_eq(EVP_PKEY_derive_set_peer(ctx, peer), 1);
	const int agreed = EVP_PKEY_derive(ctx, out, &len) == 1;
	EXPECT(vector, agreed != has_flag(vector, "ZeroSharedSecret"));
	EXPECT(vector, !agreed || (len == shared.len && memcmp(out, shared.data, len) == 0));
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(own);
	EVP_PKEY_free(peer);
	return 1;
}

START_TEST(x25519_is_right_and_refuses_a_secret_of_zeros)
{
	each_vector("x25519_test.json", check_x25519, NULL, 518);
}
END_TEST

/* --- AEADs --- */

struct sealed {
	struct bytes key, nonce, ad, plain, cipher, tag;
};

static void take_sealed(const json_t *vector, struct sealed *s)
{
	take_hex(vector, "key", &s->key);
	take_hex(vector, "iv", &s->nonce);
	take_hex(vector, "aad", &s->ad);
	take_hex(vector, "msg", &s->plain);
	take_hex(vector, "ct", &s->cipher);
	take_hex(vector, "tag", &s->tag);
}

/* Sealing makes exactly this ciphertext and tag if they are valid, and opening gives the plaintext or refuses. */
static void check_records(const json_t *vector, const struct sealed *s, enum record_cipher cipher)
{
	static uint8_t out[BYTES_MAX], in[BYTES_MAX];
	struct record_aead *a = record_aead_create();
	struct record_key key = { .bytes = s->key.data, .cipher = cipher };
	struct record_operation o = { .ad = s->ad.data, .ad_len = s->ad.len, .in = s->plain.data, .out = out };
	const int valid = is_valid(vector);

	o.len = s->plain.len;
	memcpy(o.nonce, s->nonce.data, sizeof o.nonce);
	ck_assert_int_eq(record_aead_seal(a, &key, &o, NULL), 0);
	EXPECT(vector, (memcmp(out, s->cipher.data, o.len) == 0 &&
			       memcmp(out + o.len, s->tag.data, RECORD_TAG_LEN) == 0) == valid);
	memcpy(in, s->cipher.data, o.len);
	memcpy(in + o.len, s->tag.data, RECORD_TAG_LEN);
	o.in = in;
	EXPECT(vector, record_aead_open(a, &key, &o) == (valid ? 0 : CSSL_E_AUTH));
	EXPECT(vector, !valid || memcmp(out, s->plain.data, o.len) == 0);
	record_key_drop(a, &key);
	record_aead_destroy(a);
}

/* The same, of whole messages between processes. */
static void check_messages(const json_t *vector, const struct sealed *s, enum aead aead)
{
	static uint8_t out[BYTES_MAX], tag[AEAD_TAG_LEN];
	struct aead_key *key = aead_key_create(aead, s->key.data);
	struct aead_message m = { s->nonce.data, s->ad.data, s->ad.len, s->plain.data, s->plain.len };
	const int valid = is_valid(vector);

	ck_assert_int_eq(aead_seal(key, &m, out, tag), 0);
	EXPECT(vector, (memcmp(out, s->cipher.data, m.len) == 0 && memcmp(tag, s->tag.data, sizeof tag) == 0) == valid);
	m.in = s->cipher.data;
	EXPECT(vector, aead_open(key, &m, s->tag.data, out) == (valid ? 0 : CSSL_E_AUTH));
	EXPECT(vector, !valid || memcmp(out, s->plain.data, m.len) == 0);
	aead_key_destroy(key);
}

static const struct {
	const char *file;
	enum record_cipher with_16, with_32; /* by the bytes of the key */
	enum aead messages;
	size_t vectors; /* of the nonces and keys that the agent has */
} aeads[] = {
	{ "aes_gcm_test.json", RECORD_AES_128_GCM, RECORD_AES_256_GCM, AEAD_AES_256_GCM, 133 },
	{ "chacha20_poly1305_test.json", RECORD_CIPHER_COUNT, RECORD_CHACHA20_POLY1305, AEAD_CHACHA20_POLY1305, 316 },
};

/* Every nonce of the agent has 12 bytes, and no key of it has 24. */
static int check_aead(const json_t *group, const json_t *vector, const void *how)
{
	static struct sealed s;
	const unsigned row = *(const int *)how;
	const size_t key_len = number(group, "keySize") / 8;

	if (number(group, "ivSize") != 8 * AEAD_IV_LEN || key_len == 24)
		return 0;
	take_sealed(vector, &s);
	ck_assert_uint_eq(s.key.len, key_len);
	check_records(vector, &s, key_len == 32 ? aeads[row].with_32 : aeads[row].with_16);
	if (key_len == AEAD_SECRET_LEN)
		check_messages(vector, &s, aeads[row].messages);
	return 1;
}

START_TEST(aeads_are_right_and_open_nothing_with_a_changed_tag)
{
	each_vector(aeads[_i].file, check_aead, &_i, aeads[_i].vectors);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, hmac_is_right_and_no_changed_tag_is, 0, 2);
	tcase_add_loop_test(t, hkdf_is_right_up_to_its_greatest_length, 0, 2);
	tcase_add_test(t, x25519_is_right_and_refuses_a_secret_of_zeros);
	tcase_add_loop_test(t, aeads_are_right_and_open_nothing_with_a_changed_tag, 0, 2);
}

UNIT(wycheproof)
{
	return run_suite("wycheproof", add);
}
