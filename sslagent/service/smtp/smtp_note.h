/* smtp_note.h: what the next owner of a mail client has to know (service.h: a note), and how transactions are numbered.
 *
 * A transaction's number must be the same for the owner that named it and for the one that asks what became of it, even
 * if the last note of the first was lost on its way. So it is made of what both know: the record of the client in which
 * MAIL ended, the place in it where it ended, and the epoch of the owner. Of the epoch the next owner knows only that
 * it lies between that of the note and its own; it asks for each of them. Numbers rise with the epoch, and within an
 * epoch with the records.
 */
#ifndef CSSL_SSLAGENT_SMTP_NOTE_H
#define CSSL_SSLAGENT_SMTP_NOTE_H

#include "smtp/command.h"
#include "smtp/ehlo.h"
#include "smtp/tx_fate.h"

#define SMTP_TOLD_LEN    16u
#define SMTP_CLASSES_MAX 128u
#define SMTP_NOTE_MAX    (32u + SMTP_TOLD_LEN + SMTP_DOMAIN_MAX + SMTP_TX_ENTRY_MAX + SMTP_CLASSES_MAX) /* bytes */

/* Where a transaction began. */
struct smtp_mark {
	uint64_t record; /* of the client, in which MAIL ended; from 1. 0: there is no transaction */
	uint16_t at;     /* bytes of this record's plaintext, up to the end of MAIL: at most 2^14 (RFC 8446 5.1) */
};

/* The number of the transaction in an epoch. 0: it has none (there is none, or the record is too large). */
uint64_t smtp_mark_number(struct smtp_mark mark, uint16_t epoch);

/* Can the replies since the last checkpoint be told apart? Not if one of them took several records. */
enum smtp_replies { SMTP_REPLIES_COUNTED, SMTP_REPLIES_COUNTLESS };
enum smtp_banner { SMTP_BANNER_OWED, SMTP_BANNER_HAD };

struct smtp_note {
	struct smtp_mark tx;   /* under way, as far as it has a name */
	uint32_t end_reply;    /* to the end of its content: so many replies are before it since the last checkpoint;
				  0: that is not known yet */
	uint32_t offers;       /* SMTP_CAP_BIT()s of the server */
	uint16_t epoch;        /* the first one under which what is under way may have a name */
	uint8_t greeting;      /* SMTP_VERB_EHLO or HELO; SMTP_VERB_UNKNOWN: the client has not greeted */
	uint8_t authenticated; /* 1: by AUTH */
	uint8_t banner;        /* enum smtp_banner */
	uint8_t replies;       /* enum smtp_replies */
	uint8_t told[SMTP_TOLD_LEN]; /* of EHLO's reply; smtp_told() */
	uint8_t classes_len;
	char classes[SMTP_CLASSES_MAX];    /* of the replies since the last checkpoint; those behind were positive */
	char client[SMTP_DOMAIN_MAX + 1];  /* its own name */
	char entry[SMTP_TX_ENTRY_MAX + 1]; /* of the server's memory of transactions; "": it has none */
};

/* What stands for a reply in @classes: its first digit, or this for 2 and 3. */
#define SMTP_CLASS_POSITIVE '+'
static inline char smtp_class_of(char digit)
{
	return digit == '2' || digit == '3' ? SMTP_CLASS_POSITIVE : digit;
}

/* Bytes written. */
size_t smtp_note_write(const struct smtp_note *note, uint8_t out[static SMTP_NOTE_MAX]);
/* 0, or CSSL_E_VERSION, CSSL_E_TRUNCATED, CSSL_E_TRAILING, CSSL_E_RANGE. */
int smtp_note_read(const uint8_t *in, size_t len, struct smtp_note *out);

/* A digest of the lines of a reply to EHLO, in whatever order. */
void smtp_told(const struct smtp_ehlo *set, uint8_t out[static SMTP_TOLD_LEN]);

#endif
