/* stream_hold.h: output that is not urgent waits for more output, so that it needs no write(2) of its own. */
#ifndef CSSL_NET_STREAM_HOLD_H
#define CSSL_NET_STREAM_HOLD_H

#include "net/stream.h"

/* 1 if this stream is flushed at the end of this turn anyway. */
int stream_flush_is_due(const struct stream *s);

/* Keep the committed output until more is committed, stream_flush_soon() or the FIN. The caller limits the time. Does
 * nothing if the stream has more to do at the end of this turn. */
void stream_hold(struct stream *s);

#endif
