/* smtp_rehearsal.h: what a lost owner may have given to the server: the client's bytes since the last checkpoint are
 * followed once more, with the replies that the client has got, and beyond those as if the server had accepted
 * everything. Bytes in, a verdict out.
 */
#ifndef CSSL_SSLAGENT_SMTP_REHEARSAL_H
#define CSSL_SSLAGENT_SMTP_REHEARSAL_H

#include "smtp/relay.h"
#include "sslagent/service/smtp/smtp_note.h"
#include "sslagent/service/smtp/smtp_pieces.h"

enum smtp_verdict {
	SMTP_MAY_BE_REPEATED, /* no message came to its end */
	SMTP_HAS_ENDED,       /* one did, and the client has not got the reply to that */
	SMTP_IS_LOST,         /* nobody can tell, or it must not be said twice (AUTH) */
};

struct smtp_heard {
	enum smtp_verdict verdict;
	size_t answered_len;       /* the first bytes: messages whose end the client knows the reply to */
	uint32_t answered_replies; /* replies to those bytes */
	/* HAS_ENDED: */
	size_t ended_len;       /* bytes up to the end of the message */
	uint32_t ended_replies; /* replies to them, that to the end with them */
	struct smtp_mark tx;
};

/* @replies: so many the client has got since the checkpoint; their classes are in the note. 0 or CSSL_E_NO_MEMORY. */
int smtp_rehearse(const struct smtp_relay_rules *rules, const struct smtp_note *note, uint32_t replies,
	const struct smtp_pieces *heard, struct smtp_heard *out);

#endif
