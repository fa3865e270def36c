/* smtp_cut.h: what the fuzzers of smtp/ share: the first byte of an input says how big the pieces are in which the rest
 * comes, beside the whole and single bytes; and a sum over what came out.
 */
#pragma once

#include "tests/fuzz/must.h"

static inline uint64_t smtp_sum(uint64_t so_far, const void *data, size_t len)
{
	const uint8_t *at = data;
	for (size_t i = 0; i < len; i++)
		so_far = so_far * 31 + at[i] + 1;
	return so_far;
}

/* Runs @account over the input in the three ways; what it returns must be the same. */
static inline void smtp_must_be_the_same(
	const uint8_t *in, size_t len, uint64_t (*account)(const uint8_t *in, size_t len, size_t step))
{
	if (len < 2)
		return;
	size_t step = in[0] % 37 + 2u;
	uint64_t whole = account(in + 1, len - 1, len - 1);
	MUST(whole == account(in + 1, len - 1, 1));
	MUST(whole == account(in + 1, len - 1, step));
}
