/* test_own_provider.c: HMAC against the vectors of RFC 4231, the key schedule against RFC 5869 and OpenSSL's HKDF, the
 * PRF against a published vector, X25519 against RFC 7748, and all against OpenSSL's own with inputs that
 * differ in each run. */
#include <check.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "sslagent/tls/own_provider.h"
#include "sslagent/tls/tls_library.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define OURS   "provider=" OWN_PROVIDER_NAME
#define THEIRS "provider!=" OWN_PROVIDER_NAME
#define TRIES  1000

static void from_hex(const char *hex, uint8_t *out)
{
	for (size_t i = 0; hex[2 * i]; i++)
		ck_assert_int_eq(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
}

/* --- published vectors: all of RFC 4231 but the one of a truncated MAC --- */

/* A text, or one byte so many times. */
struct written {
	const char *text;
	uint8_t byte;
	size_t times;
};

#define LONG_KEY                                                                                                       \
	{                                                                                                              \
		NULL, 0xaa, 131                                                                                        \
	}
static const struct {
	struct written key, data;
	const char *sha256, *sha384;
} rfc4231[] = {
	{ { NULL, 0x0b, 20 }, { .text = "Hi There" },
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
		"afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6" },
	{ { .text = "Jefe" }, { .text = "what do ya want for nothing?" },
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
		"af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649" },
	{ { NULL, 0xaa, 20 }, { NULL, 0xdd, 50 }, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
		"88062608d3e6ad8a0aa2ace014c8a86f0aa635d947ac9febe83ef4e55966144b2a5ab39dc13814b94e3ab6e101a34f27" },
	{ { .text = "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31" }, { NULL, 0xcd, 50 },
		"82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
		"3e8a69b7783c25851933ab6290af6ca77a9981480850009cc5577c6e1f573b4e6801dd23c4a7d679ccf8a386c674cffb" },
	{ LONG_KEY, { .text = "Test Using Larger Than Block-Size Key - Hash Key First" },
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
		"4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c60c2ef6ab4030fe8296248df163f44952" },
	{ LONG_KEY,
		{ .text = "This is a test using a larger than block-size key and a larger than block-size data. The "
			  "key "
			  "needs to be hashed before being used by the HMAC algorithm." },
		"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
		"6617178e941f020d351e2f254e8fd32c602420feb0b8fb9adccebb82461e99c5a678cc31e799176d3860e6110c46523e" },
};

static size_t write_out(const struct written *w, uint8_t out[static 256])
{
	if (!w->text) {
		memset(out, w->byte, w->times);
		return w->times;
	}
	memcpy(out, w->text, strlen(w->text));
	return strlen(w->text);
}

static void is_mac(const char *digest, const struct written *with, const struct written *of, const char *expected)
{
	uint8_t out[64], wanted[64], key[256], data[256];
	size_t len = 0, key_len = write_out(with, key), data_len = write_out(of, data);

	from_hex(expected, wanted);
	ck_assert_ptr_nonnull(EVP_Q_mac(
		tls_library(), "HMAC", OURS, digest, NULL, key, key_len, data, data_len, out, sizeof(out), &len));
	ck_assert_uint_eq(len, strlen(expected) / 2);
	ck_assert_mem_eq(out, wanted, len);
}

START_TEST(macs_are_those_of_rfc_4231)
{
	is_mac("SHA2-256", &rfc4231[_i].key, &rfc4231[_i].data, rfc4231[_i].sha256);
	is_mac("SHA2-384", &rfc4231[_i].key, &rfc4231[_i].data, rfc4231[_i].sha384);
}
END_TEST

struct derivation {
	const char *query, *algorithm, *digest;
	int mode;
	struct {
		const char *name;
		const void *data;
		size_t len;
	} given[5];
};

static int derive(const struct derivation *d, uint8_t *out, size_t len)
{
	EVP_KDF *kdf = EVP_KDF_fetch(tls_library(), d->algorithm, d->query);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	OSSL_PARAM params[8], *p = params;
	int mode = d->mode;

	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)d->digest, 0);
	for (unsigned i = 0; i < 5 && d->given[i].name; i++)
		*p++ = OSSL_PARAM_construct_octet_string(d->given[i].name, (void *)d->given[i].data, d->given[i].len);
	*p = OSSL_PARAM_construct_end();
	int r = EVP_KDF_derive(ctx, out, len, params);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return r;
}

