/* stream_shared.h: a stream's bytes through memory that both processes share: what writing and reading ask of it
 * (net/stream/stream.h has what owners may call). For the files of a stream only, and only while stream->rings is
 * there. */
#pragma once

#include "net/stream/stream.h"

/* Output waits for room; the other side will wake this one. */
bool stream_shared_is_full(struct stream *s);
/* Copy the output and then [data, data + len) into the ring, if there is room for all. The other side sees them after
 * the flush. */
bool stream_shared_stage(struct stream *s, const void *data, size_t len);
void stream_shared_flush(struct stream *s);

/* The other side has woken this one, or may have: look into the rings. */
void stream_shared_look(struct stream *s);
/* The socket's end came; bytes in the ring come before it. 1: all of them were delivered. */
bool stream_shared_is_read(struct stream *s);
