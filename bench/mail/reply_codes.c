/* reply_codes.c: a count for each code that a reply may have. */
#include "bench/mail/reply_codes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/measure/exact.h"
#include "proto/error.h"

#define CODES (REPLY_CODE_MAX - REPLY_CODE_MIN + 1)

void reply_codes_count(struct reply_codes *r, unsigned code)
{
	assert(code >= REPLY_CODE_MIN && code <= REPLY_CODE_MAX);
	r->counts[code - REPLY_CODE_MIN]++;
}

void reply_codes_add(struct reply_codes *sum, const struct reply_codes *r)
{
	for (unsigned i = 0; i < CODES; i++)
		sum->counts[i] += r->counts[i];
}

void reply_codes_text(const char *title, const struct reply_codes *r)
{
	for (unsigned i = 0; i < CODES; i++) {
		if (r->counts[i] == 0)
			continue;
		printf("%-18s %10" PRIu64 "  %u\n", title, r->counts[i], REPLY_CODE_MIN + i);
		title = "";
	}
}

json_t *reply_codes_json(const struct reply_codes *r)
{
	json_t *out = json_object();
	char code[8];

	for (unsigned i = 0; i < CODES; i++) {
		snprintf(code, sizeof code, "%u", REPLY_CODE_MIN + i);
		if (r->counts[i] > 0)
			json_object_set_new(out, code, json_integer((json_int_t)r->counts[i]));
	}
	return out;
}

int reply_codes_read(const json_t *from, struct reply_codes *r)
{
	json_t *codes = (json_t *)from, *count; /* the loop wants it so */
	const char *text;
	uint64_t times;

	json_object_foreach(codes, text, count)
	{
		const unsigned long code = strtoul(text, NULL, 10);
		if (code < REPLY_CODE_MIN || code > REPLY_CODE_MAX || exact_number(from, text, &times))
			return CSSL_E_RANGE;
		r->counts[code - REPLY_CODE_MIN] += times;
	}
	return json_is_object(from) ? 0 : CSSL_E_RANGE;
}
