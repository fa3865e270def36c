/* fuzz_sealed_note.c: after a first byte of 0, the rest is a blob as RAgent might return it. After another byte, the
 * rest is the plaintext that an agent sealed, so that the fuzzer gets past the tag. The note is read as one of a
 * download.
 */
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/service/http/download.h"
#include "sslagent/service/sealed_note.h"
#include "tests/fuzz/must.h"

#define LABEL_LEN 4u /* version, key id length, "k1" */
#define NONCE_LEN crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define PLAIN_MAX 512u

static const struct key_ring ring = { .count = 1,
	.keys = { { .id = "k1", .key = "the key of all these fuzzed blob" } } };
static const struct note_binding here = { { "connection id 16" }, "shop" };

static void check(const uint8_t *in, size_t len)
{
	struct download d, again;
	uint8_t note[SERVICE_NOTE_MAX], written[DOWNLOAD_NOTE_MAX], sealed[SEALED_NOTE_MAX];
	ptrdiff_t note_len = sealed_note_open(&ring, &here, in, len, note);

	MUST(note_len <= (ptrdiff_t)SERVICE_NOTE_MAX);
	if (note_len < 0)
		return;
	int error = download_read(note, (size_t)note_len, &d);
	MUST(error <= 0);
	if (error)
		return;
	MUST(d.len > 0 && d.len <= d.total && d.first <= d.total - d.len && d.head_len > 0);
	memset(&again, 0, sizeof again);
	MUST(download_write(&d, written) == (size_t)note_len);
	MUST(memcmp(written, note, (size_t)note_len) == 0);
	ptrdiff_t n = sealed_note_seal(&ring, &here, written, (size_t)note_len, sealed);
	MUST(n > 0 && (size_t)n == len);
	MUST(sealed_note_open(&ring, &here, sealed, (size_t)n, note) == note_len);
	MUST(download_read(note, (size_t)note_len, &again) == 0);
	MUST(memcmp(&d, &again, sizeof d) == 0);
}

static size_t seal(const uint8_t *plain, size_t len, uint8_t *out)
{
	static const uint8_t label[LABEL_LEN] = { SEALED_NOTE_VERSION, 2, 'k', '1' };
	uint8_t bound[LABEL_LEN + CONNECTION_ID_LEN + 4], key[KEY_LEN];
	unsigned long long sealed_len;

	memcpy(out, label, LABEL_LEN);
	memset(out + LABEL_LEN, 7, NONCE_LEN);
	memcpy(bound, label, LABEL_LEN);
	memcpy(bound + LABEL_LEN, here.connection.bytes, CONNECTION_ID_LEN);
	memcpy(bound + LABEL_LEN + CONNECTION_ID_LEN, here.listener, 4);
	key_ring_subkey(&ring, 0, SUBKEY_SEALED_DOWNLOAD, key, sizeof key);
	crypto_aead_xchacha20poly1305_ietf_encrypt(
		out + LABEL_LEN + NONCE_LEN, &sealed_len, plain, len, bound, sizeof bound, NULL, out + LABEL_LEN, key);
	return LABEL_LEN + NONCE_LEN + (size_t)sealed_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t blob[LABEL_LEN + NONCE_LEN + PLAIN_MAX + TAG_LEN];

	if (len == 0)
		return 0;
	if (in[0] == 0)
		check(in + 1, len - 1);
	else if (len - 1 <= PLAIN_MAX)
		check(blob, seal(in + 1, len - 1, blob));
	return 0;
}
