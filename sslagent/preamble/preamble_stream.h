/* preamble_stream.h: the preamble of a client that RAgent holds, on a stream of a link (proto/frame.h). */
#pragma once

#include "proto/frame.h"
#include "sslagent/preamble/preamble.h"

struct preamble_stream;

struct preamble_stream_place {
	/* To RAgent, on the stream. */
	void (*send)(void *holder, enum frame_type type, uint8_t flags, const void *payload, size_t len);
	/* The preamble is over, and all that it said was sent. Called once, but not after preamble_stream_forget(). */
	void (*over)(void *holder);
	void *holder;
};

/* NULL: no room. */
struct preamble_stream *preamble_stream_open(struct preamble_home *home, const struct preamble_stream_place *place,
	const struct conf_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints);
/* Takes a frame of RAgent on the stream, other than CLOSE. 0, or negative: RAgent broke the protocol of the link. */
int preamble_stream_frame(struct preamble_stream *s, const struct frame *f, const uint8_t *payload);
/* Its link broke: it reads no backend, and answers nothing, until it goes on. */
void preamble_stream_pause(struct preamble_stream *s);
/* A frame of RAgent may follow. It may be over then. */
void preamble_stream_go_on(struct preamble_stream *s);
/* The link is gone, or the client is. */
void preamble_stream_forget(struct preamble_stream *s);
