/* h2_inside.h: shared by the follower's own files: h2_follower.c (frames that pass), h2_words.c (frames of the
 * agent's own), h2_state.c (the follower as bytes, for a move).
 */
#ifndef CSSL_SSLAGENT_H2_INSIDE_H
#define CSSL_SSLAGENT_H2_INSIDE_H

#include "sslagent/service/h2/h2_follower.h"
#include "sslagent/service/h2/h2_streams.h"

#define H2_NO_GOAWAY   (H2_STREAM_MAX + 1u)
#define H2_WORDS_MAX   48u /* bytes: SETTINGS or its acknowledgement, GOAWAY, PING */
#define H2_PING_LEN    8u
#define H2_PREFACE_LEN 24u /* RFC 9113 3.4 */

/* SETTINGS and PINGs of the other side that this side has not acknowledged. */
struct h2_owed {
	uint32_t settings, pings;
};

/* Has the backend's first frame passed? It is SETTINGS (RFC 9113 3.4). */
enum h2_greeting { H2_NOT_GREETED, H2_GREETED };
enum h2_leaving { H2_STAYS, H2_LEAVES };

struct h2_follower {
	struct h2_frames client, backend;
	uint32_t client_block, backend_block; /* the stream whose header block is under way; 0: none */
	struct h2_owed client_owes, backend_owes;
	struct h2_streams streams;
	uint32_t newest;       /* highest stream that the client began */
	uint32_t last;         /* highest stream whose header block came completely: a backend may have worked on it */
	uint32_t goaway;       /* lowest last stream of all GOAWAYs to the client; or H2_NO_GOAWAY */
	uint32_t allowed;      /* so many streams of the client may be open at once */
	uint32_t allowed_next; /* the same, once the client has acknowledged the backend's SETTINGS */
	uint32_t unit;         /* number of the client's frames; the frames of a header block count as one */
	uint8_t phase;         /* enum h2_phase */
	uint8_t preface_len;   /* bytes of the preface that have come */
	uint8_t greeting;      /* enum h2_greeting */
	uint8_t leaving;       /* enum h2_leaving */
	uint8_t lost_by;       /* enum h2_side */
	uint8_t ping[H2_PING_LEN]; /* stranded: the client's last PING that is not acknowledged */
	uint8_t words[H2_WORDS_MAX];
};

static inline int h2_is_between_frames(const struct h2_frames *f, uint32_t block)
{
	return f->head_len == 0 && block == 0;
}

#endif
