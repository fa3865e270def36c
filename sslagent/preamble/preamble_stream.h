/* preamble_stream.h: the preamble of a client that RAgent holds, on a stream of a link (proto/frame.h). */
#ifndef CSSL_SSLAGENT_PREAMBLE_STREAM_H
#define CSSL_SSLAGENT_PREAMBLE_STREAM_H

#include "net/framed.h"
#include "sslagent/preamble/preamble.h"

struct preamble_stream;

struct preamble_stream_place {
	struct framed *framed;
	uint32_t stream;
	/* The preamble is over, and with it the stream. Called once, but not after preamble_stream_forget(). */
	void (*over)(void *holder);
	void *holder;
};

/* NULL: no room. */
struct preamble_stream *preamble_stream_open(struct preamble_home *home, const struct preamble_stream_place *place,
	const struct conf_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints);
/* Takes a frame of RAgent on the stream. 0, or negative: RAgent broke the protocol of the link. */
int preamble_stream_frame(struct preamble_stream *s, const struct frame *f, const uint8_t *payload);
/* The link is gone. */
void preamble_stream_forget(struct preamble_stream *s);

#endif
