/* record.h: the record of its owner that a server keeps (functions.h), as names and values on the wire; the marker is
 * the greater part of it. A part of its own, so that both directions come from one table.
 */
#pragma once

#include "smtpproxy/queue/backup/redis_link.h"
#include "smtpproxy/queue/markers/marker.h"

#define RECORD_MARKER_FIELDS 20u /* that a gateway writes with a marker, each a name and a value */

/* The answer to HGETALL, or to a claim. Fields that are not known are passed over. 0, or -1: it is no record. */
int record_read(struct marker *m, const redisReply *reply);
/* Names and values of the marker as arguments of a request. */
void record_write(struct redis_link *l, const struct marker *m);
