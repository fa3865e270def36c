/* stream_fault.h: fault points of streams, in test builds: may this stream write, read and ring now?
 * (net/stream/stream.h has stream_set_fault().) For the files of a stream only. */
#pragma once

#include "net/stream/stream.h"

#ifdef CSSL_TEST_POINTS
/* Not 0: wait; the stream is called again when it may go on. */
int stream_fault_holds_write(struct stream *s);
int stream_fault_holds_read(struct stream *s);
int stream_fault_holds_bell(struct stream *s);
/* A rule may hold or part output: collect all of it. */
int stream_fault_watches(const struct stream *s);
/* Called in the read callback of a held read. */
void stream_fault_pause_reading(struct stream *s);
void stream_fault_clear(struct stream *s);
#define stream_fault_take(s, before) ((s)->fault = (before)->fault)
#else
#define stream_fault_holds_write(s)   0
#define stream_fault_holds_read(s)    0
#define stream_fault_holds_bell(s)    0
#define stream_fault_watches(s)       0
#define stream_fault_pause_reading(s) ((void)(s))
#define stream_fault_clear(s)         ((void)(s))
#define stream_fault_take(s, before)  ((void)(before))
#endif
