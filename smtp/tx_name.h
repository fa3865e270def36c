/* tx_name.h: the name that a cluster gives to a transaction, so that its fate can be asked for after the agent in front
 * was lost: MAIL FROM:<...> XCSSLTX=<id>/<number>. The id is the connection's (PP2_TYPE_UNIQUE_ID, as hex digits), the
 * number counts its transactions from 1.
 */
#pragma once

#include "proto/wire.h"
#include "smtp/reply.h"
#include "smtp/span.h"

#define SMTP_TX_ID_MAX 64u

struct smtp_tx_name {
	char id[SMTP_TX_ID_MAX + 1]; /* letters and digits, terminated */
	uint64_t number;             /* from 1 */
};

/* The value of the parameter. 0 or CSSL_E_RANGE. */
int smtp_tx_name_parse(struct smtp_span value, struct smtp_tx_name *out);

void smtp_tx_name_write(struct wire_writer *w, const struct smtp_tx_name *name);

/* Appends the line of a MAIL command, @text without its end, with the parameter added. */
void smtp_tx_name_add(struct wire_writer *w, struct smtp_span text, const struct smtp_tx_name *name);

/* Appends @line without the parameter whose value is @value, which points into it: for a server that has no names. */
void smtp_tx_name_remove(struct wire_writer *w, struct smtp_span line, struct smtp_span value);

/* What became of a transaction: the question of a cluster whose agent was lost, and the answer (doc/xcssltx.md).
 *
 *   XCSSLTX 0a1b/7 5f3c       the transaction's name, and the entry that EHLO named
 *   250 decided 250 2.0.0 Ok  the reply that its end got; each line of it stands behind "decided "
 *   250 never                 it was aborted for good
 *   250 unknown               the server does not remember
 */

#define SMTP_TX_ENTRY_MAX 32u

struct smtp_tx_question {
	struct smtp_tx_name name;
	char entry[SMTP_TX_ENTRY_MAX + 1]; /* letters and digits, terminated */
};

/* The argument of the command. 0 or CSSL_E_RANGE. */
int smtp_tx_question_parse(struct smtp_span argument, struct smtp_tx_question *out);

/* Appends the command with its CRLF. */
void smtp_tx_question_write(struct wire_writer *w, const struct smtp_tx_question *question);

/* True when @entry can be the parameter of the keyword in the reply to EHLO. */
bool smtp_tx_entry_is_good(struct smtp_span entry);

enum smtp_fate { SMTP_FATE_DECIDED, SMTP_FATE_NEVER, SMTP_FATE_UNKNOWN };

/* Reads one line of the answer. DECIDED: @decided is that line of the transaction's reply, and points into @line.
 * Returns a value of enum smtp_fate, or CSSL_E_RANGE: not an answer; treat it as UNKNOWN. */
int smtp_fate_parse(const struct smtp_reply_line *line, struct smtp_reply_line *decided);

/* Appends the answer with its CRLF. @decided: the line of the transaction's reply, with its code and without its end;
 * only for DECIDED. */
void smtp_fate_write(struct wire_writer *w, enum smtp_fate fate, struct smtp_span decided);
