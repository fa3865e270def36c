/* seal.c: one subkey for each key of the ring. The first one seals, all of them open, so that keys can be changed while
 * the backups hold messages. */
#include "smtpproxy/queue/items/seal.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define NONCE_LEN        crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_LEN          crypto_aead_xchacha20poly1305_ietf_ABYTES
#define GATEWAY_NAME_MAX 64u
#define BOUND_MAX        (11u + GATEWAY_NAME_MAX + 1u + 1u + 8u)

_Static_assert(SEAL_OVERHEAD == KEY_ID_MAX + NONCE_LEN + TAG_LEN, "the layout of seal.h");
_Static_assert(KEY_LEN == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "subkeys fit the AEAD");

struct seal {
	unsigned count;
	char name[GATEWAY_NAME_MAX + 1];
	struct {
		char id[KEY_ID_MAX + 1], print[SEAL_PRINT_LEN + 1];
		uint8_t key[KEY_LEN];
	} keys[KEY_RING_MAX];
};

struct seal *seal_create(const struct key_ring *ring, const char *name)
{
	struct seal *s = sodium_malloc(sizeof *s);

	if (!s)
		return NULL;
	sodium_memzero(s, sizeof *s);
	snprintf(s->name, sizeof s->name, "%s", name);
	s->count = ring->count;
	for (unsigned i = 0; i < ring->count; i++) {
		uint8_t print[SEAL_PRINT_LEN / 2];

		key_ring_subkey(ring, i, SUBKEY_MAIL_PRINT, print, sizeof print);
		sodium_bin2hex(s->keys[i].print, sizeof s->keys[i].print, print, sizeof print);
		memcpy(s->keys[i].id, ring->keys[i].id, sizeof s->keys[i].id);
		key_ring_subkey(ring, i, SUBKEY_SEALED_MAIL, s->keys[i].key, KEY_LEN);
	}
	return s;
}

void seal_destroy(struct seal *s)
{
	sodium_free(s);
}

const char *seal_print(const struct seal *s)
{
	return s->keys[0].print;
}

bool seal_has(const struct seal *s, const char *print)
{
	for (unsigned i = 0; i < s->count; i++)
		if (!strcmp(s->keys[i].print, print))
			return true;
	return false;
}

static size_t bind(const struct seal *s, char kind, uint64_t id, uint8_t out[static BOUND_MAX])
{
	struct wire_writer w = wire_writer(out, BOUND_MAX);

	wire_put_bytes(&w, "cssl queue ", 11);
	wire_put_bytes(&w, s->name, strlen(s->name) + 1);
	wire_put_u8(&w, (uint8_t)kind);
	wire_put_u64(&w, id);
	return (size_t)wire_writer_len(&w);
}

void seal_seal(const struct seal *s, char kind, uint64_t id, const uint8_t *plain, size_t len, uint8_t *out)
{
	uint8_t bound[BOUND_MAX];
	size_t bound_len = bind(s, kind, id, bound);
	struct wire_writer w = wire_writer(out, KEY_ID_MAX + NONCE_LEN);
	uint8_t nonce[NONCE_LEN];

	randombytes_buf(nonce, sizeof nonce);
	wire_put_bytes(&w, s->keys[0].id, KEY_ID_MAX);
	wire_put_bytes(&w, nonce, sizeof nonce);
	crypto_aead_xchacha20poly1305_ietf_encrypt(
		out + KEY_ID_MAX + NONCE_LEN, NULL, plain, len, bound, bound_len, NULL, nonce, s->keys[0].key);
}

int seal_open(const struct seal *s, char kind, uint64_t id, const uint8_t *sealed, size_t len, uint8_t *out)
{
	uint8_t bound[BOUND_MAX];
	size_t bound_len = bind(s, kind, id, bound);
	unsigned i = 0;

	if (len < SEAL_OVERHEAD)
		return CSSL_E_TRUNCATED;
	while (i < s->count && memcmp(s->keys[i].id, sealed, KEY_ID_MAX))
		i++;
	if (i == s->count)
		return CSSL_E_KEY_UNKNOWN;
	return crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed + KEY_ID_MAX + NONCE_LEN,
		       len - KEY_ID_MAX - NONCE_LEN, bound, bound_len, sealed + KEY_ID_MAX, s->keys[i].key)
		       ? CSSL_E_AUTH
		       : 0;
}
