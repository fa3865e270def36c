/* prefetch.h: begin to fetch memory into the cache that will be used soon, while there is other work. */
#pragma once

#include <stddef.h>

#define CACHE_LINE_LEN 64u

/* NULL is legal, and so is memory that is gone by then. */
static inline void prefetch(const void *at, size_t len)
{
	for (size_t i = 0; at && i < len; i += CACHE_LINE_LEN)
		__builtin_prefetch((const char *)at + i);
}
