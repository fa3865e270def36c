/* reply_codes.h: how often each code of an SMTP reply came. Plain memory. */
#ifndef CSSL_BENCH_MAIL_REPLY_CODES_H
#define CSSL_BENCH_MAIL_REPLY_CODES_H

#include <jansson.h>
#include <stdint.h>

#define REPLY_CODE_MIN 200u
#define REPLY_CODE_MAX 599u /* as smtp/reply.h reads them */

struct reply_codes {
	uint64_t counts[REPLY_CODE_MAX - REPLY_CODE_MIN + 1];
};

/* @code: within the bounds above. */
void reply_codes_count(struct reply_codes *r, unsigned code);
void reply_codes_add(struct reply_codes *sum, const struct reply_codes *r);

/* Lines on standard output, the title on the first one. */
void reply_codes_text(const char *title, const struct reply_codes *r);

/* {"250": 17}: a new reference, or NULL. */
json_t *reply_codes_json(const struct reply_codes *r);

#endif
