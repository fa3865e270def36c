/* h2_follower.h: follows the frames of one client's HTTP/2 connection (RFC 9113) in both directions, without changing a
 * byte and without decoding header blocks: which streams are open, what waits for an acknowledgement, and where an
 * agent may say a frame of its own.
 *
 * HTTP/2 has state that only the two ends know (header compression, windows), so no other backend connection can go on
 * with a conversation. Where the one is gone at a checkpoint (the connection rested, or its idle owner was lost), the
 * conversation is stranded: the agent itself answers what the client asks, and sends it to a new connection by GOAWAY.
 * Nobody has to be told that: a conversation begins with the client's preface, a stranded one goes on with a frame.
 */
#ifndef CSSL_SSLAGENT_H2_FOLLOWER_H
#define CSSL_SSLAGENT_H2_FOLLOWER_H

#include "net/slabs.h"
#include "sslagent/service/h2/h2_frames.h"
#include "sslagent/service/h2/h2_streams.h"

struct h2_follower;

enum h2_phase {
	H2_BEGINS,   /* no whole preface came; nor is it certain that one comes */
	H2_FOLLOWS,  /* between the client and a backend */
	H2_STRANDED, /* no backend has this conversation any more */
	H2_LOST,     /* the client's bytes are no frames, or too many streams are open: it has to end */
};

/* A block of @from, of h2_follower_len(), to which it goes back. NULL: out of memory. */
struct h2_follower *h2_follower_create(struct slabs *from);
void h2_follower_destroy(struct slabs *from, struct h2_follower *h);
size_t h2_follower_len(void);

void h2_from_client(struct h2_follower *h, const uint8_t *data, size_t len);
/* Of the backend, or the agent's own. */
void h2_from_backend(struct h2_follower *h, const uint8_t *data, size_t len);

enum h2_phase h2_phase(const struct h2_follower *h);
unsigned h2_open_streams(const struct h2_follower *h);
/* Both directions are between two frames, no stream is open, and every SETTINGS and PING is answered. */
int h2_is_idle(const struct h2_follower *h);
/* The backend's direction is in the midst of a frame or of a header block. */
int h2_is_amid_answer(const struct h2_follower *h);
/* GOAWAY said that nothing new is answered, and nothing old is open. */
int h2_said_last(const struct h2_follower *h);
/* The client has begun a header block or another frame without a body, and has not said all of it: a number, another
 * for the next. 0: it has not. */
uint32_t h2_head_under_way(const struct h2_follower *h);
/* 1: that is the header block of a new stream, so no backend can have worked on this one; else 0. */
int h2_begins_stream(const struct h2_follower *h);
/* Did the client begin a stream? In a stranded conversation: one that no backend gets. */
int h2_was_asked(const struct h2_follower *h);

/* --- frames of the agent's own --- */

/* From now on the client is to open no more streams, as soon as that can be said. */
void h2_wind_down(struct h2_follower *h);

/* What the agent has to say now and the conversation goes on behind: *len bytes, valid until the next call. NULL:
 * nothing, or not here. h2_from_backend() gets them once they are said. */
const uint8_t *h2_words(struct h2_follower *h, size_t *len);
/* Of the backend's next @len bytes, how many may pass before h2_words() has to be asked again. */
size_t h2_until_words(const struct h2_follower *h, size_t len);

enum h2_error { H2_NO_ERROR = 0, H2_PROTOCOL_ERROR = 1, H2_REFUSED_STREAM = 7 };

/* GOAWAY, with the highest stream that a backend may have worked on: to end with. *len is 0 if it was said before;
 * NULL: not here. */
const uint8_t *h2_farewell(struct h2_follower *h, enum h2_error error, size_t *len);

/* --- for a move --- */

#define H2_STATE_MAX (128u + 4u * H2_STREAMS_MAX)                                       /* bytes */
size_t h2_follower_save(const struct h2_follower *h, uint8_t out[static H2_STATE_MAX]); /* bytes */
/* NULL: malformed, or out of memory. */
struct h2_follower *h2_follower_restore(struct slabs *from, const uint8_t *in, size_t len);

#endif
