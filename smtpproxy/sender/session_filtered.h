/* session_filtered.h: a transaction that hooks judge; for session_filter.c and session_held.c. */
#ifndef CSSL_SMTPPROXY_SESSION_FILTERED_H
#define CSSL_SMTPPROXY_SESSION_FILTERED_H

#include "smtpproxy/sender/session_inside.h"

/* PASSES: the content is not kept.
 *
 *   PASSES --DATA, and a hook wants the message--> TAKES --end of content--> JUDGED --verdict--> SAYS_DATA
 *     '--discarded at a command--> DISCARDS                                           SENT <-- SENDS <--354--'
 *
 * With deliver: queue, JUDGED --verdict--> SENT: the queue has it.
 */
enum filtered_phase {
	FILTERED_PASSES,
	FILTERED_DISCARDS,
	FILTERED_TAKES,
	FILTERED_JUDGED,
	FILTERED_SAYS_DATA, /* toward the receiver */
	FILTERED_SENDS,
	FILTERED_SENT,
};

/* Why the content is not kept, although it should be. */
enum filtered_flaw { FILTERED_GOOD, FILTERED_TOO_BIG, FILTERED_NO_ROOM };

struct filtered {
	struct filter *filter; /* NULL: it has refused DATA */
	enum session_state from;
	enum filtered_phase phase;
	enum filtered_flaw flaw;
	struct message message;
	struct body_share share; /* of the room for kept messages */
	/* The receiver's reply to DATA. */
	struct smtp_reply_reader reader;
	char line[SESSION_REPLY_MAX];
};

#endif