/* Test case 3: no salt. The other two have a salt, into which TLS 1.3 puts a label. */
START_TEST(extraction_is_that_of_rfc_5869)
{
	uint8_t ikm[22], out[32], expected[32];

	memset(ikm, 0x0b, sizeof(ikm));
	from_hex("19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04", expected);
	struct derivation d = { OURS, "TLS13-KDF", "SHA2-256", EVP_KDF_HKDF_MODE_EXTRACT_ONLY,
		{ { OSSL_KDF_PARAM_KEY, ikm, sizeof(ikm) } } };
	ck_assert_int_eq(derive(&d, out, sizeof(out)), 1);
	ck_assert_mem_eq(out, expected, sizeof(out));
}
END_TEST

static int prf(const char *query, const char *digest, const uint8_t *secret, size_t secret_len, const char *label,
	const uint8_t *seed, size_t seed_len, uint8_t *out, size_t len)
{
	EVP_KDF *kdf = EVP_KDF_fetch(tls_library(), "TLS1-PRF", query);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	const size_t half = seed_len / 2;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, (void *)secret, secret_len),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, (void *)label, strlen(label)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, (void *)seed, half),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, (void *)(seed + half), seed_len - half),
		OSSL_PARAM_construct_end(),
	};
	const int r = EVP_KDF_derive(ctx, out, len, params);

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return r;
}

/* One of the vectors for the PRF of TLS 1.2 that the TLS working group's list published for RFC 5246. */
START_TEST(the_prf_is_that_of_the_published_vector)
{
	uint8_t secret[16], seed[16], expected[100], out[100];
	from_hex("9bbe436ba940f017b17652849a71db35", secret);
	from_hex("a0ba9f936cda311827a6f796ffd5198c", seed);
	from_hex("e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa0"
		 "22f7077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66",
		expected);
	ck_assert_int_eq(prf(OURS, "SHA2-256", secret, 16, "test label", seed, 16, out, sizeof out), 1);
	ck_assert_mem_eq(out, expected, sizeof out);
}
END_TEST

/* --- random inputs, beside OpenSSL's own --- */

static uint8_t input[2048];

static size_t up_to(size_t max)
{
	return randombytes_uniform((uint32_t)max + 1);
}

/* @len bytes of @input, authenticated in pieces. */
static size_t mac_in_pieces(const char *query, const char *digest, size_t key_len, size_t len, uint8_t out[static 64])
{
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0),
		OSSL_PARAM_construct_end() };
	EVP_MAC *mac = EVP_MAC_fetch(tls_library(), "HMAC", query);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
	size_t out_len = 0;

	ck_assert_int_eq(EVP_MAC_init(ctx, input, key_len, params), 1);
	for (size_t at = 0, piece; at < len; at += piece) {
		piece = 1 + up_to(len - at - 1);
		ck_assert_int_eq(EVP_MAC_update(ctx, input + at, piece), 1);
	}
	ck_assert_int_eq(EVP_MAC_final(ctx, out, &out_len, 64), 1);
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(mac);
	return out_len;
}

START_TEST(macs_of_random_inputs_are_those_of_openssl)
{
	static const char *const digests[] = { "SHA2-256", "SHA2-384" };
	uint8_t ours[64], theirs[64];

	for (unsigned i = 0; i < TRIES; i++) {
		size_t key_len = up_to(300), len = up_to(sizeof(input));
		randombytes_buf(input, sizeof(input));
		size_t n = mac_in_pieces(OURS, digests[_i], key_len, len, ours);
		ck_assert_uint_eq(n, mac_in_pieces(THEIRS, digests[_i], key_len, len, theirs));
		ck_assert_msg(memcmp(ours, theirs, n) == 0, "key of %zu bytes, %zu bytes", key_len, len);
	}
}
END_TEST

