/* opening.h: how two processes open a link: Noise NNpsk0 in shape (X25519, ChaCha20-Poly1305, BLAKE2b by libsodium).
 *
 *   -> psk, e          payload: who I am       (link_hello of the initiator)
 *   <- e, ee           payload: who I am       (link_hello of the responder)
 *   -> (empty, sealed)                         proves that the initiator is live; the responder trusts it from here
 *
 * The PSK is a subkey of link.key (RAgent - agent) or agents.key (agent - agent). The caller gives the key ring, and
 * the role that the other side must have. The key's id precedes the first message in clear; the transcript covers it
 * and everything else. The two sides agree on the highest common version and the AEAD of the batches; their protection
 * must be the same. No sockets: bytes in, bytes out. Each message begins with its length (2 bytes, big endian). The
 * caller ends an opening that takes too long.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/agents_key.h"
#include "proto/link_hello.h"

#define OPENING_MESSAGE_MAX 1024u

/* The result: the keys of an open link, one for each direction. Key material: wipe with sodium_memzero. */
struct link_keys {
	uint8_t send[KEY_LEN];
	uint8_t receive[KEY_LEN];
	uint8_t transcript[32]; /* equal on both sides; no secret */
	uint16_t version;
	enum link_protection protection;
	enum aead aead; /* of the batches */
};

struct opening;

/* @ring outlives the opening. @mine is copied; the responder's worker in it becomes the one that the initiator asks
 * for. @key: the index of the key that the initiator uses. @peer: the role that the other side must have. NULL: out of
 * memory. */
struct opening *opening_start(
	const struct key_ring *ring, unsigned key, const struct link_hello *mine, enum link_role peer);
struct opening *opening_answer(const struct key_ring *ring, const struct link_hello *mine, enum link_role peer);
void opening_destroy(struct opening *o);

#define OPENING_MORE 1 /* more input is needed */
#define OPENING_DONE 2 /* open: opening_result() may be called */

/* Go on. Takes *taken bytes from @in: a whole message or nothing. The caller gives the rest again, with what follows.
 * Writes *out_len bytes to @out, which the caller sends unless the result is negative. The initiator's first call has
 * no input. OPENING_MORE, OPENING_DONE, or negative: close the connection. CSSL_E_KEY_UNKNOWN   no key of that id
 *   CSSL_E_AUTH          not sealed under that key, or an all-zero DH
 *   CSSL_E_VERSION       no common version
 *   CSSL_E_MISMATCH      wrong role or protection, or the responder has no such worker
 *   CSSL_E_TOO_LONG, CSSL_E_TRUNCATED, CSSL_E_TRAILING, CSSL_E_RANGE   malformed
 *   CSSL_E_STATE         called after the end */
int opening_step(struct opening *o, const uint8_t *in, size_t len, size_t *taken,
	uint8_t out[static OPENING_MESSAGE_MAX], size_t *out_len);

/* The other side's hello; NULL before it came. A responder may trust it after OPENING_DONE; before that it is only good
 * for the log of a refusal. */
const struct link_hello *opening_peer(const struct opening *o);

/* Move the keys to @out. Once, after OPENING_DONE. 0 or CSSL_E_STATE. */
int opening_result(struct opening *o, struct link_keys *out);
