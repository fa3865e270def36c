/* opening.h: how two processes open a link: Noise NNpsk0 in shape (X25519, ChaCha20-Poly1305, BLAKE2b by libsodium).
 *
 *   -> psk, e          payload: who I am       (link_hello of the initiator)
 *   <- e, ee           payload: who I am       (link_hello of the responder)
 *   -> (empty, sealed)                         the initiator is live; only now the responder believes it
 *
 * The PSK is a subkey of link.key (RAgent - agent) or agents.key (agent - agent): the caller gives the ring and the
 * role it expects of the other side. The key's id goes in clear before the first message and is bound by the
 * transcript, like everything else. Agreed are the highest common version and the AEAD of the batches; protection must
 * be the same on both sides. Pure: bytes in, bytes out; the caller frames nothing, each message carries its own length
 * (2 bytes, big endian) in front. The caller ends an opening that takes too long.
 */
#ifndef CSSL_PROTO_OPENING_H
#define CSSL_PROTO_OPENING_H

#include <stddef.h>
#include <stdint.h>

#include "proto/agents_key.h"
#include "proto/link_hello.h"

#define OPENING_MESSAGE_MAX 1024u

/* What was agreed: keys of an open link, one per direction. Holds key material: wipe with sodium_memzero. */
struct link_keys {
	uint8_t send[KEY_LEN];
	uint8_t receive[KEY_LEN];
	uint8_t transcript[32]; /* equal on both sides; no secret */
	uint16_t version;
	enum link_protection protection;
	enum aead aead; /* of the batches */
};

struct opening;

/* @ring outlives the opening; @mine is copied, and the responder's worker becomes the one that the initiator asks for.
 * @key: index of the ring's key to use as initiator. @peer: the role the other side must have. NULL: out of memory. */
struct opening *opening_start(
	const struct key_ring *ring, unsigned key, const struct link_hello *mine, enum link_role peer);
struct opening *opening_answer(const struct key_ring *ring, const struct link_hello *mine, enum link_role peer);
void opening_destroy(struct opening *o);

#define OPENING_MORE 1 /* more input is needed */
#define OPENING_DONE 2 /* open: opening_result() may be called */

/* Advance. Takes bytes from @in (*taken of them; partial messages are kept inside, bytes behind the last message are
 * left) and writes at most OPENING_MESSAGE_MAX bytes to @out (*out_len), to be sent unless the result is negative.
 * The initiator calls it first with no input. OPENING_MORE, OPENING_DONE, or negative: close the connection.
 *   CSSL_E_KEY_UNKNOWN   no key of that id
 *   CSSL_E_AUTH          not sealed under that key, or an all-zero DH
 *   CSSL_E_VERSION       no common version
 *   CSSL_E_MISMATCH      another role or protection than expected, or a target worker that the responder has not
 *   CSSL_E_TOO_LONG, CSSL_E_TRUNCATED, CSSL_E_TRAILING, CSSL_E_RANGE   malformed
 *   CSSL_E_STATE         called after the end */
int opening_step(struct opening *o, const uint8_t *in, size_t len, size_t *taken,
	uint8_t out[static OPENING_MESSAGE_MAX], size_t *out_len);

/* The other side's hello; NULL before it was read. For the responder it is believed only after OPENING_DONE; for the
 * log of a refusal it may be looked at before. */
const struct link_hello *opening_peer(const struct opening *o);

/* Move the keys out; once, after OPENING_DONE. 0 or CSSL_E_STATE. */
int opening_result(struct opening *o, struct link_keys *out);

#endif
