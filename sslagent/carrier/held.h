/* held.h: the frames that an agent sent on one stream, and that RAgent's next process may need: those that RAgent has
 * not confirmed. They are copies of what was sent, and are sent again as they are: nothing is sealed twice (law 1).
 */
#ifndef CSSL_SSLAGENT_HELD_H
#define CSSL_SSLAGENT_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

struct held_frame {
	struct held_frame *next;
	uint64_t number; /* from 1, on its stream */
	uint64_t end;    /* DATA bytes of the stream up to its end */
	uint16_t len;
	uint8_t type, flags;
	uint8_t payload[];
};

enum held_state {
	HELD_WHOLE, /* all that is not confirmed is here */
	HELD_BROKEN /* something was too much, or there was no memory: the stream ends with its link */
};

/* Embedded; zero: nothing was sent yet. */
struct held {
	struct held_frame *first, *last;
	uint64_t frames;            /* sent so far */
	uint64_t bytes;             /* of DATA, sent so far */
	uint64_t drained, received; /* confirmed: by ACCEPTED, by RECEIVED */
	size_t len;                 /* of what is held */
	enum held_state state;
};

/* @type was sent with this payload (copied). At most @limit bytes are held. */
void held_add(struct held *h, enum frame_type type, uint8_t flags, const uint8_t *payload, size_t len, size_t limit);
/* So many bytes went to the client; so many frames need not be sent again, once their bytes did. */
void held_drained(struct held *h, uint64_t bytes);
void held_received(struct held *h, uint64_t frames);
/* Number of the first frame that is held, or of the next one that will be sent; and the DATA bytes before it. */
uint64_t held_first(const struct held *h);
uint64_t held_first_byte(const struct held *h);
void held_clear(struct held *h);
/* The same, for good: from now on it is BROKEN. */
void held_give_up(struct held *h);

#endif
