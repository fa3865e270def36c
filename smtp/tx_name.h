/* tx_name.h: the name that a cluster gives to a transaction, so that its fate can be asked for after the agent in front
 * was lost: MAIL FROM:<...> XCSSLTX=<id>/<number>. The id is the connection's (PP2_TYPE_UNIQUE_ID, as hex digits), the
 * number counts its transactions from 1.
 */
#ifndef CSSL_SMTP_TX_NAME_H
#define CSSL_SMTP_TX_NAME_H

#include "proto/wire.h"
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

#endif
