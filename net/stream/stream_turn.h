/* stream_turn.h: what the end of a turn makes reading and writing do. For the files of a stream only. */
#pragma once

#include "net/stream/stream.h"

/* stream_read.c: deliver kept bytes, then read. */
void stream_begin_reading(struct stream *s);
/* stream_write.c: as stream_flush(), but what the kernel took is not told. */
void stream_flush_now(struct stream *s);
