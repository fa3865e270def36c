/* written.h: the output of a function that uses a writer, as text to compare. */
#pragma once

#include <check.h>
#include <string.h>

#include "proto/wire.h"

struct written {
	uint8_t bytes[4096];
	struct wire_writer w;
};

static inline struct wire_writer *written_begin(struct written *written)
{
	written->w = wire_writer(written->bytes, sizeof written->bytes - 1);
	return &written->w;
}

static inline const char *written_text(struct written *written)
{
	ptrdiff_t len = wire_writer_len(&written->w);
	ck_assert_int_ge(len, 0);
	written->bytes[len] = 0;
	return (const char *)written->bytes;
}
