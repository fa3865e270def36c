/* record.h: the record of one transaction, field by field, as it goes into the event log.
 *
 *   time         when MAIL came, RFC 3339
 *   connection   a number of the sender's connection, unique within the process
 *   client       the sender's address and port
 *   ehlo         the name that the sender gave
 *   destination  the receiver's address and port
 *   from         the sender's address as given in MAIL; empty for notifications
 *   recipients   at most RECORD_RECIPIENTS_MAX of {to, code, enhanced, text}: the receiver's reply to each
 *   more         how many further recipients there were
 *   size         bytes of the message
 *   outcome      accepted, refused, aborted, in doubt, not served (no connection in time)
 *   code, text   of the reply that decided it: to the end of the message, or of the one that refused it earlier; not
 *                served: of our own
 *   wait_ms      for its turn; not served: to the end
 *   ms           from MAIL to the end
 *   tls          version and cipher toward the receiver; absent in clear
 *   transaction  the name by XCSSLTX, if it has one
 */
#pragma once

#include <jansson.h>

#include "smtp/reply_write.h"
#include "smtp/reply.h"

#define RECORD_RECIPIENTS_MAX 100u

enum record_outcome { RECORD_ACCEPTED, RECORD_REFUSED, RECORD_ABORTED, RECORD_IN_DOUBT, RECORD_NOT_SERVED };

/* Embedded; zero: there is no record. If memory runs out, record_end() returns NULL; all calls stay legal. */
struct record {
	json_t *fields, *recipients;
	unsigned answered; /* recipients */
	uint64_t more;
	uint64_t began_ms, turn_ms;
};

struct record_origin {
	uint64_t connection;
	const char *client, *ehlo, *destination;
	int64_t wall_ms; /* when MAIL came, by the wall clock */
	uint64_t now_ms;
};

void record_begin(struct record *r, const struct record_origin *origin, struct smtp_span from);
void record_turn(struct record *r, uint64_t now_ms);
void record_recipient(struct record *r, struct smtp_span to);
/* The receiver's reply to the next recipient. */
void record_recipient_reply(struct record *r, const struct smtp_reply_line *line);
/* A reply that decides, if none does later; or the reply to the end. */
void record_reply(struct record *r, const struct smtp_reply_line *line);
/* The reply that smtpproxy gave itself, not NONE; @said: the words of the receiver that it quotes, or "". */
void record_own_reply(struct record *r, enum smtp_own which, const char *said);
void record_text(struct record *r, const char *key, const char *value);
/* Toward the receiver. */
void record_tls(struct record *r, const char *version, const char *cipher);
/* From the sender, as a PROXY header told. */
void record_sender_tls(struct record *r, struct smtp_span version, struct smtp_span cipher);

/* The finished record, which the caller owns; @r is empty. */
json_t *record_end(struct record *r, enum record_outcome outcome, uint64_t size, uint64_t now_ms);
/* A log line about a finished one, for mail that was not accepted. NULL is legal. */
void record_tell(const json_t *record);

static inline bool record_is_open(const struct record *r)
{
	return r->fields != NULL;
}
