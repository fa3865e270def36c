/* blocked.h: networks whose clients an operator keeps out, each for a time. A list may be in memory that outlives the
 * process (all zeros: empty), so a reader believes no number in it, and an entry counts from the store of its end on.
 * Thread-safe within a process. Times are CLOCK_MONOTONIC, in ms. NULL is an empty list for readers.
 */
#pragma once

#include <stdatomic.h>

#include "net/socket/address.h"
#include "proto/ids.h"

#define BLOCKED_MAX      256u
#define BLOCKED_FOR_GOOD UINT64_MAX

struct blocked {
	uint64_t boot_id, made_ns; /* what blocked_unpack() read last */
	struct {
		struct address_net net;
		_Atomic uint64_t until_ms; /* passed: the entry is free */
	} at[BLOCKED_MAX];
};

/* For so long from now on, in place of an earlier end; 0: not any more. 0, CSSL_E_FULL, or CSSL_E_NOT_FOUND: it was not
 * blocked. */
int blocked_set(struct blocked *b, const struct address_net *net, uint64_t for_ms, uint64_t now_ms);
bool blocked_has(struct blocked *b, const struct client_address *a, uint64_t now_ms);

struct blocked_net {
	struct address_net net;
	uint64_t left_ms;
};
/* Returns how many there are. */
size_t blocked_list(struct blocked *b, uint64_t now_ms, struct blocked_net out[static BLOCKED_MAX]);

/* A list as bytes, for another process: when it was made, in ns (8); of each network its length, prefix, bytes
 * (1, 1, 16), and the rest of its time (8). Returns how many. */
#define BLOCKED_MADE_LEN   8u
#define BLOCKED_PACKED_MAX (BLOCKED_MADE_LEN + 26u * BLOCKED_MAX)
size_t blocked_pack(struct blocked *b, uint64_t now_ms, uint8_t out[static BLOCKED_PACKED_MAX]);
/* In place of what was there, unless that was made later by the same process. 0; CSSL_E_RANGE: nothing changed. */
int blocked_unpack(struct blocked *b, uint64_t boot_id, const uint8_t *packed, size_t len, uint64_t now_ms);
