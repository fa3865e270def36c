/* fuzz_opening.c: garbage at each step of either side, in pieces. The first byte chooses the step, the second where the
 * rest is cut in two. Randomness is a counter here: then a recorded message is good again, and the fuzzer starts from
 * openings that succeed. */
#include <sodium.h>
#include <string.h>

#include "proto/noise.h"
#include "proto/opening.h"
#include "proto/wire.h"
#include "tests/fuzz/must.h"

enum step { FIRST_MESSAGE, ANSWER, PROOF, HELLO, STEP_COUNT };

static const struct key_ring ring = { .count = 1,
	.keys = { { .id = "k1", .key = "the key of all these openings..." } } };
static const struct link_hello ragent = { 1, 1, LINK_ROLE_RAGENT, LINK_SEALED, AEAD_AES_256_GCM, "ragent-1", 1, 0, 0, 1,
	"" };
static const struct link_hello agent = { 1, 1, LINK_ROLE_AGENT, LINK_SEALED, AEAD_AES_256_GCM, "agent-1", 2, 0, 0, 1,
	"" };

static uint8_t next_random;

static const char *counter_name(void)
{
	return "counter";
}

static void counter_bytes(void *const out, const size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)out)[i] = next_random++;
}

static uint32_t counter_u32(void)
{
	return next_random++;
}

static struct randombytes_implementation counter = {
	.implementation_name = counter_name, .random = counter_u32, .buf = counter_bytes
};

static int step(struct opening *o, const uint8_t *in, size_t len, size_t *used, uint8_t out[static OPENING_MESSAGE_MAX],
	size_t *out_len)
{
	size_t taken;
	int result = opening_step(o, in, len, &taken, out, out_len);

	*used = taken;
	MUST(taken <= len && *out_len <= OPENING_MESSAGE_MAX);
	MUST(result == OPENING_MORE || result == OPENING_DONE || (result < 0 && *out_len == 0));
	if (result == OPENING_MORE)
		MUST(taken == 0 || *out_len > 0);
	return result;
}

/* The input in two pieces, then the end: keys only after OPENING_DONE. */
static void give(struct opening *o, const uint8_t *in, size_t len, size_t cut)
{
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t out_len, used;
	struct link_keys keys;

	if (cut > len)
		cut = len;
	int result = step(o, in, cut, &used, out, &out_len);
	if (result == OPENING_MORE)
		result = step(o, in + used, len - used, &used, out, &out_len);
	MUST((opening_result(o, &keys) == 0) == (result == OPENING_DONE));
	if (result == OPENING_DONE)
		MUST(opening_peer(o) && keys.version == 1 && keys.protection == LINK_SEALED);
}

/* A first message whose sealed hello is the input, made by an attacker who has the key. */
static size_t hello_message(const uint8_t *in, size_t len, uint8_t out[static OPENING_MESSAGE_MAX])
{
	static const uint8_t point[32] = { 9 };
	uint8_t psk[NOISE_KEY_LEN], sealed[OPENING_MESSAGE_MAX];
	struct wire_writer w = wire_writer(out, OPENING_MESSAGE_MAX);
	struct noise n;

	if (len > OPENING_MESSAGE_MAX - 64)
		len = OPENING_MESSAGE_MAX - 64;
	noise_init(&n, "CSSL link, Noise NNpsk0, X25519 ChaChaPoly BLAKE2b");
	noise_mix_hash(&n, (const uint8_t[]){ 1, 2 }, 2);
	noise_mix_hash(&n, (const uint8_t *)"k1", 2);
	key_ring_subkey(&ring, 0, SUBKEY_OPENING, psk, sizeof(psk));
	noise_mix_psk(&n, psk);
	noise_mix_hash(&n, point, sizeof(point));
	noise_mix_key(&n, point, sizeof(point));
	noise_seal(&n, in, len, sealed);
	wire_put_u16(&w, (uint16_t)(4 + sizeof(point) + len + NOISE_TAG_LEN));
	wire_put_bytes(&w, (const uint8_t[]){ 1, 2, 'k', '1' }, 4);
	wire_put_bytes(&w, point, sizeof(point));
	wire_put_bytes(&w, sealed, len + NOISE_TAG_LEN);
	return (size_t)wire_writer_len(&w);
}

static void fuzz_hello(struct opening *responder, const uint8_t *in, size_t len, size_t cut)
{
	uint8_t message[OPENING_MESSAGE_MAX];
	size_t message_len = hello_message(in, len, message);
	struct link_hello h;

	give(responder, message, message_len, cut);
	if (len <= OPENING_MESSAGE_MAX - 64 && link_hello_read(in, len, &h) == 0)
		MUST(opening_peer(responder) && strcmp(opening_peer(responder)->name, h.name) == 0);
	else if (len <= OPENING_MESSAGE_MAX - 64)
		MUST(!opening_peer(responder));
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t first[OPENING_MESSAGE_MAX], answer[OPENING_MESSAGE_MAX];
	size_t first_len, answer_len, used;

	if (len < 2)
		return 0;
	randombytes_set_implementation(&counter);
	next_random = 0;
	struct opening *initiator = opening_start(&ring, 0, &ragent, LINK_ROLE_AGENT);
	struct opening *responder = opening_answer(&ring, &agent, LINK_ROLE_RAGENT);
	MUST(initiator && responder);
	enum step where = in[0] % STEP_COUNT;
	size_t cut = in[1];
	in += 2;
	len -= 2;

	if (where == ANSWER || where == PROOF)
		MUST(step(initiator, NULL, 0, &used, first, &first_len) == OPENING_MORE);
	if (where == PROOF)
		MUST(step(responder, first, first_len, &used, answer, &answer_len) == OPENING_MORE);
	if (where == HELLO)
		fuzz_hello(responder, in, len, cut);
	else
		give(where == ANSWER ? initiator : responder, in, len, cut);
	opening_destroy(initiator);
	opening_destroy(responder);
	return 0;
}
