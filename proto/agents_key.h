/* agents_key.h: the keys of `agents.key`, which only agents hold, and subkeys of them. A key file has one or more lines
 * `id key` (id: 1-16 word characters [A-Za-z0-9_]; key: 64 hex digits). The first key seals; all keys open. Blank lines
 * and lines that begin with '#' are comments. RAgent must not be able to read the file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KEY_LEN      32u
#define KEY_ID_MAX   16u
#define KEY_RING_MAX 8u

/* One parsed key file; link.key has the same form. It lives as long as the process. The caller allocates it with
 * sodium_malloc. */
struct key_ring {
	unsigned count;
	struct {
		char id[KEY_ID_MAX + 1];
		uint8_t key[KEY_LEN];
	} keys[KEY_RING_MAX];
};

/* Parse the text of a key file. 0, or a negative error with @line set to the offending line (from 1) and @out wiped:
 *   CSSL_E_CONFIG    the line is not `id key`           CSSL_E_TYPE   the id is not 1-16 word characters
 *   CSSL_E_RANGE     the key is not 64 hex digits       CSSL_E_FULL   more than KEY_RING_MAX keys
 *   CSSL_E_MISMATCH  an id or a key stands there twice  CSSL_E_NOT_FOUND  no key at all */
int key_ring_parse(const char *text, size_t len, struct key_ring *out, unsigned *line);

/* Index of the key of that id, or CSSL_E_KEY_UNKNOWN. */
int key_ring_find(const struct key_ring *ring, const char *id, size_t id_len);

/* The purpose of a subkey. Subkeys derive one-way (keyed BLAKE2b, libsodium's crypto_kdf). */
enum subkey {
	SUBKEY_SEALED_COPY = 1,
	SUBKEY_OPENING = 2, /* PSK of a link's opening */
	SUBKEY_ID_CHECK = 3,
	SUBKEY_SEALED_DOWNLOAD = 4,
	SUBKEY_SEALED_MAIL = 5, /* messages in the backups of a mail queue */
	SUBKEY_MAIL_PRINT = 6,  /* public: the fingerprint of a key that seals messages */
};

/* @len: 16..64. The caller wipes @out. */
void key_ring_subkey(const struct key_ring *ring, unsigned index, enum subkey purpose, uint8_t *out, size_t len);
