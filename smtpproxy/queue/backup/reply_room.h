/* reply_room.h: the memory of a RESP reply. A part of its own, because only it knows how libhiredis allocates.
 * libhiredis builds each reply from several objects for each of its elements; here they lie in a row, and all go at
 * once. So a block of 1,000 items costs no malloc() for each of its 4,000 parts.
 */
#pragma once

#include <hiredis/hiredis.h>

/* Embedded; zero: nothing is here. It must not move while a reader uses it. */
struct reply_room {
	struct reply_chunk *last;
};

/* A reader whose replies lie in @r. NULL: out of memory. redisReaderFree() frees it, and reply_room_clear() what its
 * replies took. */
redisReader *reply_room_reader(struct reply_room *r);

/* The reply is handled: its memory is used again. Only when the reader has no reply under way. */
void reply_room_reuse(struct reply_room *r);
void reply_room_clear(struct reply_room *r);
