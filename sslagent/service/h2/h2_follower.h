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
#ifndef CSSL_SSLAGENT_H2_FOLLOWER_H
#define CSSL_SSLAGENT_H2_FOLLOWER_H

#include "net/slabs.h"
#include "sslagent/service/h2/h2_frames.h"
#include "sslagent/service/h2/h2_streams.h"

struct h2_follower;

enum h2_phase {
	H2_BEGINS,   /* the preface has not come completely, and may never come */
	H2_FOLLOWS,  /* between the client and a backend */
	H2_STRANDED, /* no backend has this conversation any more */
	H2_LOST,     /* bytes of one side are no frames, or break the agent's limits: the conversation has to end */
};

enum h2_side { H2_CLIENT, H2_BACKEND };

#define H2_STREAMS_MAX 256u /* open ones of one connection */

/* Makes a follower in a block of @from, of h2_follower_len() bytes. The block goes back to @from. NULL: out of
 * memory. */
struct h2_follower *h2_follower_create(struct slabs *from);
void h2_follower_destroy(struct slabs *from, struct h2_follower *h);
size_t h2_follower_len(void);

/* What goes to the backend: the first @len of the bytes that were taken, then @words. */
struct h2_passed {
	size_t len;
	const uint8_t *words; /* valid until the next call */
	size_t words_len;
};
/* Takes bytes of [data, data + len), len > 0, up to the next one that does not go on as it is. Returns how many; at
 * least 1. */
size_t h2_from_client(struct h2_follower *h, const uint8_t *data, size_t len, struct h2_passed *out);
/* The backend connection is gone. Before any byte came. */
void h2_strand(struct h2_follower *h);

/* Of the backend's next @len bytes: so many are taken, because h2_words() says them, or others in their place. Ask
 * before h2_words(). */
size_t h2_hold(struct h2_follower *h, const uint8_t *data, size_t len);
/* Bytes that the client gets now, of the backend or of the agent. */
void h2_from_backend(struct h2_follower *h, const uint8_t *data, size_t len);

enum h2_phase h2_phase(const struct h2_follower *h);
/* H2_LOST: the side that broke the protocol. */
enum h2_side h2_lost_by(const struct h2_follower *h);
unsigned h2_open_streams(const struct h2_follower *h);
/* Both directions are between two frames, no stream is open, and every SETTINGS and PING is answered. Who winds down
 * has said so, and the client has seen it. */
int h2_is_idle(const struct h2_follower *h);
/* The backend has sent a part of a frame or of a header block. */
int h2_is_amid_answer(const struct h2_follower *h);
/* GOAWAY excluded new requests, and no old stream is open. */
int h2_said_last(const struct h2_follower *h);
/* The backend said GOAWAY with an error: the connection failed, whatever streams are open (RFC 9113 5.4.1). */
int h2_failed(const struct h2_follower *h);
/* The client has sent a part of a header block, or of another frame without a body. Returns a number, and another
 * number for the next such block. 0: nothing is under way. */
uint32_t h2_head_under_way(const struct h2_follower *h);
/* 1: this is the header block of a new stream which counts as open, so no backend can have worked on it. Else 0. A
 * stream that a GOAWAY excludes, or that was reset meanwhile, is not open. */
int h2_begins_stream(const struct h2_follower *h);
/* Did the client begin a stream? In a stranded conversation: a stream that no backend gets. */
int h2_was_asked(const struct h2_follower *h);

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

#endif