/* HkdfLabel (RFC 8446 7.1), as the info of a plain HKDF-Expand (RFC 5869 2.3). */
static size_t hkdf_label(size_t out_len, size_t label_len, size_t data_len, uint8_t info[static 600])
{
	uint8_t *at = info;

	*at++ = (uint8_t)(out_len >> 8);
	*at++ = (uint8_t)out_len;
	*at++ = (uint8_t)(6 + label_len);
	memcpy(at, "tls13 ", 6);
	memcpy(at + 6, input + 400, label_len);
	at += 6 + label_len;
	*at++ = (uint8_t)data_len;
	memcpy(at, input + 700, data_len);
	return (size_t)(at + data_len - info);
}

START_TEST(random_labels_expand_as_in_openssls_hkdf)
{
	static const struct {
		const char *digest;
		size_t len;
	} hashes[] = { { "SHA2-256", 32 }, { "SHA2-384", 48 } };
	uint8_t ours[1000], theirs[1000], info[600];

	for (unsigned i = 0; i < TRIES; i++) {
		size_t label_len = 1 + up_to(248), data_len = up_to(255), out_len = 1 + up_to(sizeof(ours) - 1);
		size_t key_len = 1 + up_to(300);
		randombytes_buf(input, sizeof(input));
		size_t info_len = hkdf_label(out_len, label_len, data_len, info);
		struct derivation own = { OURS, "TLS13-KDF", hashes[_i].digest, EVP_KDF_HKDF_MODE_EXPAND_ONLY,
			{ { OSSL_KDF_PARAM_KEY, input, key_len }, { OSSL_KDF_PARAM_PREFIX, "tls13 ", 6 },
				{ OSSL_KDF_PARAM_LABEL, input + 400, label_len },
				{ OSSL_KDF_PARAM_DATA, input + 700, data_len } } };
		struct derivation plain = { THEIRS, "HKDF", hashes[_i].digest, EVP_KDF_HKDF_MODE_EXPAND_ONLY,
			{ { OSSL_KDF_PARAM_KEY, input, key_len }, { OSSL_KDF_PARAM_INFO, info, info_len } } };
		ck_assert_int_eq(derive(&own, ours, out_len), 1);
		ck_assert_int_eq(derive(&plain, theirs, out_len), 1);
		ck_assert_msg(memcmp(ours, theirs, out_len) == 0, "label of %zu bytes, %zu out", label_len, out_len);
	}
}
END_TEST

START_TEST(the_prf_of_random_inputs_is_that_of_openssl)
{
	static const char *const digests[] = { "SHA2-256", "SHA2-384" };
	uint8_t ours[400], theirs[400];

	for (unsigned i = 0; i < TRIES; i++) {
		size_t secret_len = 1 + up_to(300), seed_len = up_to(500), len = 1 + up_to(sizeof ours - 1);
		randombytes_buf(input, sizeof input);
		ck_assert_int_eq(
			prf(OURS, digests[_i], input, secret_len, "label", input + 400, seed_len, ours, len), 1);
		ck_assert_int_eq(
			prf(THEIRS, digests[_i], input, secret_len, "label", input + 400, seed_len, theirs, len), 1);
		ck_assert_msg(memcmp(ours, theirs, len) == 0, "secret of %zu bytes, seed of %zu, %zu out", secret_len,
			seed_len, len);
	}
}
END_TEST

/* OpenSSL falls back to nothing here: a handshake whose hash the provider does not have has to fail. */
START_TEST(the_prf_refuses_what_it_does_not_have)
{
	uint8_t out[16];

	ck_assert_int_le(prf(OURS, "MD5-SHA1", input, 48, "label", input, 64, out, sizeof out), 0);
	ck_assert_int_le(prf(OURS, "SHA2-512", input, 48, "label", input, 64, out, sizeof out), 0);
}
END_TEST

