/* fuzz_datagram.c: the first byte chooses the algorithm and the way: open the rest as it came, or seal it and open
 * that. */
#include <string.h>

#include "proto/datagram.h"
#include "tests/fuzz/must.h"

static const uint8_t secret[AEAD_SECRET_LEN] = "the key of all these datagrams..";
static const struct datagram_header header = { .worker = 1, .key_id = 0x0102030405060708, .boot_id = 2, .counter = 3 };

static void fuzz_open(struct datagram_key *k, const uint8_t *in, size_t len)
{
	uint8_t payload[DATAGRAM_PAYLOAD_MAX];
	struct datagram_header h;
	ptrdiff_t opened = datagram_open(k, in, len, payload, sizeof(payload));

	if (datagram_peek(in, len, &h) < 0 || h.key_id != header.key_id)
		MUST(opened < 0);
	if (opened >= 0)
		MUST((size_t)opened == len - DATAGRAM_HEADER_LEN - DATAGRAM_TAG_LEN);
}

static void fuzz_round(struct datagram_key *k, const uint8_t *in, size_t len)
{
	uint8_t sealed[DATAGRAM_MAX], payload[DATAGRAM_PAYLOAD_MAX];
	ptrdiff_t sealed_len = datagram_seal(k, &header, in, len, sealed, sizeof(sealed));

	MUST((sealed_len > 0) == (len <= DATAGRAM_PAYLOAD_MAX));
	if (sealed_len < 0)
		return;
	MUST(datagram_open(k, sealed, (size_t)sealed_len, payload, sizeof(payload)) == (ptrdiff_t)len);
	MUST(len == 0 || memcmp(payload, in, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	if (len == 0)
		return 0;
	enum aead aead = in[0] & 1 ? AEAD_AES_256_GCM : AEAD_CHACHA20_POLY1305;
	struct datagram_key *k = datagram_key_create(header.key_id, aead, secret);
	MUST(k);
	if (in[0] & 2)
		fuzz_round(k, in + 1, len - 1);
	else
		fuzz_open(k, in + 1, len - 1);
	datagram_key_destroy(k);
	return 0;
}
