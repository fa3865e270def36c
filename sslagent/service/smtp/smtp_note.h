/* smtp_note.h: the data that the next owner of a mail client needs (service.h: a note), and the numbers of
 * transactions.
 *
 * A transaction must have the same number for the owner that named it and for the owner that later asks about it,
 * even if the first owner's last note was lost. So the number consists of facts that both know: the client's record
 * in which MAIL ended, the offset of that end in the record, and the epoch of the owner. The next owner only knows
 * that this epoch lies between that of the note and its own, so it asks for each of them. Numbers rise with the
 * epoch, and within an epoch with the records.
 */
#pragma once

#include "smtp/domain.h"
#include "smtp/ehlo.h"
#include "smtp/tx_name.h"

#define SMTP_TOLD_LEN    16u
#define SMTP_CLASSES_MAX 128u
#define SMTP_NOTE_MAX    (32u + SMTP_TOLD_LEN + SMTP_DOMAIN_MAX + SMTP_TX_ENTRY_MAX + SMTP_CLASSES_MAX) /* bytes */

/* The beginning of a transaction. */
struct smtp_mark {
	uint64_t record; /* the client's record in which MAIL ended; from 1. 0: there is no transaction */
	uint16_t at;     /* plaintext bytes of this record up to the end of MAIL: at most 2^14 (RFC 8446 5.1) */
};

/* The number of the transaction in an epoch. 0: there is no transaction, or the record's number is too large. */
uint64_t smtp_mark_number(struct smtp_mark mark, uint16_t epoch);

/* Can the replies since the last checkpoint be counted? Not if one of them took several records. */
enum smtp_replies { SMTP_REPLIES_COUNTED, SMTP_REPLIES_COUNTLESS };
enum smtp_banner { SMTP_BANNER_OWED, SMTP_BANNER_HAD };

struct smtp_note {
	struct smtp_mark tx; /* the open one, if it has a name */
	uint32_t end_reply; /* the reply to the end of its content comes after so many others since the last checkpoint;
			       0: not known yet */
	uint32_t offers;    /* SMTP_CAP_BIT()s of the server */
	uint16_t epoch;     /* the first epoch in which the open transaction may have a name */
	uint8_t greeting;   /* SMTP_VERB_EHLO or HELO; SMTP_VERB_UNKNOWN: the client has not greeted */
	uint8_t authenticated;       /* of struct smtp_tx */
	uint8_t banner;              /* enum smtp_banner */
	uint8_t replies;             /* enum smtp_replies */
	uint8_t told[SMTP_TOLD_LEN]; /* of EHLO's reply; smtp_told() */
	uint8_t classes_len;
	char classes[SMTP_CLASSES_MAX];    /* classes of the replies since the last checkpoint; all later ones were
					      positive */
	char client[SMTP_DOMAIN_MAX + 1];  /* the client's name for itself */
	char entry[SMTP_TX_ENTRY_MAX + 1]; /* of the server's memory of transactions; "": there is none */
};

/* The mark of a reply in @classes: its first digit, or this for 2 and 3. */
#define SMTP_CLASS_POSITIVE '+'
static inline char smtp_class_of(char digit)
{
	return digit == '2' || digit == '3' ? SMTP_CLASS_POSITIVE : digit;
}

/* Returns the bytes written. */
size_t smtp_note_write(const struct smtp_note *note, uint8_t out[static SMTP_NOTE_MAX]);
/* 0, or CSSL_E_VERSION, CSSL_E_TRUNCATED, CSSL_E_TRAILING, CSSL_E_RANGE. */
int smtp_note_read(const uint8_t *in, size_t len, struct smtp_note *out);

/* A digest of the lines of a reply to EHLO, independent of their order. */
void smtp_told(const struct smtp_ehlo *set, uint8_t out[static SMTP_TOLD_LEN]);
