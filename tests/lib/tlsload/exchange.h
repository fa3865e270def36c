/* exchange.h: one request as the bytes to be sent, and its answer as it has to be. No sockets, no TLS. */
#pragma once

#include "tests/lib/tlsload/answer.h"

#define REQUEST_HEAD_MAX 384u
#define EXPECTED_MAX     192u
#define EXCHANGE_PIECE   16384u
#define EXCHANGE_ID_MAX  64u

struct group;

struct exchange {
	const struct group *group;
	uint64_t asked_us;
	uint64_t sent, again; /* of head and body; how long the piece of body is that could not be sent, or 0 */
	size_t head_len;
	struct expectation expected;
	struct answer answer;
	char id[EXCHANGE_ID_MAX];
	char head[REQUEST_HEAD_MAX];
	char text[EXPECTED_MAX];
};

void exchange_start(struct exchange *x, const struct group *g, unsigned client, uint64_t request, uint64_t now_us);
int exchange_is_sent(const struct exchange *x);
/* The next bytes to be sent; 0: the rate forbids any for *wait_ms. */
size_t exchange_piece(struct exchange *x, uint64_t now_us, uint8_t out[static EXCHANGE_PIECE], uint64_t *wait_ms);
/* @went bytes of the piece were written; 0: none, and the next piece has to be the same. Returns how many of them were
 * body. */
uint64_t exchange_went(struct exchange *x, size_t piece, size_t went);
