/* fuzz_sealed_copy.c: after a first byte of 0, the rest is a copy as RAgent might return it. After another byte, the
 * rest is the plaintext that an agent sealed, so that the fuzzer gets past the tag. */
#include <sodium.h>
#include <string.h>

#include "proto/sealed_copy.h"
#include "tests/fuzz/must.h"

#define LABEL_LEN 6u /* version, epoch, key id length, "k1" */
#define NONCE_LEN crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define PLAIN_MAX 4096u

static const struct key_ring ring = { .count = 1,
	.keys = { { .id = "k1", .key = "the key of all these fuzzed copi" } } };
static const struct connection_id connection = { "connection id 16" };
static const char listener[] = "shop";

static int open_copy(const uint8_t *in, size_t len, struct sess_obj *out, uint16_t *epoch)
{
	struct sealed_copy_label label;
	int error = sealed_copy_open(&ring, &connection, listener, in, len, 1, out, epoch);

	MUST(error == 0 || error < 0);
	if (sealed_copy_peek(in, len, &label) < 0)
		MUST(error < 0);
	else if (!error)
		MUST(label.epoch == *epoch && strcmp(label.key_id, "k1") == 0);
	return error;
}

static size_t seal(const uint8_t *plain, size_t len, uint16_t epoch, uint8_t *out)
{
	uint8_t bound[LABEL_LEN + CONNECTION_ID_LEN + sizeof(listener) - 1], key[KEY_LEN];
	const uint8_t label[LABEL_LEN] = { SEALED_COPY_VERSION, (uint8_t)(epoch >> 8), (uint8_t)epoch, 2, 'k', '1' };
	unsigned long long sealed_len;

	memcpy(out, label, LABEL_LEN);
	memset(out + LABEL_LEN, 7, NONCE_LEN);
	memcpy(bound, label, LABEL_LEN);
	memcpy(bound + LABEL_LEN, connection.bytes, CONNECTION_ID_LEN);
	memcpy(bound + LABEL_LEN + CONNECTION_ID_LEN, listener, sizeof(listener) - 1);
	key_ring_subkey(&ring, 0, SUBKEY_SEALED_COPY, key, sizeof(key));
	crypto_aead_xchacha20poly1305_ietf_encrypt(
		out + LABEL_LEN + NONCE_LEN, &sealed_len, plain, len, bound, sizeof(bound), NULL, out + LABEL_LEN, key);
	return LABEL_LEN + NONCE_LEN + (size_t)sealed_len;
}

/* A copy opens exactly if it contains an object of this binding that has not expired. */
static void fuzz_inside(const uint8_t *plain, size_t len)
{
	uint8_t copy[LABEL_LEN + NONCE_LEN + PLAIN_MAX + TAG_LEN];
	struct sess_obj inside, out;
	uint16_t epoch = 0;
	int fits = 0, decodes = sess_obj_decode(plain, len, &inside) == 0;

	if (decodes && inside.live) {
		epoch = inside.live->epoch;
		fits = strcmp(inside.facts.listener, listener) == 0 && inside.live->remaining_s > 1 &&
		       memcmp(&inside.live->connection, &connection, sizeof(connection)) == 0;
	}
	int error = open_copy(copy, seal(plain, len, epoch, copy), &out, &epoch);
	MUST((error == 0) == fits);
	if (fits) {
		MUST(out.live->remaining_s == inside.live->remaining_s - 1);
		sess_obj_destroy(&out);
	}
	if (decodes)
		sess_obj_destroy(&inside);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct sess_obj out;
	uint16_t epoch;

	if (len == 0)
		return 0;
	if (in[0] == 0) {
		if (open_copy(in + 1, len - 1, &out, &epoch) == 0)
			sess_obj_destroy(&out);
	} else if (len - 1 <= PLAIN_MAX) {
		fuzz_inside(in + 1, len - 1);
	}
	return 0;
}
