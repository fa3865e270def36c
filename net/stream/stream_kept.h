/* stream_kept.h: input that the owner of a stream has not used yet (net/stream/stream.h has what owners may call).
 * Every way of reading delivers through it. For the files of a stream only. */
#pragma once

#include "net/stream/stream.h"

/* Offer the kept bytes to the owner, in place. There are some. */
void stream_deliver_kept(struct stream *s);
void stream_drop_kept(struct stream *s);

/* Room for new input in the worker's buffer, behind the kept bytes, which are copied there. */
uint8_t *stream_read_room(struct stream *s, size_t *len);
/* @new_len bytes came there: offer all of them to the owner. */
void stream_deliver_read(struct stream *s, size_t new_len);
