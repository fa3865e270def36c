/* reply_codes.c: a count for each code that a reply may have. */
#include "bench/mail/reply_codes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

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
