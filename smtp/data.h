/* data.h: follows the content that DATA carries (RFC 5321 4.5.2) to its end, which is only CR LF . CR LF. It also finds
 * bytes that a less careful server could take for an end, by which a second mail can be smuggled in. Changes no byte.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "smtp/span.h"

/* DOT: a dot alone between two ends of lines of which at least one is no CR LF. */
enum smtp_data_flaw {
	SMTP_DATA_LF_DOT_LF,
	SMTP_DATA_LF_DOT_CR,
	SMTP_DATA_LF_DOT_CRLF,
	SMTP_DATA_CR_DOT_LF,
	SMTP_DATA_CR_DOT_CR,
	SMTP_DATA_CR_DOT_CRLF,
	SMTP_DATA_CRLF_DOT_LF,
	SMTP_DATA_CRLF_DOT_CR,
	SMTP_DATA_DOT_NUL, /* a dot alone with NUL in its line */
	SMTP_DATA_BARE_LF, /* without CR */
	SMTP_DATA_BARE_CR, /* without LF */
	SMTP_DATA_NUL,
	SMTP_DATA_LONG_LINE, /* of more than 1000 bytes */
};

#define SMTP_DATA_BIT(flaw) (1u << (flaw))
#define SMTP_DATA_SMUGGLING (SMTP_DATA_BIT(SMTP_DATA_BARE_LF) - 1)                                /* every lone dot */
#define SMTP_DATA_BARE      (SMTP_DATA_BIT(SMTP_DATA_BARE_LF) | SMTP_DATA_BIT(SMTP_DATA_BARE_CR)) /* RFC 5321 2.3.8 */

struct smtp_data {
	uint32_t refuse; /* SMTP_DATA_BIT()s */
	uint32_t flaws;  /* seen so far */
	uint64_t len;    /* bytes taken, all of them */
	uint64_t dots;   /* of these, the dots that a receiver removes (RFC 5321 4.5.2) */
	uint64_t lines;  /* that CR LF ended, without the line of the last dot */
	uint8_t held;    /* bytes at the end of these: a dot at the head of its line, and a CR, which may be a flaw */
	/* The machine's own. */
	uint64_t line_from;
	uint8_t state, before, nul, refused;
};

enum smtp_data_event {
	SMTP_DATA_MORE, /* all was taken */
	SMTP_DATA_END,  /* the last byte taken is the LF of the end */
	SMTP_DATA_BAD,  /* a flaw of @refuse; flaws says which */
};

/* Begin after the DATA command. Its CR LF counts as the one before the first line (RFC 5321 4.1.1.4). */
void smtp_data_begin(struct smtp_data *d, uint32_t refuse);

/* Follow up to the next event; *taken bytes of @in were read. BAD comes once; the caller may then call on to the end,
 * so that its replies stay in step. A flaw is reported at the byte that makes it certain, a long line at its end. */
enum smtp_data_event smtp_data_follow(struct smtp_data *d, const char *in, size_t len, size_t *taken);

/* The length of the message itself (RFC 1870 3: without the end and without added dots); after SMTP_DATA_END. */
uint64_t smtp_data_message_len(const struct smtp_data *d);

/* Chunks of one message (RFC 3030 2). The bytes of a chunk are counted to its end, also after a refusal, because they
 * are never commands. */

enum smtp_bdat_state {
	SMTP_BDAT_NONE,    /* no chunk has begun */
	SMTP_BDAT_CHUNK,   /* bytes of a chunk are to come */
	SMTP_BDAT_BETWEEN, /* the next chunk may begin */
	SMTP_BDAT_LAST,    /* bytes of the last chunk are to come */
	SMTP_BDAT_OVER,    /* the last chunk is complete */
};

/* Embedded; zero is NONE. */
struct smtp_bdat {
	enum smtp_bdat_state state;
	uint64_t left; /* of this chunk */
	uint64_t len;  /* of all chunks that have begun; when they are complete, the message's length */
	uint32_t chunks;
};

/* A BDAT command came; its chunk follows even if the command is refused. 0. Or the chunk is followed but is not part of
 * the message: CSSL_E_STATE: after LAST (RFC 3030 2: 503); CSSL_E_EXHAUSTED: the sum overflows. */
int smtp_bdat_begin(struct smtp_bdat *b, uint64_t chunk_len, int is_last);

/* Follow @len bytes. Returns how many of them belong to the chunk, which is complete when smtp_bdat_is_inside() is 0.
 */
size_t smtp_bdat_follow(struct smtp_bdat *b, size_t len);

static inline bool smtp_bdat_is_inside(const struct smtp_bdat *b)
{
	return b->left > 0;
}

/* Dot-stuffing (RFC 5321 4.5.2): a message to the wire form that DATA carries, and back. In pieces of any size. */

/* Embedded; zero is the head of a message. */
struct smtp_dots {
	uint8_t last[2]; /* the two bytes before */
	uint8_t begun;
};

/* Writes @in with a dot added to each dot that follows CR LF or begins the message. @out has room for 2 * @len. Returns
 * what was written. */
size_t smtp_dots_add(struct smtp_dots *dots, const char *in, size_t len, char *out);

/* The bytes to send behind the last piece: CR LF if the message does not end with it, and the line with the dot. */
struct smtp_span smtp_dots_end(const struct smtp_dots *dots);

/* Remove the added dots from bytes that smtp_data_follow() has taken, without the last three bytes of all. @out has
 * room for @len and may be @in. Returns the bytes written. */
size_t smtp_dots_remove(struct smtp_dots *dots, const char *in, size_t len, char *out);
