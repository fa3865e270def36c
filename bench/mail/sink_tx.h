/* sink_tx.h: a session's part in XCSSLTX (doc/xcssltx.md): the id it came with, the name of its transaction, and what
 * it asks. Embedded in the session.
 *
 *   NONE --MAIL with a name--> OPEN --end of mail--> UNDECIDED --decision--> NONE
 *    |                           '--RSET, refusal--> NONE         |
 *    |                                                            '--asked--> FENCED --decision--> the session closes
 *    '--asks about one that is undecided--> ASKING --decision--> NONE
 */
#pragma once

#include "smtpproxy/ledger/tx_ledger.h"
#include "proto/proxy_header.h"
#include "smtp/command.h"
#include "smtp/params.h"

struct sink_session;

enum sink_tx_state { SINK_TX_NONE, SINK_TX_OPEN, SINK_TX_UNDECIDED, SINK_TX_FENCED, SINK_TX_ASKING };

struct sink_tx {
	struct tx_entry *entry; /* NULL: it came without an id, or is not trusted */
	uint64_t number;        /* of the transaction, or of the one asked about */
	uint8_t state;          /* enum sink_tx_state */
	struct tx_member member;
};

/* A PROXY header came. An id of at most 32 bytes from a trusted peer gets its entry. */
void sink_tx_enter(struct sink_session *s, const struct proxy_header *header);

/* The session ends: sessions that wait for its decision learn that there will be none. */
void sink_tx_leave(struct sink_session *s);

/* For MAIL. NONE: the transaction has its name, if the command gave one. */
enum smtp_own sink_tx_name(struct sink_session *s, const struct smtp_params *params);

/* The transaction is given up before its end. */
void sink_tx_forget(struct sink_session *s);

/* All of the mail came; the decision comes later. */
void sink_tx_wait(struct sink_session *s);

/* The reply to the end of the mail, with its CRLF. Sessions that wait for it get it. */
void sink_tx_decide(struct sink_session *s, const char *reply, size_t len);

/* The command XCSSLTX. */
void sink_tx_on_question(struct sink_session *s, const struct smtp_command *c);
