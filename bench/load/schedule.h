/* schedule.h: the due times of an open-loop load, the starts of a ramp, and the mix of full handshakes and resumptions.
 * No clock: it only computes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* @rate requests a second, reached evenly within @ramp_ns from none. */
struct schedule {
	double rate;
	uint64_t ramp_ns;
};

/* The due time of request @number (from 0), in nanoseconds from the start. */
uint64_t schedule_due_ns(const struct schedule *s, uint64_t number);

/* The start of client @number of @clients in a closed loop, evenly spread over @ramp_ns. */
uint64_t schedule_start_ns(uint64_t ramp_ns, uint64_t number, uint64_t clients);

/* Of each full + resumed connections of a client the first ones offer nothing, the others the newest session. */
struct mix {
	uint32_t full, resumed;
};

/* "1:2". 0, or CSSL_E_RANGE: not two numbers up to 1,000,000, or both 0. */
int mix_parse(const char *text, struct mix *out);
/* The same as a row of a command line. */
struct option_row;
int option_set_mix(void *options, const struct option_row *row, const char *value);
uint32_t mix_cycle(const struct mix *m);
/* Does connection @number (from 0) of a client offer a session? */
bool mix_offers(const struct mix *m, uint64_t number);

/* The part of @total for number @index of @count; the parts differ by at most 1. */
uint64_t schedule_share(uint64_t total, uint64_t index, uint64_t count);