static struct {
	unsigned count;
	uint8_t block[40];
	size_t len;
} told;

static void on_key_block(void *ctx, enum own_derived what, const uint8_t *block, size_t len)
{
	ck_assert_int_eq(what, OWN_KEY_BLOCK);
	ck_assert_ptr_eq(ctx, &told);
	ck_assert_uint_le(len, sizeof told.block);
	memcpy(told.block, block, len);
	told.len = len;
	told.count++;
}

START_TEST(a_watcher_is_told_of_key_blocks_and_of_nothing_else)
{
	static const char *const others[] = { "master secret", "extended master secret", "client finished",
		"server finished", "key expansio", "key expansion " };
	uint8_t out[40];

	tls_library(); /* derives some blocks itself when it begins */
	own_derivations_watch(on_key_block, &told);
	for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
		ck_assert_int_eq(prf(OURS, "SHA2-256", input, 48, others[i], input, 64, out, sizeof out), 1);
	ck_assert_int_eq(prf(THEIRS, "SHA2-256", input, 48, "key expansion", input, 64, out, sizeof out), 1);
	ck_assert_uint_eq(told.count, 0);
	ck_assert_int_eq(prf(OURS, "SHA2-256", input, 48, "key expansion", input, 64, out, sizeof out), 1);
	ck_assert_uint_eq(told.count, 1);
	ck_assert_uint_eq(told.len, sizeof out);
	ck_assert_mem_eq(told.block, out, sizeof out);
	own_derivations_watch(NULL, NULL);
	ck_assert_int_eq(prf(OURS, "SHA2-256", input, 48, "key expansion", input, 64, out, sizeof out), 1);
	ck_assert_uint_eq(told.count, 1);
}
END_TEST

/* --- X25519 --- */

static EVP_PKEY *x25519(const char *query, int selection, const char *part, const uint8_t bytes[static 32])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(tls_library(), "X25519", query);
	OSSL_PARAM params[] = { OSSL_PARAM_construct_octet_string(part, (void *)bytes, 32),
		OSSL_PARAM_construct_end() };
	EVP_PKEY *key = NULL;

	ck_assert_int_eq(EVP_PKEY_fromdata_init(ctx), 1);
	ck_assert_int_eq(EVP_PKEY_fromdata(ctx, &key, selection, params), 1);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* Bytes of the secret; 0: they agree on none. */
static size_t agree(const char *query, EVP_PKEY *own, EVP_PKEY *peer, uint8_t out[static 32])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(tls_library(), own, query);
	size_t len = 32;

	ck_assert_int_eq(EVP_PKEY_derive_init(ctx), 1);
	ck_assert_int_eq(EVP_PKEY_derive_set_peer(ctx, peer), 1);
	int r = EVP_PKEY_derive(ctx, out, &len);
	EVP_PKEY_CTX_free(ctx);
	return r == 1 ? len : 0;
}

static size_t agree_on(
	const char *query, const uint8_t private[static 32], const uint8_t public[static 32], uint8_t out[static 32])
{
	EVP_PKEY *own = x25519(query, EVP_PKEY_KEYPAIR, OSSL_PKEY_PARAM_PRIV_KEY, private);
	EVP_PKEY *peer = x25519(query, EVP_PKEY_PUBLIC_KEY, OSSL_PKEY_PARAM_PUB_KEY, public);
	size_t len = agree(query, own, peer, out);

	EVP_PKEY_free(own);
	EVP_PKEY_free(peer);
	return len;
}

/* RFC 7748 5.2, where the second point has the bit set that has to be ignored, and 6.1. */
static const struct {
	const char *scalar, *point, *result;
} rfc7748[] = {
	{ "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
		"e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
		"c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552" },
	{ "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
		"e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
		"95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957" },
	{ "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
		"de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
		"4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742" },
};

START_TEST(x25519_is_that_of_rfc_7748)
{
	uint8_t scalar[32], point[32], expected[32], out[32];

	from_hex(rfc7748[_i].scalar, scalar);
	from_hex(rfc7748[_i].point, point);
	from_hex(rfc7748[_i].result, expected);
	ck_assert_uint_eq(agree_on(OURS, scalar, point, out), 32);
	ck_assert_mem_eq(out, expected, 32);
}
END_TEST

