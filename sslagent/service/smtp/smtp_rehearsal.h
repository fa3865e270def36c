/* smtp_rehearsal.h: finds out what a lost owner may have given to the server. It follows the client's bytes since
 * the last checkpoint again, with the replies that the client has got; after these, as if the server had accepted
 * every command. Bytes in, a verdict out.
 */
#pragma once

#include "smtp/relay.h"
#include "sslagent/service/smtp/smtp_note.h"
#include "sslagent/service/smtp/smtp_pieces.h"

enum smtp_verdict {
	SMTP_MAY_BE_REPEATED, /* no message was complete */
	SMTP_HAS_ENDED,       /* a message was complete, and the client has not got its reply */
	SMTP_IS_LOST, /* the state is unknown, or a command must not be repeated (AUTH, or one that is not known) */
};

struct smtp_heard {
	enum smtp_verdict verdict;
	size_t answered_len;       /* the first bytes: messages for whose end the client has the reply */
	uint32_t answered_replies; /* replies to those bytes */
	/* HAS_ENDED: */
	size_t ended_len;       /* bytes up to the end of the message */
	uint32_t ended_replies; /* replies to them, including that to the end */
	struct smtp_mark tx;
};

/* @replies: so many replies the client has got since the checkpoint. Their classes are in the note. 0 or
 * CSSL_E_NO_MEMORY. */
int smtp_rehearse(const struct smtp_relay_rules *rules, const struct smtp_note *note, uint32_t replies,
	const struct smtp_pieces *heard, struct smtp_heard *out);
