/* fuzz_batch.c: the first byte chooses the algorithm and the way: open the rest as a link's bytes, or send it as
 * batches whose lengths it gives itself. */
#include <string.h>

#include "proto/batch.h"
#include "tests/fuzz/must.h"

#define BATCHES_PER_FUZZED_KEY 3u
#define INPUT_MAX              16384u

static const uint8_t secret[AEAD_SECRET_LEN] = "the key of all these batches.. .";

static void fuzz_open(struct batch_cipher *opening, const uint8_t *in, size_t len)
{
	uint8_t link[INPUT_MAX], *plain;
	size_t plain_len, taken, at = 0;

	memcpy(link, in, len);
	while (batch_open(opening, link + at, len - at, &plain, &plain_len, &taken) == 0) {
		MUST(plain == link + at + BATCH_HEADER_LEN);
		MUST(plain_len > 0 && taken == plain_len + BATCH_OVERHEAD && taken <= len - at);
		at += taken;
	}
}

static void fuzz_round(struct batch_cipher *sealing, struct batch_cipher *opening, const uint8_t *in, size_t len)
{
	uint8_t batch[256 + BATCH_OVERHEAD], *plain;
	size_t plain_len, taken;

	while (len > 1) {
		size_t part = in[0] ? in[0] : 1;
		if (part > len - 1)
			part = len - 1;
		memcpy(batch + BATCH_HEADER_LEN, in + 1, part);
		MUST(batch_seal(sealing, batch, part) == 0);
		MUST(batch_open(opening, batch, part + BATCH_OVERHEAD - 1, &plain, &plain_len, &taken) ==
			BATCH_INCOMPLETE);
		MUST(batch_open(opening, batch, part + BATCH_OVERHEAD, &plain, &plain_len, &taken) == 0);
		MUST(plain_len == part && memcmp(plain, in + 1, part) == 0);
		in += 1 + part;
		len -= 1 + part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	if (len == 0 || len > INPUT_MAX)
		return 0;
	enum aead aead = in[0] & 1 ? AEAD_AES_256_GCM : AEAD_CHACHA20_POLY1305;
	struct batch_cipher *sealing = batch_cipher_create(aead, secret, BATCHES_PER_FUZZED_KEY);
	struct batch_cipher *opening = batch_cipher_create(aead, secret, BATCHES_PER_FUZZED_KEY);
	MUST(sealing && opening);
	if (in[0] & 2)
		fuzz_round(sealing, opening, in + 1, len - 1);
	else
		fuzz_open(opening, in + 1, len - 1);
	batch_cipher_destroy(sealing);
	batch_cipher_destroy(opening);
	return 0;
}
