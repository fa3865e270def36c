/* tally.c: a linear search; the tables are short. */
#include "bench/measure/tally.h"

#include <stdio.h>
#include <string.h>

static const char others[] = "others";

struct tally *tally_row(struct tally *rows, unsigned max, const char *text, size_t len)
{
	unsigned i = 0;
	if (len >= TALLY_TEXT_MAX)
		len = TALLY_TEXT_MAX - 1;
	while (i < max - 1 && rows[i].text[0] && (strncmp(rows[i].text, text, len) != 0 || rows[i].text[len]))
		i++;
	if (i == max - 1) {
		text = others;
		len = sizeof others - 1;
	}
	if (!rows[i].text[0]) {
		memcpy(rows[i].text, text, len);
		rows[i].text[len] = 0;
	}
	return &rows[i];
}

void tally_note(struct tally *rows, unsigned max, const char *where, const char *what)
{
	char text[TALLY_TEXT_MAX];

	snprintf(text, sizeof text, "%s: %s", where, what);
	tally_row(rows, max, text, strlen(text))->count++;
}

void tally_add(struct tally *sum, const struct tally *rows, unsigned max)
{
	for (unsigned i = 0; i < max && rows[i].text[0]; i++)
		tally_row(sum, max, rows[i].text, strnlen(rows[i].text, TALLY_TEXT_MAX))->count += rows[i].count;
}
