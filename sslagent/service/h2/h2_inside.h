/* h2_inside.h: shared by the follower's own files: h2_follower.c (frames that pass), h2_words.c (frames of the
 * agent's own), h2_state.c (the follower as bytes, for a move).
 */
#ifndef CSSL_SSLAGENT_H2_INSIDE_H
#define CSSL_SSLAGENT_H2_INSIDE_H

#include "sslagent/service/h2/h2_follower.h"
#include "sslagent/service/h2/h2_streams.h"

#define H2_NO_GOAWAY       (H2_STREAM_MAX + 1u)
#define H2_WORDS_MAX       68u /* bytes: SETTINGS, three answers and GOAWAY; PING and GOAWAY; or three refusals */
#define H2_PING_LEN        8u
#define H2_SETTING_LEN     6u
#define H2_PREFACE_LEN     24u /* RFC 9113 3.4 */
#define H2_TO_BACKEND_MAX  32u /* bytes: a header, and a CONTINUATION that spoils a block */
#define H2_SETTING_STREAMS 3u  /* SETTINGS_MAX_CONCURRENT_STREAMS */

/* SETTINGS and PINGs of the other side that this side has not acknowledged. */
struct h2_owed {
	uint32_t settings, pings;
};

/* Has the backend's first frame passed? It is SETTINGS (RFC 9113 3.4). */
enum h2_greeting { H2_NOT_GREETED, H2_GREETED };
/* A client that reads while it is idle answers a PING, and then gets the first GOAWAY. */
enum h2_leaving { H2_STAYS, H2_LEAVES, H2_PROBES /* the PING is due */, H2_PROBED };
/* A frame of the client: for the backend, or an acknowledgement for the agent. */
enum h2_fate { H2_PASSES, H2_DROPPED };
/* The header block of the client that is under way: its stream has room, or is refused. */
enum h2_block { H2_TAKEN, H2_REFUSED };
/* SETTINGS of the backend get one setting more: the frame is not under way, or it is. */
enum h2_limit { H2_NO_LIMIT, H2_LIMIT_COMES };
/* Has the backend said by GOAWAY that the connection failed? Then no stream is answered any more. */
enum h2_health { H2_SOUND, H2_FAILED };

struct h2_follower {
	struct h2_frames client, backend;
	uint32_t client_block, backend_block; /* the stream whose header block is under way; 0: none */
	struct h2_owed client_owes, backend_owes;
	struct h2_streams streams;
	struct h2_streams refused; /* the client has still to be told */
	uint32_t newest;           /* highest stream that the client began */
	uint32_t last;       /* highest stream whose header block came completely: a backend may have worked on it */
	uint32_t goaway;     /* lowest last stream of all GOAWAYs to the client; or H2_NO_GOAWAY */
	uint32_t allowed;    /* so many streams at once the client was allowed last */
	uint32_t own_ping;   /* the client's so many-th acknowledgement of a PING is the agent's; 0: none is due */
	uint32_t unit;       /* number of the client's frames; the frames of a header block count as one */
	uint8_t phase;       /* enum h2_phase */
	uint8_t preface_len; /* bytes of the preface that have come */
	uint8_t greeting;    /* enum h2_greeting */
	uint8_t leaving;     /* enum h2_leaving */
	uint8_t lost_by;     /* enum h2_side */
	uint8_t fate;        /* enum h2_fate of the client's frame */
	uint8_t block;       /* enum h2_block */
	uint8_t limit;       /* enum h2_limit */
	uint8_t health;      /* enum h2_health */
	uint8_t held_len;    /* bytes of a frame's header that came from the backend and are not said yet */
	uint8_t held[H2_FRAME_HEAD_LEN];
	uint8_t words[H2_WORDS_MAX];
	uint8_t to_backend[H2_TO_BACKEND_MAX];
};

extern const uint8_t h2_own_ping[H2_PING_LEN];

static inline int h2_is_settings(const uint8_t head[static H2_FRAME_HEAD_LEN])
{
	return head[3] == H2_SETTINGS && !(head[4] & H2_ACK);
}

static inline int h2_is_between_frames(const struct h2_frames *f, uint32_t block)
{
	return f->head_len == 0 && block == 0;
}

#endif
