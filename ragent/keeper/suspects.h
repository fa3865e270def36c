/* suspects.h: sources whose clients may have crashed RAgent, or made it hang. While a worker uses bytes of a client,
 * shared memory shows that, and the process after a crash finds it there. A source that was found after two crashes
 * is refused for ten minutes, so that one client cannot end the service of all others again and again.
 *
 * A source is an IPv4 address or an IPv6 /64, because a subscriber has at least that (net/limits/admission.h). All of a
 * /48 is refused after ADMISSION_OF_SITE times as many crashes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ids.h"

#define SUSPECTS_MAX       64u
#define SUSPECT_CRASHES    2u
#define SUSPECT_REFUSED_MS (10u * 60u * 1000u)

struct suspect {
	struct client_address source; /* the bytes after a /64 are zero; of a /48, len 6 */
	uint32_t crashes;
	uint64_t last_ms; /* CLOCK_MONOTONIC */
};

/* In shared memory; begins as all zeros. Changes only before the workers' threads run. @count may be any number, so
 * it is checked. */
struct suspects {
	uint32_t count;
	struct suspect at[SUSPECTS_MAX];
};

/* RAgent crashed while it used bytes of @address. Notes its source. If there is no room, the suspect that was found
 * longest ago is dropped. Returns the number of its crashes; 0: @address is not an address. */
uint32_t suspects_add(struct suspects *s, const struct client_address *address, uint64_t now_ms);

/* @s NULL: false. */
bool suspects_refuse(const struct suspects *s, const struct client_address *address, uint64_t now_ms);
