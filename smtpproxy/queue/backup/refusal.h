/* refusal.h: a server that answers, and does not let this gateway in, or does not do what it asks. A part of its own,
 * because another gateway may own the queue there: such a server must never be told as one that is lost, and the
 * operator has to hear once what to do. No sockets, no clock.
 *
 * Embedded in struct backup. All zero but @backup: it does not refuse. Others may read the members.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REFUSAL_RETRY_MS  2000 /* the server may log each attempt */
/* Told as a server's answer: the marker of the server is of a gateway with another key. */
#define REFUSAL_OTHER_KEY "another key"

/* How far a server lets this gateway go. */
enum refusal_at {
	REFUSAL_NONE,
	REFUSAL_AT_LOGIN, /* by AUTH */
	REFUSAL_AT_LOOK,  /* it does not tell who it is */
	REFUSAL_AT_CALL,  /* it does not execute a call, or gives no items */
};

/* SECRET: an answer that is not known may have the password, and is not shown. */
enum refusal_text { REFUSAL_TEXT_PLAIN, REFUSAL_TEXT_SECRET };

struct refusal {
	unsigned backup; /* the server's number, for the log */
	enum refusal_at at;
	char answer[96]; /* its answer then */
	int64_t at_ms;   /* the last time, of CLOCK_BOOTTIME; 0: it does not refuse */
};

/* Its answer to what it was asked is an error: told once, until it lets this gateway go further or says something
 * else. */
void refusal_told(struct refusal *r, enum refusal_at at, const char *answer, enum refusal_text text, int64_t now_ms);
/* It goes as far as behind @at. */
void refusal_lifted(struct refusal *r, enum refusal_at at);

/* True: it refused in the last seconds. */
static inline bool refusal_lasts(const struct refusal *r, int64_t now_ms)
{
	return r->at_ms && now_ms - r->at_ms < 3 * REFUSAL_RETRY_MS;
}
