/* h2_follower.h: follows the frames of one client's HTTP/2 connection (RFC 9113) in both directions. It decodes no
 * header block. It knows which streams are open, which frames wait for an acknowledgement, and where an agent may
 * insert a frame of its own. All other bytes pass as they are, except that
 *
 * - the backend's SETTINGS end with one more setting: the most streams that agents follow, or fewer, as the backend
 *   says. A stream above that limit is refused, and only that one;
 * - an acknowledgement of the agent's own PING does not go to the backend.
 *
 * HTTP/2 has state that only the two ends know (header compression, windows). So no other backend connection can
 * continue a conversation. If the owner of an idle conversation is lost, and its backend connection with it, the
 * conversation is stranded: the next owner sends the client to a new connection by GOAWAY.
 */
#pragma once

#include "net/memory/slabs.h"
#include "sslagent/service/h2/h2_frames.h"
#include "sslagent/service/h2/h2_streams.h"
#include "sslagent/service/service.h"

enum h2_phase {
	H2_BEGINS,   /* the preface has not come completely, and may never come */
	H2_FOLLOWS,  /* between the client and a backend */
	H2_STRANDED, /* no backend has this conversation any more; set before any byte came */
	H2_LOST,     /* bytes of one side are no frames, or break the agent's limits: the conversation has to end */
};

enum h2_side { H2_CLIENT, H2_BACKEND };

#define H2_STREAMS_MAX 256u /* open ones of one connection */

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
	uint32_t newest;           /* highest stream that the client began; stranded: of those that no backend gets */
	uint32_t last;       /* highest stream whose header block came completely: a backend may have worked on it */
	uint32_t goaway;     /* lowest last stream of all GOAWAYs to the client; or H2_NO_GOAWAY */
	uint32_t allowed;    /* so many streams at once the client was allowed last */
	uint32_t own_ping;   /* the client's so many-th acknowledgement of a PING is the agent's; 0: none is due */
	uint32_t unit;       /* number of the client's frames; the frames of a header block count as one */
	uint8_t phase;       /* enum h2_phase */
	uint8_t preface_len; /* bytes of the preface that have come */
	uint8_t greeting;    /* enum h2_greeting */
	uint8_t leaving;     /* enum h2_leaving */
	uint8_t lost_by;     /* enum h2_side: LOST: the side that broke the protocol */
	uint8_t fate;        /* enum h2_fate of the client's frame */
	uint8_t block;       /* enum h2_block */
	uint8_t limit;       /* enum h2_limit */
	uint8_t health;      /* enum h2_health */
	uint8_t held_len;    /* bytes of a frame's header that came from the backend and are not said yet */
	uint8_t held[H2_FRAME_HEAD_LEN];
	uint8_t words[H2_WORDS_MAX];
	uint8_t to_backend[H2_TO_BACKEND_MAX];
};

/* Makes a follower in a block of @from. The block goes back to @from. NULL: out of memory. */
struct h2_follower *h2_follower_create(struct slabs *from);
void h2_follower_destroy(struct slabs *from, struct h2_follower *h);

/* Takes bytes of [data, data + len), len > 0, up to the next one that does not go on as it is. Returns how many; at
 * least 1. */
size_t h2_from_client(struct h2_follower *h, const uint8_t *data, size_t len, struct service_outgoing *out);

/* Of the backend's next @len bytes: so many are taken, because h2_words() says them, or others in their place. Ask
 * before h2_words(). */
size_t h2_hold(struct h2_follower *h, const uint8_t *data, size_t len);
/* Bytes that the client gets now, of the backend or of the agent. */
void h2_from_backend(struct h2_follower *h, const uint8_t *data, size_t len);

/* Both directions are between two frames, no stream is open, and every SETTINGS and PING is answered. Who winds down
 * has said so, and the client has seen it. */
bool h2_is_idle(const struct h2_follower *h);
/* The backend has sent a part of a frame or of a header block. */
bool h2_is_amid_answer(const struct h2_follower *h);
/* GOAWAY excluded new requests, and no old stream is open. */
bool h2_said_last(const struct h2_follower *h);
/* The backend said GOAWAY with an error: the connection failed, whatever streams are open (RFC 9113 5.4.1). */
bool h2_failed(const struct h2_follower *h);
/* The client has sent a part of a header block, or of another frame without a body. Returns a number, and another
 * number for the next such block. 0: nothing is under way. */
uint32_t h2_head_under_way(const struct h2_follower *h);
/* Is this the header block of a new stream which counts as open? Then no backend can have worked on it. A
 * stream that a GOAWAY excludes, or that was reset meanwhile, is not open. */
bool h2_begins_stream(const struct h2_follower *h);

/* --- frames of the agent's own --- */

/* Ask the client to open no more streams, as soon as a frame may be inserted. A PING shows when it has seen that. */
void h2_wind_down(struct h2_follower *h);

/* Frames that the agent has to insert now, *len bytes; then the conversation goes on. Valid until the next call.
 * NULL: there are none, or they may not stand here. Give them to h2_from_backend() once they are sent. */
const uint8_t *h2_words(struct h2_follower *h, size_t *len);
/* Of the backend's next @len bytes: how many may pass before h2_hold() and h2_words() have to be called again. */
size_t h2_until_words(const struct h2_follower *h, const uint8_t *data, size_t len);

enum h2_error { H2_NO_ERROR = 0, H2_PROTOCOL_ERROR = 1, H2_REFUSED_STREAM = 7 };

/* The GOAWAY at the end of the conversation, with the highest stream that a backend may have worked on. *len is 0 if
 * it was sent before. NULL: it may not stand here. */
const uint8_t *h2_farewell(struct h2_follower *h, enum h2_error error, size_t *len);
/* The last words where no backend has said anything: 502 for the requests, then GOAWAY. NULL: there are no requests, or
 * too many, or a backend has. */
const uint8_t *h2_bad_gateway(struct h2_follower *h, size_t *len);

/* --- for a move --- */

#define H2_STATE_MAX (128u + 4u * H2_STREAMS_MAX) /* bytes */
/* Bytes written. 0: amid a change of its own, or behind the backend's last word. */
size_t h2_follower_save(const struct h2_follower *h, uint8_t out[static H2_STATE_MAX]);
/* NULL: malformed, or out of memory. */
struct h2_follower *h2_follower_restore(struct slabs *from, const uint8_t *in, size_t len);

/* --- shared by the follower's own files: h2_follower.c (frames that pass), h2_words.c (frames of the agent's own) and
 * h2_state.c (the follower as bytes, for a move) --- */

extern const uint8_t h2_own_ping[H2_PING_LEN];

static inline bool h2_is_settings(const uint8_t head[static H2_FRAME_HEAD_LEN])
{
	return head[3] == H2_SETTINGS && !(head[4] & H2_ACK);
}

static inline bool h2_is_between_frames(const struct h2_frames *f, uint32_t block)
{
	return f->head_len == 0 && block == 0;
}
