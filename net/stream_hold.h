/* stream_hold.h: output that nobody waits for may wait for company, and costs no write of its own. */
#ifndef CSSL_NET_STREAM_HOLD_H
#define CSSL_NET_STREAM_HOLD_H

#include "net/stream.h"

/* 1: what is committed now goes out at the end of this turn in any case. */
int stream_flush_is_due(const struct stream *s);

/* The committed output stays until more is committed, stream_flush_soon() or the FIN: within what time is the caller's
 * to see to. Nothing happens where the stream has more to do at the end of this turn. */
void stream_hold(struct stream *s);

#endif
