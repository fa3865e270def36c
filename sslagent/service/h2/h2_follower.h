/* h2_follower.h: follows the frames of one client's HTTP/2 connection (RFC 9113) in both directions. It changes no
 * byte and decodes no header block. It knows which streams are open, which frames wait for an acknowledgement, and
 * where an agent may insert a frame of its own.
 *
 * HTTP/2 has state that only the two ends know (header compression, windows). So no other backend connection can
 * continue a conversation. If the backend connection is gone at a checkpoint (the connection rested, or its idle
 * owner was lost), the conversation is stranded: the agent itself answers the client's requests, and sends the
 * client to a new connection by GOAWAY. A successor needs no message about this: a new conversation begins with the
 * client's preface, and a stranded one goes on with a frame.
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
	H2_LOST,     /* bytes of one side are no frames, or too many streams are open: the conversation has to end */
};

enum h2_side { H2_CLIENT, H2_BACKEND };

/* Makes a follower in a block of @from, of h2_follower_len() bytes. The block goes back to @from. NULL: out of
 * memory. */
struct h2_follower *h2_follower_create(struct slabs *from);
void h2_follower_destroy(struct slabs *from, struct h2_follower *h);
size_t h2_follower_len(void);

void h2_from_client(struct h2_follower *h, const uint8_t *data, size_t len);
/* Bytes of the backend, or frames of the agent's own. */
void h2_from_backend(struct h2_follower *h, const uint8_t *data, size_t len);

enum h2_phase h2_phase(const struct h2_follower *h);
/* H2_LOST: the side that broke the protocol. */
enum h2_side h2_lost_by(const struct h2_follower *h);
unsigned h2_open_streams(const struct h2_follower *h);
/* Both directions are between two frames, no stream is open, and every SETTINGS and PING is answered. */
int h2_is_idle(const struct h2_follower *h);
/* The backend has sent a part of a frame or of a header block. */
int h2_is_amid_answer(const struct h2_follower *h);
/* GOAWAY excluded new requests, and no old stream is open. */
int h2_said_last(const struct h2_follower *h);
/* The client has sent a part of a header block, or of another frame without a body. Returns a number, and another
 * number for the next such block. 0: nothing is under way. */
uint32_t h2_head_under_way(const struct h2_follower *h);
/* 1: this is the header block of a new stream which counts as open, so no backend can have worked on it. Else 0. A
 * stream that a GOAWAY excludes, or that was reset meanwhile, is not open. */
int h2_begins_stream(const struct h2_follower *h);
/* Did the client begin a stream? In a stranded conversation: a stream that no backend gets. */
int h2_was_asked(const struct h2_follower *h);

/* --- frames of the agent's own --- */

/* Ask the client to open no more streams, as soon as a frame may be inserted. */
void h2_wind_down(struct h2_follower *h);

/* Frames that the agent has to insert now, *len bytes; then the conversation goes on. Valid until the next call.
 * NULL: there are none, or they may not stand here. Give them to h2_from_backend() once they are sent. */
const uint8_t *h2_words(struct h2_follower *h, size_t *len);
/* Of the backend's next @len bytes: how many may pass before h2_words() has to be called again. */
size_t h2_until_words(const struct h2_follower *h, size_t len);

enum h2_error { H2_NO_ERROR = 0, H2_PROTOCOL_ERROR = 1, H2_REFUSED_STREAM = 7 };

/* The GOAWAY at the end of the conversation, with the highest stream that a backend may have worked on. *len is 0 if
 * it was sent before. NULL: it may not stand here. */
const uint8_t *h2_farewell(struct h2_follower *h, enum h2_error error, size_t *len);

/* --- for a move --- */

#define H2_STATE_MAX (128u + 4u * H2_STREAMS_MAX)                                       /* bytes */
size_t h2_follower_save(const struct h2_follower *h, uint8_t out[static H2_STATE_MAX]); /* bytes */
/* NULL: malformed, or out of memory. */
struct h2_follower *h2_follower_restore(struct slabs *from, const uint8_t *in, size_t len);

#endif
