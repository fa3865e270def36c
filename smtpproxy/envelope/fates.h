/* fates.h: what became of each recipient of a message so far. Written into the message's state in the backups, so that
 * no attempt sends to a recipient again that has got it. No sockets, no clock.
 *
 *   for each recipient: a letter of enum fate, the last reply's text, NUL
 */
#ifndef CSSL_SMTPPROXY_FATES_H
#define CSSL_SMTPPROXY_FATES_H

#include <stddef.h>

#include "smtp/span.h"

#define FATE_REPLY_MAX 200u

enum fate {
	FATE_OPEN = 'o',      /* not tried, or put off by the reply */
	FATE_DELIVERED = 'd', /* the receiver has it */
	FATE_FAILED = 'f',    /* the reply refuses it for good, or it expired */
	FATE_SENT = 's',      /* its RCPT was accepted, and the end is to come; never in a note */
};

struct fate_one {
	char fate; /* enum fate */
	char reply[FATE_REPLY_MAX + 1];
};

struct fates {
	struct fate_one *at; /* of @count */
	unsigned count;
};

/* All of them OPEN, or as @note says. 0 or CSSL_E_NO_MEMORY. A @note of another message is ignored. */
int fates_begin(struct fates *f, unsigned count, struct smtp_span note);
void fates_free(struct fates *f);
void fates_set(struct fates *f, unsigned at, enum fate fate, struct smtp_span reply);
/* Each one that is OPEN gets that fate and reply. */
void fates_set_open(struct fates *f, enum fate fate, struct smtp_span reply);
unsigned fates_count(const struct fates *f, enum fate fate);

/* Those that were SENT are OPEN again: the end did not come. */
void fates_unsend(struct fates *f);

/* The note, allocated, with its length; NULL: out of memory. */
char *fates_note(const struct fates *f, size_t *len);

#endif
