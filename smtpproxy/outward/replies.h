/* replies.h: replies of receivers, counted by receiver and code for /metrics. Strangers choose both, so there are only
 * so many rows: the replies of further receivers count for "others", and codes that no RFC of SMTP has for "4xx" and
 * the like. The sum of all counts is that of all replies.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "smtpproxy/dns/records.h"

#define REPLIES_RECEIVERS_MAX 100u
#define REPLIES_CODES         32u
#define REPLIES_KEPT_MS       3600000u /* a new receiver gets no row of one that replied within this time */

/* All zero is an empty one. */
struct replies {
	struct replies_row {
		char receiver[DNS_NAME_TEXT]; /* empty: a free row */
		uint64_t heard_ms;            /* its last reply */
		uint64_t counts[REPLIES_CODES];
	} rows[REPLIES_RECEIVERS_MAX + 1]; /* the last one is that of all others */
};

/* @name as a label can have it: all but printable ASCII becomes '_', and so do '"' and '\\'. Cut if it is too long. */
void replies_name(const char *name, char out[static DNS_NAME_TEXT]);

/* @receiver: of replies_name(). @code: 200 to 599. */
void replies_count(struct replies *all, const char *receiver, unsigned code, uint64_t now_ms);

/* The counter smtpproxy_replies_total (Prometheus, text format 0.0.4). */
void replies_write(const struct replies *all, FILE *to);
