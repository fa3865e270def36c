/* params.h: the parameters of MAIL and RCPT (RFC 5321 4.1.2 Mail-parameters, Rcpt-parameters), one table. */
#ifndef CSSL_SMTP_PARAMS_H
#define CSSL_SMTP_PARAMS_H

#include "smtp/command.h"

/* X(name as code, keyword, verb, how its value is checked) */
#define SMTP_PARAMS(X)                                                                                                 \
	X(SIZE, "SIZE", MAIL, number)              /* RFC 1870 6 */                                                    \
	X(BODY, "BODY", MAIL, body)                /* RFC 6152 2, RFC 3030 3 */                                        \
	X(UTF8, "SMTPUTF8", MAIL, nothing)         /* RFC 6531 3.4 */                                                  \
	X(RET, "RET", MAIL, ret)                   /* RFC 3461 4.3 */                                                  \
	X(ENVID, "ENVID", MAIL, envelope_id)       /* RFC 3461 4.4 */                                                  \
	X(AUTH, "AUTH", MAIL, xtext)               /* RFC 4954 5 */                                                    \
	X(REQUIRETLS, "REQUIRETLS", MAIL, nothing) /* RFC 8689 2 */                                                    \
	X(PRIORITY, "MT-PRIORITY", MAIL, text)     /* RFC 6710 5 */                                                    \
	X(BY, "BY", MAIL, text)                    /* RFC 2852 4 */                                                    \
	X(TX, "XCSSLTX", MAIL, tx_name)            /* tx_name.h */                                                     \
	X(NOTIFY, "NOTIFY", RCPT, notify)          /* RFC 3461 4.1 */                                                  \
	X(ORCPT, "ORCPT", RCPT, original)          /* RFC 3461 4.2 */                                                  \
	X(RRVS, "RRVS", RCPT, text)                /* RFC 7293 3.1 */

enum smtp_param_kind {
#define X(name, keyword, verb, check) SMTP_PARAM_##name,
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

/* Reads @rest for MAIL or RCPT. SMTP_OWN_NONE; UNKNOWN_PARAMETER (RFC 5321 4.1.1.11: 555); BAD_PARAMETER also when one
 * comes twice. */
enum smtp_own smtp_params_read(enum smtp_verb verb, struct smtp_span rest, struct smtp_params *out);

#endif
