/* ehlo.h: the extensions in a server's reply to EHLO (RFC 5321 4.1.1.1), as a set that can be filtered, compared, and
 * written with another name. Plain data without pointers: it may be copied and sealed.
 */
#pragma once

#include "proto/wire.h"
#include "smtp/reply.h"
#include "smtp/span.h"

/* X(name as code, keyword): the extensions that the code here has to know. */
#define SMTP_CAPS(X)                                                                                                   \
	X(PIPELINING, "PIPELINING")        /* RFC 2920 */                                                              \
	X(SIZE, "SIZE")                    /* RFC 1870 */                                                              \
	X(8BITMIME, "8BITMIME")            /* RFC 6152 */                                                              \
	X(SMTPUTF8, "SMTPUTF8")            /* RFC 6531 */                                                              \
	X(DSN, "DSN")                      /* RFC 3461 */                                                              \
	X(ENHANCED, "ENHANCEDSTATUSCODES") /* RFC 2034 */                                                              \
	X(CHUNKING, "CHUNKING")            /* RFC 3030 */                                                              \
	X(BINARYMIME, "BINARYMIME")        /* RFC 3030 */                                                              \
	X(STARTTLS, "STARTTLS")            /* RFC 3207 */                                                              \
	X(AUTH, "AUTH")                    /* RFC 4954 */                                                              \
	X(REQUIRETLS, "REQUIRETLS")        /* RFC 8689 */                                                              \
	X(PRIORITY, "MT-PRIORITY")         /* RFC 6710 */                                                              \
	X(DELIVERBY, "DELIVERBY")          /* RFC 2852 */                                                              \
	X(RRVS, "RRVS")                    /* RFC 7293 */                                                              \
	X(LIMITS, "LIMITS")                /* RFC 9422 */                                                              \
	X(VRFY, "VRFY")                    /* RFC 5321 */                                                              \
	X(EXPN, "EXPN")                    /* RFC 5321 */                                                              \
	X(HELP, "HELP")                    /* RFC 5321 */                                                              \
	X(ETRN, "ETRN")                    /* RFC 1985 */                                                              \
	X(XCLIENT, "XCLIENT")              /* Postfix XCLIENT_README */                                                \
	X(XFORWARD, "XFORWARD")            /* Postfix XFORWARD_README */                                               \
	X(XCSSLTX, "XCSSLTX")              /* tx_name.h */

enum smtp_cap {
#define X(name, keyword) SMTP_CAP_##name,
	SMTP_CAPS(X) SMTP_CAP_OTHER, /* any other keyword */
#undef X
	SMTP_CAP_FOREIGN, /* of an extension whose commands or replies cannot be followed */
};

/* Above these bits, @has has one of eight for each keyword of OTHER: smtp_cap_verb_bit(). */
#define SMTP_CAP_BIT(cap) (1u << (cap))
#define SMTP_CAP_ALL      (SMTP_CAP_BIT(SMTP_CAP_FOREIGN + 1) - 1)

/* Extensions that are never offered to a client (STARTTLS inside TLS: RFC 3207 4.2; those that nobody here could
 * follow; the others are for trusted peers). */
#define SMTP_CAPS_HIDDEN                                                                                               \
	(SMTP_CAP_BIT(SMTP_CAP_STARTTLS) | SMTP_CAP_BIT(SMTP_CAP_XCLIENT) | SMTP_CAP_BIT(SMTP_CAP_XFORWARD) |          \
		SMTP_CAP_BIT(SMTP_CAP_XCSSLTX) | SMTP_CAP_BIT(SMTP_CAP_FOREIGN))

#define SMTP_EHLO_LINES_MAX 32u
#define SMTP_EHLO_TEXT_MAX  1024u

struct smtp_ehlo_line {
	uint8_t cap; /* enum smtp_cap */
	uint16_t at, len, keyword_len;
};

struct smtp_ehlo {
	uint32_t has; /* SMTP_CAP_BIT()s */
	uint16_t count, text_len;
	struct smtp_ehlo_line lines[SMTP_EHLO_LINES_MAX];
	char text[SMTP_EHLO_TEXT_MAX]; /* keyword and parameters of all lines */
};

void smtp_ehlo_clear(struct smtp_ehlo *set);

/* Adds one line behind the greeting, without code: a keyword and parameters, also in the old form "AUTH=". If a keyword
 * comes twice, both lines stay. 0; CSSL_E_RANGE: not such a line (it is not added; RFC 5321 4.1.1.1 lets a client
 * ignore it); CSSL_E_FULL. */
int smtp_ehlo_add(struct smtp_ehlo *set, struct smtp_span line);

/* The next line of a reply to EHLO: the first one begins the set anew, and one that was cut is left out. */
void smtp_ehlo_note(struct smtp_ehlo *set, const struct smtp_reply_line *line);

static inline int smtp_ehlo_has(const struct smtp_ehlo *set, enum smtp_cap cap)
{
	return (set->has >> cap) & 1;
}

/* The text behind the keyword in its first line; may be empty. */
struct smtp_span smtp_ehlo_params(const struct smtp_ehlo *set, enum smtp_cap cap);

/* The number of SIZE; 0 when none is given, which means no fixed limit (RFC 1870 4). */
uint64_t smtp_ehlo_size(const struct smtp_ehlo *set);

/* True when @word is among the parameters: a mechanism of AUTH, an attribute of XCLIENT. */
bool smtp_ehlo_lists(const struct smtp_ehlo *set, enum smtp_cap cap, const char *word);

/* Takes out every line whose SMTP_CAP_BIT() is not in @keep. BINARYMIME goes with CHUNKING (RFC 3030 3). */
void smtp_ehlo_keep(struct smtp_ehlo *set, uint32_t keep);

/* Keeps only the extensions that @other has, too, with the smaller number of SIZE: the extensions that both servers
 * have. */
void smtp_ehlo_narrow(struct smtp_ehlo *set, const struct smtp_ehlo *other);

/* Appends the reply to EHLO: 250, @name first, then the lines in their order (some clients stop reading when STARTTLS
 * comes first). */
void smtp_ehlo_write(struct wire_writer *w, const char *name, const struct smtp_ehlo *set);

const char *smtp_cap_keyword(enum smtp_cap cap);

/* The bit in @has of a keyword of OTHER, by a sum of its letters. A session keeps it where it does not keep the
 * keywords. So a verb with the sum of another's passes for that one, and the server refuses it. */
uint32_t smtp_cap_verb_bit(struct smtp_span keyword);

/* True for the keywords of SMTP_CAP_FOREIGN. */
bool smtp_cap_is_foreign(struct smtp_span keyword);
