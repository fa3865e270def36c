/* replies.c: a linear search: most proxies have few receivers. */
#include "smtpproxy/outward/replies.h"

#include <inttypes.h>
#include <string.h>

/* RFC 5321 4.2.3, RFC 3207 4 and RFC 7504; then all others, by their first digit. */
static const char codes[REPLIES_CODES][4] = { "211", "214", "220", "221", "250", "251", "252", "354", "421", "450",
	"451", "452", "454", "455", "500", "501", "502", "503", "504", "521", "530", "550", "551", "552", "553", "554",
	"555", "556", "2xx", "3xx", "4xx", "5xx" };

static const char others[] = "others";

void replies_name(const char *name, char out[static DNS_NAME_TEXT])
{
	size_t i = 0;
	for (; name[i] && i < DNS_NAME_TEXT - 1; i++)
		out[i] = name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\' ? '_' : name[i];
	out[i] = '\0';
}

/* A row that goes to another receiver leaves its counts to the others: a count may begin anew, the sum may not sink. */
static struct replies_row *replies_row_of(struct replies *all, const char *name, uint64_t now_ms)
{
	struct replies_row *end = &all->rows[REPLIES_RECEIVERS_MAX], *oldest = all->rows;
	if (strcmp(name, others) == 0)
		return end;
	for (struct replies_row *row = all->rows; row < end; row++) {
		if (strcmp(row->receiver, name) == 0)
			return row;
		if (row->heard_ms < oldest->heard_ms)
			oldest = row;
	}
	if (oldest->receiver[0] && now_ms < oldest->heard_ms + REPLIES_KEPT_MS)
		return end;
	for (unsigned i = 0; i < REPLIES_CODES; i++)
		end->counts[i] += oldest->counts[i];
	memset(oldest, 0, sizeof *oldest);
	strcpy(oldest->receiver, name);
	return oldest;
}

void replies_count(struct replies *all, const char *receiver, unsigned code, uint64_t now_ms)
{
	const char text[] = { (char)('0' + code / 100), (char)('0' + code / 10 % 10), (char)('0' + code % 10), '\0' };
	unsigned i = 0, end = REPLIES_CODES - 4;
	struct replies_row *row = replies_row_of(all, receiver, now_ms);
	while (i < end && strcmp(codes[i], text) != 0)
		i++;
	row->counts[i < end ? i : end + code / 100 - 2]++;
	row->heard_ms = now_ms;
}

void replies_write(const struct replies *all, FILE *to)
{
	fprintf(to, "# HELP smtpproxy_replies_total replies of receivers, by receiver and code\n"
		    "# TYPE smtpproxy_replies_total counter\n");
	for (unsigned i = 0; i <= REPLIES_RECEIVERS_MAX; i++) {
		const struct replies_row *row = &all->rows[i];
		const char *name = i < REPLIES_RECEIVERS_MAX ? row->receiver : others;
		for (unsigned c = 0; c < REPLIES_CODES; c++)
			if (row->counts[c] > 0)
				fprintf(to, "smtpproxy_replies_total{receiver=\"%s\",code=\"%s\"} %" PRIu64 "\n", name,
					codes[c], row->counts[c]);
	}
}
