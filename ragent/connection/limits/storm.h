/* storm.h: tells when many clients begin handshakes while established ones send records. Then agents have much work
 * that can wait, on the CPUs that this worker needs to pass records. Pure: time is an argument.
 */
#pragma once

#include <stdint.h>

#define STORM_BEGINS_AT      16u /* handshakes under way on this worker */
#define STORM_ENDS_AT        8u
#define STORM_QUIET_MS       1000u /* so long nobody established sent anything: there is nobody who would wait */
/* A connection counts as established so long after it was accepted: its handshake and its first request are over. */
#define STORM_ESTABLISHED_MS 1000u

enum storm_state { STORM_IS_NOT, STORM_IS };
enum storm_change { STORM_GOES_ON, STORM_BEGINS, STORM_ENDS };

/* Embedded in its worker's home; zero: there is none. */
struct storm {
	uint64_t sent_ms; /* when an established client sent something last */
	uint8_t state;    /* enum storm_state */
};

/* A client that was accepted at @accepted_ms sent records. */
void storm_sends(struct storm *s, uint64_t accepted_ms, uint64_t now_ms);
/* What changes now, with so many handshakes under way. GOES_ON: nothing. */
enum storm_change storm_look(struct storm *s, uint32_t handshakes, uint64_t now_ms);
