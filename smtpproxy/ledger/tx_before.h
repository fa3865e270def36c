/* tx_before.h: named transactions of the process that this one has replaced (--replace). That process still has
 * sessions, so it is asked. When its last session is over, it gives its ledger. No sockets: the owner of the channel
 * carries the bytes (tx_message.h).
 */
#pragma once

#include "smtpproxy/ledger/tx_ledger.h"

/* For at most so many ids. NULL: out of memory. */
struct tx_before *tx_before_create(uint64_t ids_max);
void tx_before_destroy(struct tx_before *b); /* NULL is legal */

/* The channel to that process: @send takes the bytes of a message. */
void tx_before_open(struct tx_before *b, void (*send)(void *ctx, const uint8_t *data, size_t len), void *ctx);
/* Bytes from it. Returns how many were used; negative: they are no messages. */
int tx_before_read(struct tx_before *b, const uint8_t *data, size_t len);
/* It ended. Whoever waits learns that the fate is unknown. */
void tx_before_close(struct tx_before *b);

enum tx_before_answer {
	TX_BEFORE_KNOWN,   /* *fate and *reply, which is valid until the next call */
	TX_BEFORE_ASKED,   /* on_fate will come, not from within this call; or tx_waiter_cancel() before */
	TX_BEFORE_NOTHING, /* no other process knows that key */
};

/* A question with an empty key is for the id alone, whatever key it had. */
enum tx_before_answer tx_before_ask(struct tx_before *b, const struct smtp_tx_question *q, struct tx_waiter *w,
	enum smtp_fate *fate, struct smtp_span *reply);
/* Write the ledger as messages: those of the processes before, then @own. */
void tx_before_give(const struct tx_before *b, const struct tx_ledger *own,
	void (*send)(void *ctx, const uint8_t *data, size_t len), void *ctx);