START_TEST(random_keys_agree_on_what_openssl_says)
{
	uint8_t scalar[32], point[32], ours[32], theirs[32];

	for (unsigned i = 0; i < TRIES / 4; i++) {
		randombytes_buf(scalar, sizeof scalar);
		randombytes_buf(point, sizeof point);
		ck_assert_uint_eq(agree_on(OURS, scalar, point, ours), 32);
		ck_assert_uint_eq(agree_on(THEIRS, scalar, point, theirs), 32);
		ck_assert_mem_eq(ours, theirs, 32);
	}
}
END_TEST

static EVP_PKEY *generate(const char *query)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(tls_library(), "X25519", query);
	EVP_PKEY *key = NULL;

	ck_assert_int_eq(EVP_PKEY_keygen_init(ctx), 1);
	ck_assert_int_gt(EVP_PKEY_CTX_set_group_name(ctx, "x25519"), 0);
	ck_assert_int_eq(EVP_PKEY_generate(ctx, &key), 1);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* Room for the key of a share that comes in. */
static EVP_PKEY *empty(const char *query)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(tls_library(), "X25519", query);
	EVP_PKEY *key = NULL;

	ck_assert_int_eq(EVP_PKEY_paramgen_init(ctx), 1);
	ck_assert_int_gt(EVP_PKEY_CTX_set_group_name(ctx, "x25519"), 0);
	ck_assert_int_eq(EVP_PKEY_paramgen(ctx, &key), 1);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* As libssl does: a key share goes out, one comes in. The other end is OpenSSL's. */
START_TEST(made_keys_agree_with_openssls)
{
	EVP_PKEY *own = generate(OURS), *other = generate(THEIRS), *came = empty(OURS);
	uint8_t *share = NULL, ours[32], theirs[32];

	ck_assert_uint_eq(EVP_PKEY_get1_encoded_public_key(own, &share), 32);
	EVP_PKEY *at_other = x25519(THEIRS, EVP_PKEY_PUBLIC_KEY, OSSL_PKEY_PARAM_PUB_KEY, share);
	OPENSSL_free(share);
	ck_assert_uint_eq(EVP_PKEY_get1_encoded_public_key(other, &share), 32);
	ck_assert_int_eq(EVP_PKEY_set1_encoded_public_key(came, share, 32), 1);
	OPENSSL_free(share);
	ck_assert_uint_eq(agree(OURS, own, came, ours), 32);
	ck_assert_uint_eq(agree(THEIRS, other, at_other, theirs), 32);
	ck_assert_mem_eq(ours, theirs, 32);
	ck_assert_int_eq(EVP_PKEY_get_bits(own), 253);
	ck_assert_int_eq(EVP_PKEY_get_security_bits(own), EVP_PKEY_get_security_bits(other));
	ck_assert_int_eq(EVP_PKEY_eq(came, own), 0);
	EVP_PKEY_free(own);
	EVP_PKEY_free(other);
	EVP_PKEY_free(came);
	EVP_PKEY_free(at_other);
}
END_TEST

/* Points of small order give all zeros, and two clients' secrets would be the same (RFC 7748 6.1, RFC 8446 7.4.2). */
START_TEST(a_point_of_small_order_gives_no_secret)
{
	static const char *const points[] = { "0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
		"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f" };
	uint8_t scalar[32], point[32], out[32];

	randombytes_buf(scalar, sizeof scalar);
	for (unsigned i = 0; i < sizeof points / sizeof points[0]; i++) {
		from_hex(points[i], point);
		ck_assert_uint_eq(agree_on(OURS, scalar, point, out), 0);
	}
}
END_TEST

