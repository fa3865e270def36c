/* tx_message.h: the messages about named transactions between two processes of smtpproxy, when one has replaced the
 * other: questions, answers, and entries of the ledger. Bytes in, bytes out.
 *
 *   length (2), kind (1), content; texts have their length in 2 bytes before them
 */
#pragma once

#include "smtpproxy/ledger/tx_ledger.h"

#define TX_MESSAGE_MAX 4096u

enum tx_message_kind { TX_MESSAGE_QUESTION = 'Q', TX_MESSAGE_ANSWER = 'A', TX_MESSAGE_ENTRY = 'E' };

/* One of the three; spans point into the bytes that were read. */
struct tx_message {
	enum tx_message_kind kind;
	uint32_t ticket;            /* QUESTION; the ANSWER has the same */
	struct smtp_span id, key;   /* QUESTION, ENTRY */
	uint64_t number;            /* QUESTION */
	enum smtp_fate fate;        /* ANSWER */
	struct smtp_span reply;     /* ANSWER, DECIDED */
	uint64_t newest, forgotten; /* ENTRY */
	unsigned decisions;
	struct {
		uint64_t number;
		struct smtp_span reply;
	} decided[TX_LEDGER_DECISIONS];
};

/* In @out, which has room for TX_MESSAGE_MAX. Returns its length. */
size_t tx_message_write(const struct tx_message *m, uint8_t *out);

/* The first message of @in. Its length; 0: more bytes are needed; negative: it is none. */
int tx_message_read(const uint8_t *in, size_t len, struct tx_message *m);
