/* pattern.c: one period of the pattern, copied out or compared piece by piece. */
#include "bench/server/pattern.h"

#include <string.h>

static uint8_t period[PATTERN_PERIOD];

void pattern_make(void)
{
	uint32_t x = 1;
	for (size_t i = 0; i < PATTERN_PERIOD; i++) {
		period[i] = (uint8_t)(x >> 24);
		x = x * 1664525u + 1013904223u;
	}
}

/* The position of that byte in the period. */
static size_t pattern_place_of(uint64_t size, uint64_t offset)
{
	return (size_t)((size % PATTERN_PERIOD + offset % PATTERN_PERIOD) % PATTERN_PERIOD);
}

void pattern_fill(uint8_t *out, size_t len, uint64_t size, uint64_t offset)
{
	size_t at = pattern_place_of(size, offset);
	while (len > 0) {
		size_t piece = PATTERN_PERIOD - at;
		if (piece > len)
			piece = len;
		memcpy(out, period + at, piece);
		out += piece;
		len -= piece;
		at = 0;
	}
}

bool pattern_is(const uint8_t *data, size_t len, uint64_t size, uint64_t offset)
{
	size_t at = pattern_place_of(size, offset);
	while (len > 0) {
		size_t piece = PATTERN_PERIOD - at;
		if (piece > len)
			piece = len;
		if (memcmp(data, period + at, piece) != 0)
			return false;
		data += piece;
		len -= piece;
		at = 0;
	}
	return true;
}
