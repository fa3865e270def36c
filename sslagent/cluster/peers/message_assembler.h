/* message_assembler.h: makes messages from a stream of bytes that comes in any pieces. Each message has its length (4
 * bytes, big endian) in front. It is a part of its own because every length here comes from outside. Its buffer is
 * wiped after use, because messages hold keys. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MESSAGE_LENGTH_LEN 4u

/* All zero at first. */
struct message_assembler {
	uint8_t *kept; /* the beginning of a message */
	size_t kept_len, kept_cap;
};

/* Take the bytes, call @on_message for each whole message. When @on_message returns 0 it goes on, else it returns that
 * result at once. 0, that result, CSSL_E_TOO_LONG (a message above @max) or CSSL_E_NO_MEMORY: after any result but 0
 * the rest is lost. */
int message_assembler_feed(struct message_assembler *a, const uint8_t *in, size_t len, size_t max,
	int (*on_message)(void *ctx, const uint8_t *message, size_t len), void *ctx);
void message_assembler_clear(struct message_assembler *a);
