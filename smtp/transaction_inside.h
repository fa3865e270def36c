/* transaction_inside.h: shared by the two directions of a follower: transaction_client.c and transaction_server.c. */
#pragma once

#include "smtp/transaction.h"

/* How the client's next bytes are to be read. */
enum smtp_tx_mode { SMTP_TX_COMMANDS, SMTP_TX_AUTH, SMTP_TX_DATA_CONTENT, SMTP_TX_CHUNK, SMTP_TX_CHUNK_DISCARDED };

/* The low byte by which a queued command names its transaction. */
static inline uint8_t smtp_tx_mark(const struct smtp_tx *t)
{
	return (uint8_t)(t->number % 255 + 1);
}

/* The effect of the reply to a message's end on the transaction. A chunk out of sequence, or without recipients,
 * does not end it (RFC 3030 2). */
enum smtp_tx_early { SMTP_TX_NOT_ANSWERED, SMTP_TX_ANSWERED_OVER, SMTP_TX_ANSWERED_OPEN };

/* DOT, and the end was answered. */
void smtp_tx_end_message(struct smtp_tx *t, enum smtp_tx_early answer);

/* Begin a new transaction, whatever the state was. */
void smtp_tx_open(struct smtp_tx *t);

/* The checked move of the drawing in transaction.h. */
void smtp_tx_move(struct smtp_tx *t, enum smtp_tx_state to);

void smtp_tx_enqueue(struct smtp_tx *t, unsigned turn, enum smtp_own own, uint8_t mark);
