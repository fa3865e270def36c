/* datagram.h: one sealed datagram of the broadcast:
 * version (1) | zero (1) | worker (2) | key id (8) | boot id (8) | counter (8) | ciphertext | tag (16).
 * The header is associated data. The nonce consists of worker and counter, so the workers of a sender share its key and
 * each has its own counter. The sender chooses the algorithm (aead.h) and tells it with the key. The plaintext is a
 * sequence of messages: length (2) | BroadcastMessage (broadcast.proto). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/aead.h"

#define DATAGRAM_VERSION     1u
#define DATAGRAM_HEADER_LEN  28u
#define DATAGRAM_TAG_LEN     AEAD_TAG_LEN
#define DATAGRAM_PAYLOAD_MAX 1344u /* header + payload + tag + UDP/IPv6 fit an MTU of 1,500 with room for a tunnel */
#define DATAGRAM_MAX         (DATAGRAM_HEADER_LEN + DATAGRAM_PAYLOAD_MAX + DATAGRAM_TAG_LEN)

#define DATAGRAM_COUNTER_MAX (UINT64_C(1) << 40)

/* A sending key with its EVP context. Not thread-safe: each worker that seals under the key has its own object. A
 * receiver has one for each sender and key. */
struct datagram_key;

struct datagram_header {
	uint16_t worker;
	uint64_t key_id;
	uint64_t boot_id;
	uint64_t counter;
};

/* NULL when out of memory or the algorithm is unknown. */
struct datagram_key *datagram_key_create(uint64_t key_id, enum aead aead, const uint8_t key[static AEAD_SECRET_LEN]);
void datagram_key_destroy(struct datagram_key *k);
uint64_t datagram_key_id(const struct datagram_key *k);

/* Seal. Returns the bytes written (<= DATAGRAM_MAX), or negative and nothing was sealed. CSSL_E_EXHAUSTED: the counter
 * is above DATAGRAM_COUNTER_MAX, the key must be replaced. CSSL_E_UNSAFE: the counter did not rise, or another worker
 * has sealed with this object. CSSL_E_MISMATCH: the header names another key. */
ptrdiff_t datagram_seal(struct datagram_key *k, const struct datagram_header *h, const uint8_t *payload, size_t len,
	uint8_t *out, size_t cap);

/* Read the header, not authenticated, to find the key. 0, CSSL_E_TRUNCATED, CSSL_E_TOO_LONG, CSSL_E_VERSION,
 * CSSL_E_RANGE. */
int datagram_peek(const uint8_t *in, size_t len, struct datagram_header *out);

/* Open into @payload. Returns the bytes of payload (at most @len less header and tag), or negative: an error of
 * datagram_peek(), CSSL_E_MISMATCH (sealed under another key), CSSL_E_TOO_LONG (more than @cap), CSSL_E_AUTH. The
 * caller refuses replays (replay_window_check()).
 */
ptrdiff_t datagram_open(struct datagram_key *k, const uint8_t *in, size_t len, uint8_t *payload, size_t cap);

/* A sliding anti-replay window over a 64-bit counter (the shape of RFC 4303 3.4.3 and RFC 6479). */
#define WINDOW_BITS 1024u

struct replay_window {
	uint64_t next; /* one above the highest counter seen */
	uint64_t bits[WINDOW_BITS / 64];
};

/* Accept no counter below @first. */
void replay_window_init(struct replay_window *w, uint64_t first);

/* 0: @counter is new; the window does not change. CSSL_E_REPLAY: it was seen, or is older than the window. */
int replay_window_check(const struct replay_window *w, uint64_t counter);

/* Mark @counter as seen; only after the message was authenticated. 0 or CSSL_E_REPLAY. */
int replay_window_commit(struct replay_window *w, uint64_t counter);
