/* consumed.h: which of the client's records are consumed, and when the carrier hears of it. It is a part by itself,
 * because after a loss RAgent says again exactly what was not told here.
 */
#pragma once

#include <stdint.h>

struct connection;

void consumed_opened(struct connection *c);     /* opening reached a record boundary */
void consumed_written(struct connection *c);    /* more was written to the backend */
void consumed_stand_here(struct connection *c); /* what was opened so far is consumed, and RAgent knows it */
void consumed_report(struct connection *c);     /* tell now what was consumed and not told */
/* A report is not due: until the next one, the deadline is the head's, or the time when more may be opened. */
void consumed_arm(struct connection *c);

/* A client that changes its keys too often is read only as fast as it may change them: after such a KeyUpdate its next
 * record waits. */
void consumed_judge_pace(struct connection *c); /* a KeyUpdate was opened, or more than one before it is the owner */
/* With a report, unless the carrier knows it. Not if it is frozen or has ended. */
void consumed_tell_pace(struct connection *c);
uint64_t consumed_wait_ms(const struct connection *c); /* so long the next record waits; 0: not at all */
