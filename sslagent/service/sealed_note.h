/* sealed_note.h: the data that a successor needs to go on with an answer (service.h: a note). RAgent keeps it sealed,
 * and cannot open it: XChaCha20-Poly1305 under a subkey of agents.key of its own: version (1) | key id length (1) | key
 * id | nonce (24) | ciphertext | tag (16) Associated data: all before the nonce, connection id, listener.
 */
#pragma once

#include "proto/agents_key.h"
#include "sslagent/service/service.h"

#define SEALED_NOTE_VERSION 1u
#define SEALED_NOTE_MAX     (2u + KEY_ID_MAX + 24u + SERVICE_NOTE_MAX + 16u)

struct note_binding {
	struct connection_id connection;
	const char *listener;
};

/* Seal @len <= SERVICE_NOTE_MAX bytes under the ring's first key with a random nonce. Bytes written, or CSSL_E_TOO_LONG
 * (the listener's name). */
ptrdiff_t sealed_note_seal(const struct key_ring *ring, const struct note_binding *to, const uint8_t *note, size_t len,
	uint8_t out[static SEALED_NOTE_MAX]);

/* The note's bytes, or CSSL_E_KEY_UNKNOWN, CSSL_E_AUTH, CSSL_E_VERSION, CSSL_E_TRUNCATED, CSSL_E_RANGE. */
ptrdiff_t sealed_note_open(const struct key_ring *ring, const struct note_binding *to, const uint8_t *in, size_t len,
	uint8_t out[static SERVICE_NOTE_MAX]);
