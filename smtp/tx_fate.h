/* tx_fate.h: what became of a transaction: the question of a cluster whose agent was lost, and the answer
 * (doc/xcssltx.md).
 *
 *   XCSSLTX 0a1b/7 5f3c       the transaction's name (tx_name.h), and the entry that EHLO named
 *   250 decided 250 2.0.0 Ok  the reply that its end got; each line of it stands behind "decided "
 *   250 never                 it was aborted for good
 *   250 unknown               the server does not remember
 */
#ifndef CSSL_SMTP_TX_FATE_H
#define CSSL_SMTP_TX_FATE_H

#include "smtp/reply.h"
#include "smtp/tx_name.h"

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
int smtp_tx_entry_is_good(struct smtp_span entry);

enum smtp_fate { SMTP_FATE_DECIDED, SMTP_FATE_NEVER, SMTP_FATE_UNKNOWN };

/* Reads one line of the answer. DECIDED: @decided is that line of the transaction's reply, and points into @line.
 * Returns a value of enum smtp_fate, or CSSL_E_RANGE: not an answer; treat it as UNKNOWN. */
int smtp_fate_parse(const struct smtp_reply_line *line, struct smtp_reply_line *decided);

/* Appends the answer with its CRLF. @decided: the line of the transaction's reply, with its code and without its end;
 * only for DECIDED. */
void smtp_fate_write(struct wire_writer *w, enum smtp_fate fate, struct smtp_span decided);

#endif