/* As a client of libssl makes the key of the share that comes in. */
START_TEST(parameters_are_copied_into_a_key_without_type)
{
	EVP_PKEY *own = generate(OURS), *to = EVP_PKEY_new();

	ck_assert_int_eq(EVP_PKEY_copy_parameters(to, own), 1);
	ck_assert_int_eq(EVP_PKEY_is_a(to, "X25519"), 1);
	ck_assert_int_ne(EVP_PKEY_eq(to, own), 1);
	EVP_PKEY_free(own);
	EVP_PKEY_free(to);
}
END_TEST

START_TEST(a_share_of_another_length_is_refused)
{
	EVP_PKEY *key = generate(OURS);
	const uint8_t share[33] = { 9 };

	ck_assert_int_le(EVP_PKEY_set1_encoded_public_key(key, share, 31), 0);
	ck_assert_int_le(EVP_PKEY_set1_encoded_public_key(key, share, 33), 0);
	ck_assert_int_eq(EVP_PKEY_set1_encoded_public_key(key, share, 32), 1);
	ck_assert_int_eq(EVP_PKEY_get_bits(key), 253);
	EVP_PKEY_free(key);
}
END_TEST

/* --- the library around it --- */

START_TEST(the_comparison_at_start_passes)
{
	ck_assert_int_eq(tls_library_best(), TLS_ALGORITHMS_OWN);
	ck_assert_int_eq(own_provider_check(tls_library()), 0);
}
END_TEST

START_TEST(the_default_library_context_does_not_know_the_provider)
{
	ck_assert_ptr_nonnull(tls_library());
	ck_assert_ptr_null(EVP_MAC_fetch(NULL, "HMAC", OURS));
	EVP_MAC *mac = EVP_MAC_fetch(tls_library(), "HMAC", OURS);
	ck_assert_ptr_nonnull(mac);
	EVP_MAC_free(mac);
}
END_TEST

START_TEST(each_query_finds_the_algorithms_it_is_for)
{
	for (int a = TLS_ALGORITHMS_OWN; a <= TLS_ALGORITHMS_OPENSSL; a++) {
		EVP_KDF *kdf = EVP_KDF_fetch(tls_library(), "TLS13-KDF", tls_library_query((enum tls_algorithms)a));
		ck_assert_ptr_nonnull(kdf);
		const char *of = OSSL_PROVIDER_get0_name(EVP_KDF_get0_provider(kdf));
		ck_assert_int_eq(strcmp(of, OWN_PROVIDER_NAME) == 0, a == TLS_ALGORITHMS_OWN);
		EVP_KDF_free(kdf);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, macs_are_those_of_rfc_4231, 0, (int)(sizeof(rfc4231) / sizeof(rfc4231[0])));
	tcase_add_test(t, extraction_is_that_of_rfc_5869);
	tcase_add_loop_test(t, macs_of_random_inputs_are_those_of_openssl, 0, 2);
	tcase_add_loop_test(t, random_labels_expand_as_in_openssls_hkdf, 0, 2);
	tcase_add_test(t, the_prf_is_that_of_the_published_vector);
	tcase_add_loop_test(t, the_prf_of_random_inputs_is_that_of_openssl, 0, 2);
	tcase_add_test(t, the_prf_refuses_what_it_does_not_have);
	tcase_add_test(t, a_watcher_is_told_of_key_blocks_and_of_nothing_else);
	tcase_add_loop_test(t, x25519_is_that_of_rfc_7748, 0, (int)(sizeof rfc7748 / sizeof rfc7748[0]));
	tcase_add_test(t, random_keys_agree_on_what_openssl_says);
	tcase_add_test(t, made_keys_agree_with_openssls);
	tcase_add_test(t, a_point_of_small_order_gives_no_secret);
	tcase_add_test(t, parameters_are_copied_into_a_key_without_type);
	tcase_add_test(t, a_share_of_another_length_is_refused);
	tcase_add_test(t, the_comparison_at_start_passes);
	tcase_add_test(t, the_default_library_context_does_not_know_the_provider);
	tcase_add_test(t, each_query_finds_the_algorithms_it_is_for);
}

UNIT(own_provider)
{
	return run_suite("own_provider", add);
}
