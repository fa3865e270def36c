/* command.h: reads one command line (RFC 5321 4.1 and the extensions' own sections) and names our reply if the line is
 * wrong. It has no state: preamble.h and transaction.h know which command may come when.
 */
#pragma once

#include "smtp/reply_write.h"
#include "smtp/path.h"
#include "smtp/span.h"

enum smtp_argument {
	ARGUMENT_NONE,     /* an argument is 501 */
	ARGUMENT_OPTIONAL, /* any text or none */
	ARGUMENT_NEEDED,   /* any text */
	ARGUMENT_NAME,     /* a host name or literal */
	ARGUMENT_FROM,     /* FROM:<path> parameters */
	ARGUMENT_TO,       /* TO:<path> parameters */
	ARGUMENT_CHUNK,    /* a size, perhaps LAST */
};

/* LAST: only the last one of a pipelined group may be it (RFC 2920 3.1; RFC 3207 4; RFC 4954 4). That
 * holds for each command of an extension that does not say otherwise. */
enum smtp_grouping { GROUP_ANY, GROUP_LAST };

/* X(verb, what it takes, grouping): with its section. The last rows are first words of HTTP: a browser may have been
 * made to connect here. */
#define SMTP_VERBS(X)                                                                                                  \
	X(EHLO, ARGUMENT_NAME, GROUP_LAST)        /* RFC 5321 4.1.1.1 */                                               \
	X(HELO, ARGUMENT_NAME, GROUP_LAST)        /* RFC 5321 4.1.1.1 */                                               \
	X(MAIL, ARGUMENT_FROM, GROUP_ANY)         /* RFC 5321 4.1.1.2 */                                               \
	X(RCPT, ARGUMENT_TO, GROUP_ANY)           /* RFC 5321 4.1.1.3 */                                               \
	X(DATA, ARGUMENT_NONE, GROUP_LAST)        /* RFC 5321 4.1.1.4 */                                               \
	X(BDAT, ARGUMENT_CHUNK, GROUP_ANY)        /* RFC 3030 2 */                                                     \
	X(RSET, ARGUMENT_NONE, GROUP_ANY)         /* RFC 5321 4.1.1.5 */                                               \
	X(VRFY, ARGUMENT_NEEDED, GROUP_LAST)      /* RFC 5321 4.1.1.6 */                                               \
	X(EXPN, ARGUMENT_NEEDED, GROUP_LAST)      /* RFC 5321 4.1.1.7 */                                               \
	X(HELP, ARGUMENT_OPTIONAL, GROUP_ANY)     /* RFC 5321 4.1.1.8 */                                               \
	X(NOOP, ARGUMENT_OPTIONAL, GROUP_LAST)    /* RFC 5321 4.1.1.9 */                                               \
	X(QUIT, ARGUMENT_NONE, GROUP_LAST)        /* RFC 5321 4.1.1.10 */                                              \
	X(STARTTLS, ARGUMENT_NONE, GROUP_LAST)    /* RFC 3207 4 */                                                     \
	X(AUTH, ARGUMENT_NEEDED, GROUP_LAST)      /* RFC 4954 4 */                                                     \
	X(ETRN, ARGUMENT_NEEDED, GROUP_LAST)      /* RFC 1985 5 */                                                     \
	X(XCLIENT, ARGUMENT_NEEDED, GROUP_LAST)   /* Postfix XCLIENT_README */                                         \
	X(XFORWARD, ARGUMENT_NEEDED, GROUP_ANY)   /* Postfix XFORWARD_README */                                        \
	X(XCSSLTX, ARGUMENT_NEEDED, GROUP_LAST)   /* tx_name.h */                                                      \
	X(CONNECT, ARGUMENT_OPTIONAL, GROUP_LAST) /* HTTP */                                                           \
	X(GET, ARGUMENT_OPTIONAL, GROUP_LAST)     /* HTTP */                                                           \
	X(POST, ARGUMENT_OPTIONAL, GROUP_LAST)    /* HTTP */

enum smtp_verb {
	SMTP_VERB_UNKNOWN,
#define X(name, argument, grouping) SMTP_VERB_##name,
	SMTP_VERBS(X) SMTP_VERB_COUNT
#undef X
};

/* Spans point into the line. */
struct smtp_command {
	enum smtp_verb verb;
	struct smtp_span word;     /* the verb as written */
	struct smtp_span argument; /* without spaces at both ends */
	struct smtp_path path;     /* MAIL, RCPT */
	struct smtp_span params;   /* MAIL, RCPT: the text behind the path (params.h) */
	uint64_t chunk_len;        /* BDAT */
	int chunk_is_last;         /* BDAT */
};

/* Reads the text of a line (line.h) with enum smtp_parse_flag. SMTP_OWN_NONE, or the reply that refuses it; verb, word
 * and argument are set either way. Lenient: spaces around the colon of FROM: and TO:, an argument of RSET, DATA and
 * QUIT, VRFY without one, and what path.h and domain.h say. */
enum smtp_own smtp_command_parse(struct smtp_span text, unsigned flags, struct smtp_command *out);

/* As above, but the flaws of the line are refused first: too long, bare LF or CR, NUL, control characters, and 8-bit
 * bytes without SMTP_PARSE_UTF8, but for a lenient greeting. */
enum smtp_own smtp_command_of_line(struct smtp_span text, unsigned flaws, unsigned flags, struct smtp_command *out);

enum smtp_grouping smtp_verb_grouping(enum smtp_verb verb);

/* Is @word an ehlo-keyword (RFC 5321 4.1.1.1) that does not begin with a verb of the table? A careless server may
 * compare no more than that. */
bool smtp_verb_is_new(struct smtp_span word);
