/* delivered.h: answers that cannot be asked for from their middle on (download.h), on a listener that allows to repeat
 * them (`repeat_downloads`, law 10). With each frame of such an answer its owner leaves a digest of all bytes that the
 * client has then. After a loss, an agent asks for the whole answer again, and goes on behind the delivered bytes if
 * the repeated answer has the same status, framing and fields, and begins with the same body.
 *
 * RAgent commits whole frames. So the client has either the bytes before the last frame or those behind it, and a note
 * has the digest of both. All delivered bytes are compared, but no later byte can be: if the backend has another answer
 * that begins with the same bytes, the client gets the end of that one. It works on bytes only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELIVERED_LOOK_LEN   32u   /* BLAKE2b-256 */
#define DELIVERED_KEY_LEN    32u   /* of Poly1305 */
#define DELIVERED_DIGEST_LEN 16u   /* its tag */
#define DELIVERED_BLOCK      1024u /* bytes */

/* A running digest: that of each block covers the digest before it. So its state is a few bytes with one meaning, which
 * can be moved to another process.
 *
 * The function is Poly1305 under a random key for each answer. Key and digests never leave the agents unsealed, so
 * nobody can choose bytes by them, and two different bodies have one digest with a probability below 2^-90 for each
 * block, whoever made them. It costs a third of a hash without a key. */
struct body_digest {
	uint64_t len; /* of the body so far */
	uint8_t key[DELIVERED_KEY_LEN];
	uint8_t chain[DELIVERED_DIGEST_LEN];
	uint8_t tail[DELIVERED_BLOCK]; /* the len % DELIVERED_BLOCK bytes after the last whole block */
};

/* An answer, as far as the client has it. */
struct delivered {
	uint8_t look[DELIVERED_LOOK_LEN]; /* of its status and of the fields that tell which answer it is */
	uint64_t len;                     /* of the whole body as it is sent, or ANSWER_CHUNKED */
	uint64_t at;                      /* so many bytes of head and body were delivered */
	uint32_t head_len;
	uint8_t closes; /* enum answer_close */
	struct body_digest body;
};

/* An answer begins with [data, data + len), and nothing of it is delivered. 0 and *out if it can be compared with a
 * repetition of it, under a new key. DELIVERED_NOT: it has no body, no length and no chunks, or its head is not
 * complete. */
#define DELIVERED_NOT 1
int delivered_begins(const uint8_t *data, size_t len, struct delivered *out);

/* Writes the state, for a move of the conversation to another owner, and reads it back: 0 and *out, or
 * CSSL_E_TRUNCATED, CSSL_E_RANGE. */
#define DELIVERED_STATE_LEN 1125u
void delivered_save(const struct delivered *d, uint8_t out[static DELIVERED_STATE_LEN]);
int delivered_restore(const uint8_t *in, size_t len, struct delivered *out);

/* An owner's answer, and the same answer behind its next frame. */
struct delivered_watch {
	struct delivered now, ahead;
};

/* *@w becomes a watch of @answer; then it holds plaintext. 0 or CSSL_E_NO_MEMORY. */
int delivered_watch(struct delivered_watch **w, const struct delivered *answer);
void delivered_unwatch(struct delivered_watch **w); /* wipes it; *@w NULL is legal, and is NULL afterwards */

/* Writes the note for the position before and behind the next @len bytes. Returns its length. It begins with
 * UINT64_MAX: no download begins at such an offset (download.h). */
#define DELIVERED_NOTE_MAX 133u
size_t delivered_note(
	struct delivered_watch *w, const uint8_t *next, size_t len, uint8_t out[static DELIVERED_NOTE_MAX]);
/* The next @len bytes were sealed. */
void delivered_passed(struct delivered_watch *w, const uint8_t *data, size_t len);

/* A successor's comparison of the repeated answer with the one that was cut. */
struct repetition {
	struct delivered answer; /* the cut one; its body is that of the repeated answer, as far as it was heard */
	uint64_t goal;           /* the client has so many bytes of the body */
	uint8_t digest[DELIVERED_DIGEST_LEN]; /* of these */
	enum { REPETITION_BEGINS, REPETITION_IN_BODY } step;
};

/* Is the note one of these? */
bool delivered_is_note(const uint8_t *note, size_t len);
/* @delivered bytes of the answer were delivered. 0 and *out; CSSL_E_TRUNCATED, CSSL_E_TRAILING, CSSL_E_RANGE (the
 * values make no sense), CSSL_E_NOT_FOUND (the note has no digest of these bytes). */
int repetition_read(const uint8_t *note, size_t len, uint64_t delivered, struct repetition *out);

/* Bytes of the repeated answer: the next ones after those that were heard. */
struct repetition_heard {
	size_t head_len; /* the first so many bytes are its head, after interim responses */
	size_t len;      /* heard: the head, and bytes of the body that the client has */
};
/* 0: it is the same answer, and the client's next byte is the one after these. REPETITION_MORE: more bytes are needed.
 * CSSL_E_MISMATCH: it is another answer. */
#define REPETITION_MORE 1
int repetition_hear(struct repetition *r, const uint8_t *data, size_t len, struct repetition_heard *out);
