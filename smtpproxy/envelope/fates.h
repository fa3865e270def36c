/* fates.h: the result of the delivery so far, for each recipient of a message. The queue writes the fates into the
 * message's state in the backups, so that a later attempt does not send the message again to a recipient who has it. No
 * sockets, no clock.
 *
 * The bytes of a note: for each recipient a letter of enum fate, the text of the last reply, and NUL. Behind the text
 * may stand 0x1f and the name of the server that gave it, and behind that 0x1f and 'n': the server sends no reports.
 */
#pragma once

#include <stddef.h>

#include "smtp/span.h"

#define FATE_REPLY_MAX 200u
#define FATE_FROM_MAX  255u /* a host name, or an address literal */

enum fate {
	FATE_OPEN = 'o',      /* nobody has tried, or the reply puts it off */
	FATE_DELIVERED = 'd', /* the receiver has the message */
	FATE_FAILED = 'f',    /* the reply refuses the recipient for good, or the message expired */
	FATE_SENT = 's',      /* the receiver accepted its RCPT, and the message has not ended; never in a note */
};

/* NONE: it does not know DSN (RFC 3461), so its sender gets a report from us if it wanted one. */
enum fate_reports { FATE_REPORTS, FATE_REPORTS_NONE };

struct fate_one {
	char fate;    /* enum fate */
	char reports; /* enum fate_reports: of the server that gave the reply */
	char reply[FATE_REPLY_MAX + 1];
	char from[FATE_FROM_MAX + 1]; /* that server; empty: this gateway itself */
};

struct fates {
	struct fate_one *at; /* of @count */
	unsigned count;
};

/* Make the fates of a message: all are OPEN, or as @note says. A @note with another number of recipients is ignored. 0
 * or CSSL_E_NO_MEMORY. */
int fates_begin(struct fates *f, unsigned count, struct smtp_span note);
void fates_free(struct fates *f);
/* The reply is this gateway's own, until fates_set_from(). Bytes that are not printable ASCII become '?'. */
void fates_set(struct fates *f, unsigned at, enum fate fate, struct smtp_span reply);
void fates_set_from(struct fates *f, unsigned at, struct smtp_span from, enum fate_reports reports);
/* Give this fate and reply to each recipient that is OPEN. */
void fates_set_open(struct fates *f, enum fate fate, struct smtp_span reply);
unsigned fates_count(const struct fates *f, enum fate fate);

/* Recipients that were SENT become OPEN again, because the message did not come to its end. */
void fates_unsend(struct fates *f);

/* The fates as a note, with its length; the caller frees it. NULL: out of memory. */
char *fates_note(const struct fates *f, size_t *len);
