/* pattern.h: the bytes of every answer that is only size. They follow from size and offset, so that any part of any
 * answer can be checked without the rest, and a byte of another answer or another place is found:
 *
 *     x[0] = 1;  x[i+1] = (x[i] * 1664525 + 1013904223) mod 2^32;  P[i] = x[i] >> 24       0 <= i < 65521
 *     byte at offset o of the answer of size n = P[(n + o) mod 65521]
 *
 * 65521 is prime: no record, buffer or window length is a multiple of it. tests/lib/pattern.py is the same in Python.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_PERIOD 65521u

/* Call it once, before pattern_fill(). */
void pattern_make(void);

/* Writes the @len bytes from @offset on of the answer of @size bytes. */
void pattern_fill(uint8_t *out, size_t len, uint64_t size, uint64_t offset);

/* Are @data those bytes? */
bool pattern_is(const uint8_t *data, size_t len, uint64_t size, uint64_t offset);
