/* params.h: the parameters of MAIL and RCPT (RFC 5321 4.1.2 Mail-parameters, Rcpt-parameters), one table. */
#pragma once

#include "proto/wire.h"
#include "smtp/command.h"
#include "smtp/ehlo.h"
#include "smtp/span.h"

/* X(name as code, keyword, verb, how its value is checked, extension) */
#define SMTP_PARAMS(X)                                                                                                 \
	X(SIZE, "SIZE", MAIL, number, SIZE)                    /* RFC 1870 6 */                                        \
	X(BODY, "BODY", MAIL, body, 8BITMIME)                  /* RFC 6152 2, RFC 3030 3 */                            \
	X(UTF8, "SMTPUTF8", MAIL, nothing, SMTPUTF8)           /* RFC 6531 3.4 */                                      \
	X(RET, "RET", MAIL, ret, DSN)                          /* RFC 3461 4.3 */                                      \
	X(ENVID, "ENVID", MAIL, envelope_id, DSN)              /* RFC 3461 4.4 */                                      \
	X(AUTH, "AUTH", MAIL, xtext, AUTH)                     /* RFC 4954 5 */                                        \
	X(REQUIRETLS, "REQUIRETLS", MAIL, nothing, REQUIRETLS) /* RFC 8689 2 */                                        \
	X(PRIORITY, "MT-PRIORITY", MAIL, text, PRIORITY)       /* RFC 6710 5 */                                        \
	X(BY, "BY", MAIL, text, DELIVERBY)                     /* RFC 2852 4 */                                        \
	X(TX, "XCSSLTX", MAIL, tx_name, XCSSLTX)               /* tx_name.h */                                         \
	X(NOTIFY, "NOTIFY", RCPT, notify, DSN)                 /* RFC 3461 4.1 */                                      \
	X(ORCPT, "ORCPT", RCPT, original, DSN)                 /* RFC 3461 4.2 */                                      \
	X(RRVS, "RRVS", RCPT, text, RRVS)                      /* RFC 7293 3.1 */

enum smtp_param_kind {
#define X(name, keyword, verb, check, cap) SMTP_PARAM_##name,
	SMTP_PARAMS(X) SMTP_PARAM_COUNT
#undef X
};

struct smtp_param {
	struct smtp_span keyword, value; /* value.at NULL: there is no '=' */
};

/* Takes the next parameter of @rest. 0; SMTP_PARAMS_END; CSSL_E_RANGE: it is not an esmtp-param (RFC 5321 4.1.2).
 * Also in that case keyword and value are set, and @rest begins after it. */
#define SMTP_PARAMS_END 1
int smtp_param_next(struct smtp_span *rest, struct smtp_param *out);

/* SMTP_CAP_BIT()s of the extensions whose parameters a MAIL or RCPT has, well-formed or not; 0 for other commands, and
 * for parameters that nobody here knows. */
uint32_t smtp_params_extensions(const struct smtp_command *command);

/* All parameters of a command; spans point into the line. */
struct smtp_params {
	uint32_t has;                             /* bit per enum smtp_param_kind */
	struct smtp_span value[SMTP_PARAM_COUNT]; /* as written */
	uint64_t size;                            /* SIZE */
};

static inline int smtp_params_has(const struct smtp_params *params, enum smtp_param_kind kind)
{
	return (params->has >> kind) & 1;
}

/* Reads @rest for MAIL or RCPT. SMTP_OWN_NONE; UNKNOWN_PARAMETER (RFC 5321 4.1.1.11: 555), also for a word that BODY or
 * RET does not have; BAD_PARAMETER also when one
 * comes twice. */
enum smtp_own smtp_params_read(enum smtp_verb verb, struct smtp_span rest, struct smtp_params *out);

/* RFC 3461 4: printable ASCII, with '+' and two capital hex digits for '+', '=' and everything else. ENVID, ORCPT
 * (RFC 3461), and AUTH= (RFC 4954 5) carry their values so. */

/* Appends the decoded bytes of @xtext. Any byte may come out, so write the result only by smtp_text_write(). 0,
 * or CSSL_E_RANGE: not an xtext. Small hex digits are accepted, because peers of Postfix send them. */
int smtp_xtext_read(struct wire_writer *w, struct smtp_span xtext);
