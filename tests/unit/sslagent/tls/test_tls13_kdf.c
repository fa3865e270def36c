/* test_tls13_kdf.c: whatever OpenSSL asks of its own TLS13-KDF, ours gives the same bytes; RFC 8448 3 beside it. */
#include <check.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>

#include "sslagent/tls/own_provider.h"
#include "sslagent/tls/tls_library.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

struct input {
	const char *digest, *label;
	const uint8_t *key, *salt, *data;
	size_t key_len, salt_len, data_len;
	int mode;
};

static int derive(const char *query, const struct input *in, uint8_t *out, size_t len)
{
	OSSL_PARAM params[8], *p = params;
	EVP_KDF *kdf;
	EVP_KDF_CTX *ctx;
	int mode = in->mode;

	kdf = EVP_KDF_fetch(tls_library(), "TLS13-KDF", query);
	ctx = EVP_KDF_CTX_new(kdf);
	ck_assert_ptr_nonnull(ctx);
	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)in->digest, 0);
	if (in->key)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)in->key, in->key_len);
	if (in->salt)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)in->salt, in->salt_len);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)in->label, strlen(in->label));
	if (in->data)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_DATA, (void *)in->data, in->data_len);
	*p = OSSL_PARAM_construct_end();
	int r = EVP_KDF_derive(ctx, out, len, params);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return r;
}

static void from_hex(const char *hex, uint8_t *out)
{
	for (size_t i = 0; hex[2 * i]; i++)
		ck_assert_int_eq(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
}

static uint8_t bytes[1024];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 + (i >> 3));
}

static void same_as_openssl(const struct input *in, size_t len)
{
	uint8_t ours[300] = { 0 }, theirs[300] = { 1 };

	ck_assert_int_eq(derive("provider=cssl", in, ours, len), 1);
	ck_assert_int_eq(derive("provider=default", in, theirs, len), 1);
	ck_assert_mem_eq(ours, theirs, len);
}

static const struct {
	const char *digest;
	size_t len;
} hashes[] = { { "SHA2-256", 32 }, { "SHA256", 32 }, { "SHA2-384", 48 }, { "SHA384", 48 } };

START_TEST(labels_expand_as_in_openssl)
{
	static const char *const labels[] = { "key", "iv", "finished", "c hs traffic", "res master", "traffic upd" };
	static const size_t lens[] = { 1, 12, 16, 32, 48, 49, 300 };
	size_t hash_len = hashes[_i].len;
	struct input in = { .digest = hashes[_i].digest, .mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY, .key = bytes };

	fill();
	in.key_len = hash_len;
	for (unsigned l = 0; l < sizeof(labels) / sizeof(labels[0]); l++) {
		in.label = labels[l];
		in.data = l % 2 ? bytes + 100 : NULL;
		in.data_len = l % 2 ? hash_len : 0;
		for (unsigned n = 0; n < sizeof(lens) / sizeof(lens[0]); n++)
			same_as_openssl(&in, lens[n]);
	}
}
END_TEST

/* X25519 and P-256, P-384, P-521, ffdhe2048, ffdhe8192: longer than a block of the hash, too. */
START_TEST(secrets_of_every_group_are_extracted_as_in_openssl)
{
	static const size_t key_lens[] = { 32, 48, 66, 256, 1024 };
	size_t hash_len = hashes[_i].len;
	struct input in = { .digest = hashes[_i].digest, .mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY, .label = "derived" };

	fill();
	for (unsigned k = 0; k < sizeof(key_lens) / sizeof(key_lens[0]); k++) {
		in.key = bytes;
		in.key_len = key_lens[k];
		in.salt = bytes + 50;
		in.salt_len = hash_len;
		same_as_openssl(&in, hash_len); /* handshake secret */
		in.salt = NULL;
		same_as_openssl(&in, hash_len); /* early secret of a resumption */
	}
	in.key = NULL;
	same_as_openssl(&in, hash_len); /* early secret without one */
	in.salt = bytes;
	same_as_openssl(&in, hash_len); /* master secret */
}
END_TEST

