/* datagram.h: one sealed datagram of the broadcast:
 * version (1) | reserved (1) | worker (2) | key id (8) | boot id (8) | counter (8) | ciphertext | tag (16).
 * The header is associated data; the nonce is made of worker and counter, so each worker counts for itself under the
 * sender's one key. AES-256-GCM through EVP where the CPU has AES, else ChaCha20-Poly1305: the key's algorithm is said with
 * the key. The plaintext is a sequence of messages: length (2) | BroadcastMessage (broadcast.proto). */
#ifndef CSSL_PROTO_DATAGRAM_H
#define CSSL_PROTO_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

#define DATAGRAM_VERSION 1u
#define DATAGRAM_HEADER_LEN 28u
#define DATAGRAM_TAG_LEN 16u
#define DATAGRAM_PAYLOAD_MAX 1344u /* header + payload + tag + UDP/IPv6 fit an MTU of 1,500 with room for a tunnel */
#define DATAGRAM_MAX (DATAGRAM_HEADER_LEN + DATAGRAM_PAYLOAD_MAX + DATAGRAM_TAG_LEN)

enum datagram_aead { DATAGRAM_AES_256_GCM = 1, DATAGRAM_CHACHA20_POLY1305 = 2 };

/* A sending key: opaque, holds an EVP context; one per sender and direction, not thread-safe. */
struct datagram_key;

struct datagram_header {
	uint16_t worker;
	uint64_t key_id;
	uint64_t boot_id;
	uint64_t counter;
};

/* NULL when out of memory or the algorithm is unknown. */
struct datagram_key *datagram_key_create(uint64_t key_id, enum datagram_aead aead, const uint8_t key[static 32]);
void datagram_key_destroy(struct datagram_key *k);
uint64_t datagram_key_id(const struct datagram_key *k);

/* Seal; bytes written (<= DATAGRAM_MAX) or negative. CSSL_E_EXHAUSTED: the key must be rolled (counter above 2^40). */
ptrdiff_t datagram_seal(struct datagram_key *k, const struct datagram_header *h, const uint8_t *payload, size_t len,
			uint8_t *out, size_t cap);

/* The header alone, unauthenticated, to find the key. 0 or negative. */
int datagram_peek(const uint8_t *in, size_t len, struct datagram_header *out);

/* Open into @payload (cap >= len). Payload bytes or negative. */
ptrdiff_t datagram_open(struct datagram_key *k, const uint8_t *in, size_t len, uint8_t *payload, size_t cap);

#endif
