/* preamble.h: the dialogue in clear before STARTTLS (RFC 3207): a banner, EHLO, HELO, NOOP, RSET, HELP, VRFY, QUIT and
 * STARTTLS. STARTTLS discards its state (RFC 3207 4.2), so nothing is carried over. No sockets.
 *
 * Injection: at STARTTLS, @consumed tells how many client bytes were read. Before the 220 is written, the holder of the
 * client's socket compares that with the bytes that came. If more came, an attacker may have added them, and the
 * connection is reset. So no byte in clear is ever taken for one under TLS.
 */
#pragma once

#include "proto/wire.h"
#include "smtp/domain.h"
#include "smtp/ehlo.h"
#include "smtp/line.h"
#include "smtp/reply_write.h"

enum smtp_tls_policy {
	SMTP_TLS_REQUIRE,  /* any other command gets 530 5.7.0 (RFC 3207 4) */
	SMTP_TLS_OFFER,    /* mail may begin in clear; AUTH may not */
	SMTP_TLS_IMPLICIT, /* TLS from the first byte (RFC 8314 3.3): there is no preamble */
};

#define SMTP_PREAMBLE_LINE_MAX  1024u /* MAIL with the parameters of all extensions */
#define SMTP_PREAMBLE_REPLY_MAX 2048u /* no reply of one call is longer */
#define SMTP_BANNER_MAX         200u  /* with the longest name it fits one line */

/* Lives as long as the preambles that use it. */
struct smtp_preamble_rules {
	enum smtp_tls_policy tls;
	const char *name;               /* of the cluster, at most SMTP_DOMAIN_MAX; the same on every agent */
	const char *banner;             /* behind the name, at most SMTP_BANNER_MAX; NULL: ESMTP */
	const struct smtp_ehlo *offers; /* for EHLO, with STARTTLS, without AUTH and SMTP_CAPS_HIDDEN */
	uint16_t errors_max;            /* so many refused commands end it; 0: no limit */
	uint16_t commands_max;          /* so many commands end it; 0: no limit */
	uint8_t lenient;                /* SMTP_PARSE_LENIENT, SMTP_PARSE_JUDGED, or 0 */
};

enum smtp_preamble_state {
	SMTP_PREAMBLE_GREETED,
	SMTP_PREAMBLE_HELO,
	SMTP_PREAMBLE_EHLO,
	SMTP_PREAMBLE_TLS,
	SMTP_PREAMBLE_MAIL,
	SMTP_PREAMBLE_ENDED,
};

enum smtp_preamble_event {
	SMTP_PREAMBLE_ON_MORE,     /* all was read, there is no reply */
	SMTP_PREAMBLE_ON_REPLY,    /* the reply to one command is written; call again with the rest */
	SMTP_PREAMBLE_ON_STARTTLS, /* the 220 is written; @consumed is final */
	SMTP_PREAMBLE_ON_MAIL,     /* mail begins in clear: @held is its first line, nothing was answered to it */
	SMTP_PREAMBLE_ON_END,      /* a last reply is written; close when it is sent */
};

/* Embedded. */
struct smtp_preamble {
	const struct smtp_preamble_rules *rules;
	enum smtp_preamble_state state;
	enum smtp_own last; /* the last reply other than OK, for logs and counters */
	uint64_t consumed;  /* client bytes read, with those of an unfinished line */
	uint16_t errors, commands;
	struct smtp_span held;          /* at ON_MAIL: the whole line with its end; until the next call */
	char name[SMTP_DOMAIN_MAX + 1]; /* the client's own name for itself */
	struct smtp_line_reader reader;
	char line[SMTP_PREAMBLE_LINE_MAX];
};

/* Begin and write the banner. With SMTP_TLS_IMPLICIT nothing is written, and the state is TLS at once. */
void smtp_preamble_begin(struct smtp_preamble *p, const struct smtp_preamble_rules *rules, struct wire_writer *out);

/* Reads at most one command of @in, which has *taken bytes. @out has room for SMTP_PREAMBLE_REPLY_MAX. Only in the
 * states GREETED, HELO and EHLO. */
enum smtp_preamble_event smtp_preamble_read(
	struct smtp_preamble *p, const char *in, size_t len, size_t *taken, struct wire_writer *out);