START_TEST(early_and_handshake_secret_are_those_of_rfc_8448)
{
	struct input in = { .digest = "SHA2-256", .mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY, .label = "derived" };
	uint8_t early[32], handshake[32], shared[32], expected[32];

	ck_assert_int_eq(derive("provider=cssl", &in, early, 32), 1);
	from_hex("33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a", expected);
	ck_assert_mem_eq(early, expected, 32);
	from_hex("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d", shared);
	in.key = shared;
	in.key_len = 32;
	in.salt = early;
	in.salt_len = 32;
	ck_assert_int_eq(derive("provider=cssl", &in, handshake, 32), 1);
	from_hex("1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac", expected);
	ck_assert_mem_eq(handshake, expected, 32);
}
END_TEST

START_TEST(other_digests_and_missing_keys_are_refused)
{
	struct input in = { .digest = "SHA2-512", .mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY, .label = "key", .key = bytes };
	uint8_t out[32];

	in.key_len = 32;
	ck_assert_int_le(derive("provider=cssl", &in, out, 32), 0);
	in.digest = "SHA2-256";
	in.key = NULL;
	ck_assert_int_le(derive("provider=cssl", &in, out, 32), 0);
}
END_TEST

START_TEST(a_secret_has_the_length_of_its_hash)
{
	struct input in = { .digest = "SHA2-256", .mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY, .label = "derived" };
	uint8_t out[64];

	ck_assert_int_le(derive("provider=cssl", &in, out, 31), 0);
	ck_assert_int_le(derive("provider=cssl", &in, out, 33), 0);
}
END_TEST

static struct {
	unsigned count;
	enum own_derived what;
	uint8_t secret[48];
	size_t len;
} told;

static void on_secret(void *ctx, enum own_derived what, const uint8_t *secret, size_t len)
{
	ck_assert_ptr_eq(ctx, &told);
	told.count++;
	told.what = what;
	told.len = len;
	memcpy(told.secret, secret, len);
}

START_TEST(a_watcher_is_told_of_application_traffic_secrets_and_of_nothing_else)
{
	static const char *const others[] = { "c hs traffic", "s hs traffic", "exp master", "res master", "key" };
	struct input in = { .digest = "SHA2-384", .mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY, .key = bytes, .key_len = 48 };
	uint8_t out[48];

	tls_library(); /* its check of the provider derives, too */
	own_derivations_watch(on_secret, &told);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		in.label = others[i];
		ck_assert_int_eq(derive("provider=cssl", &in, out, 48), 1);
	}
	ck_assert_uint_eq(told.count, 0);
	in.label = "s ap traffic";
	ck_assert_int_eq(derive("provider=cssl", &in, out, 48), 1);
	ck_assert_uint_eq(told.count, 1);
	ck_assert_int_eq(told.what, OWN_SERVER_TRAFFIC);
	in.label = "c ap traffic";
	ck_assert_int_eq(derive("provider=cssl", &in, out, 48), 1);
	ck_assert_int_eq(told.what, OWN_CLIENT_TRAFFIC);
	ck_assert_uint_eq(told.len, 48);
	ck_assert_mem_eq(told.secret, out, 48);
	own_derivations_watch(NULL, NULL);
	ck_assert_int_eq(derive("provider=cssl", &in, out, 48), 1);
	ck_assert_uint_eq(told.count, 2);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, labels_expand_as_in_openssl, 0, 4);
	tcase_add_loop_test(t, secrets_of_every_group_are_extracted_as_in_openssl, 0, 4);
	tcase_add_test(t, early_and_handshake_secret_are_those_of_rfc_8448);
	tcase_add_test(t, other_digests_and_missing_keys_are_refused);
	tcase_add_test(t, a_secret_has_the_length_of_its_hash);
	tcase_add_test(t, a_watcher_is_told_of_application_traffic_secrets_and_of_nothing_else);
}

UNIT(tls13_kdf)
{
	return run_suite("tls13_kdf", add);
}
