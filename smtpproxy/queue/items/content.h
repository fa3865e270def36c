/* content.h: what is in an item, as the sealed bytes that leave the gateway. A part of its own, so that nobody else
 * knows the plain form. Numbers of it are big endian.
 *
 *   message  u8 1, u64 accepted (wall clock, ms), u8 length and destination, u32 length and envelope, body to the end
 *   state    u8 1, u64 due (wall clock, ms), u16 attempts, u16 steps, u8 held (0 or 1), note of the delivery side to
 * the end decided  u8 1, u64 decided (wall clock, ms), u8 length and name, reply to the end order    u8 1, u8 stopped
 * (0 or 1), u32 rate (messages a minute; 0: no limit), u8 length and destination grave    u8 1, u64 id of a message
 * that was deleted
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "smtpproxy/queue/items/item.h"

struct seal;

struct content_bytes {
	const uint8_t *data;
	size_t len;
};

/* One of the five. */
struct content {
	int64_t at_ms;             /* message: accepted; state: due; decided: decided */
	struct content_bytes name; /* message, order: the destination; decided: the transaction. 1 to 255 bytes */
	struct content_bytes envelope;
	struct content_bytes rest; /* message: the body; state: the note; decided: the reply */
	uint64_t dead;             /* grave: the id */
	uint32_t rate;             /* order */
	/* state: @steps, further states since that attempt. Of two states, the one with more of them is the later one
	 */
	uint16_t attempts, steps;
	unsigned stops; /* 1 or 0; state: held; order: stopped */
};

/* Of two states of one message: true if @s was written before the one with these numbers. */
static inline bool content_state_is_earlier(const struct content *s, uint16_t attempts, uint16_t steps)
{
	return s->attempts != attempts ? s->attempts < attempts : s->steps < steps;
}

/* The plain form of @c, sealed, and its length. The caller frees it. NULL: out of memory. */
uint8_t *content_seal(const struct seal *s, enum item_kind kind, uint64_t id, const struct content *c, size_t *len);
/* Opens it into @plain, which has room for it; @c points into that. 0; as seal_open(); or CSSL_E_TRUNCATED,
 * CSSL_E_TOO_LONG, CSSL_E_VERSION, CSSL_E_RANGE: the plain form is none of this kind. */
int content_open(const struct seal *s, enum item_kind kind, uint64_t id, const uint8_t *sealed, size_t len,
	uint8_t *plain, struct content *c);
