/* held.h: the frames that an agent sent on one stream, and that RAgent's next process may need: those that RAgent has
 * not confirmed. They are sent again as they are: nothing is sealed twice (law 1).
 *
 * Each frame is written here, and goes to the link from here. The memory is blocks of a worker's spare buffers, each
 * with a run of frames. A block goes back when all its frames are confirmed: no frame is looked at for that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/memory/buffers.h"
#include "proto/frame.h"

struct held_frame {
	uint64_t number; /* from 1, on its stream */
	uint64_t end;    /* DATA bytes of the stream up to its end */
	uint16_t len;    /* of the payload */
	uint8_t type, flags;
	uint8_t wire[]; /* FRAME_HEADER_LEN bytes, which the link writes, and the payload */
};

struct held_block {
	struct held_block *next;
	uint64_t number, end; /* of its last frame */
	uint32_t cap;         /* of the whole block */
	uint32_t len;         /* of its frames */
	_Alignas(8) uint8_t data[];
};

enum held_state {
	HELD_WHOLE, /* all that is not confirmed is here */
	HELD_BROKEN /* something was too much, or there was no memory: the stream ends with its link */
};

/* Embedded; zero: nothing was sent yet. Each call gets the same @buffers. */
struct held {
	struct held_block *first, *last;
	struct held_frame *room;    /* of the frame under way; NULL: there is none */
	uint64_t frames;            /* sent so far */
	uint64_t bytes;             /* of DATA, sent so far */
	uint64_t drained, received; /* as the last ACCEPTED said */
	size_t len;                 /* of the blocks */
	enum held_state state;
};

/* Room for the payload of the next frame, at most @cap bytes (<= FRAME_PAYLOAD_MAX). NULL: it is BROKEN, because it
 * would have more than @limit bytes, or there is no memory. */
uint8_t *held_room(struct held *h, struct buffers *buffers, size_t cap, size_t limit);
/* The payload is written: the frame, which stays here until it is confirmed. NULL: it has no room here. */
struct held_frame *held_add(struct held *h, enum frame_type type, uint8_t flags, size_t len);

/* So many bytes went to the client; so many frames need not be sent again, once their bytes did. */
void held_confirm(struct held *h, struct buffers *buffers, uint64_t bytes, uint64_t frames);

/* Number of the first frame that is held, or of the next one that will be sent; and the DATA bytes before it. */
uint64_t held_first(const struct held *h, uint64_t *bytes_before);

/* Walks over all frames that are not confirmed, oldest first. Zero begins. */
struct held_walk {
	struct held_block *block;
	uint32_t at;
};
/* NULL: there are no more. */
struct held_frame *held_next(const struct held *h, struct held_walk *w);

void held_clear(struct held *h, struct buffers *buffers);
/* The same, for good: from now on it is BROKEN. */
void held_give_up(struct held *h, struct buffers *buffers);
