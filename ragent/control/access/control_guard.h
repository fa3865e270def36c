/* control_guard.h: who guesses tokens has to wait. It is a part of its own because it knows no HTTP and no token: only
 * sources, failures and times. control_access.c asks it for each request that shows no known token.
 *
 * A source that failed too often has to wait before its unknown tokens are called that again: this slows down the
 * guessing, and its log lines. Known tokens are not asked to wait. Bounded memory: the source with the oldest failure
 * makes room. A source is an IPv4 address or an IPv6 /64, and each /48 has ADMISSION_OF_SITE times as many failures
 * (net/limits/admission.h).
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#define GUARD_FAILURES_MAX 10u    /* within one period */
#define GUARD_PERIOD_MS    60000u /* failures count for so long; then a source waits for so long */
#define GUARD_SOURCES_MAX  1024u

struct guarded_source {
	uint8_t bytes[16], len;
	uint32_t failures;
	uint64_t since_ms; /* time of the first failure that counts */
};

/* Embedded; zero: empty. */
struct control_guard {
	unsigned count;
	struct guarded_source sources[GUARD_SOURCES_MAX];
};

/* Seconds that this source has to wait; 0: it may try. */
unsigned control_guard_wait_s(const struct control_guard *g, const struct sockaddr *source, uint64_t now_ms);
/* It showed an unknown token. */
void control_guard_failed(struct control_guard *g, const struct sockaddr *source, uint64_t now_ms);
