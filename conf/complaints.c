/* complaints.c: a line is formatted into a bounded local buffer and appended as a whole. Lines that find no room are
 * counted, and the last line tells their number. So a small buffer never looks complete when it is not. */
#include "conf/complaints.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_LEN  1024u
#define VALUE_MAX_LEN 60u
#define MORE_ROOM     32u /* for "... and 4294967295 more" */

void complaints_start(struct complaints *c, const char *file, char *out, size_t cap)
{
	*c = (struct complaints){ .file = file, .out = out, .cap = cap };
	if (cap > 0)
		out[0] = '\0';
}

static void complaints_append(struct complaints *c, const char *line)
{
	c->count++;
	size_t need = strlen(line) + (c->len > 0);
	if (c->unsaid == 0 && c->len + need + MORE_ROOM < c->cap) {
		c->len += (size_t)snprintf(c->out + c->len, c->cap - c->len, "%s%s", c->len > 0 ? "\n" : "", line);
		return;
	}
	c->unsaid++;
	if (c->len == 0) /* not even the first line fits: cut it */
		snprintf(c->out, c->cap, "%s", line);
	else
		snprintf(c->out + c->len, c->cap - c->len, "\n... and %u more", c->unsaid);
}

static size_t complaints_place(const struct complaints *c, unsigned line, char *out, size_t cap)
{
	int n = line > 0 ? snprintf(out, cap, "%.200s:%u: ", c->file, line) : snprintf(out, cap, "%.200s: ", c->file);
	return (size_t)n;
}

static void complaints_say(
	struct complaints *c, unsigned line, const char *key, const char *found, const char *expected, va_list args)
{
	char text[LINE_MAX_LEN];
	size_t len = complaints_place(c, line, text, sizeof text);
	if (key)
		len += (size_t)snprintf(text + len, sizeof text - len, "key '%.80s': ", key);
	len += (size_t)snprintf(text + len, sizeof text - len, "found %.200s, expected ", found);
	vsnprintf(text + len, sizeof text - len, expected, args);
	complaints_append(c, text);
}

void complain(struct complaints *c, unsigned line, const char *key, const char *found, const char *expected, ...)
{
	va_list args;
	va_start(args, expected);
	complaints_say(c, line, key, found, expected, args);
	va_end(args);
}

static void complaints_quote(char out[static VALUE_MAX_LEN + 6], const char *value)
{
	size_t n = 0;
	out[n++] = '\'';
	for (; *value != '\0' && n <= VALUE_MAX_LEN; value++)
		out[n++] = (unsigned char)*value < 0x20 || *value == 0x7f ? '?' : *value;
	if (*value != '\0')
		n += (size_t)snprintf(out + n, 4, "...");
	out[n++] = '\'';
	out[n] = '\0';
}

void complain_value(struct complaints *c, unsigned line, const char *key, const char *value, const char *expected, ...)
{
	char quoted[VALUE_MAX_LEN + 6];
	va_list args;
	complaints_quote(quoted, value);
	va_start(args, expected);
	complaints_say(c, line, key, quoted, expected, args);
	va_end(args);
}

void complain_plain(struct complaints *c, unsigned line, const char *sentence, ...)
{
	char text[LINE_MAX_LEN];
	size_t len = complaints_place(c, line, text, sizeof text);
	va_list args;
	va_start(args, sentence);
	vsnprintf(text + len, sizeof text - len, sentence, args);
	va_end(args);
	complaints_append(c, text);
}

/* --- the word that was meant: Levenshtein's distance, and the largest distance of a typing mistake --- */

#define WORD_LEN_MAX 40u

/* How many letters to change, add or drop. */
static size_t complaints_distance(const char *a, const char *b)
{
	size_t row[WORD_LEN_MAX + 1];
	const size_t a_len = strlen(a), b_len = strlen(b);
	if (a_len > WORD_LEN_MAX || b_len > WORD_LEN_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
			const size_t one_more = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = changed < one_more ? changed : one_more;
		}
	}
	return row[b_len];
}

void nearest_try(struct nearest *n, const char *word)
{
	const size_t d = complaints_distance(n->written, word);
	if (d < n->distance) {
		n->distance = d;
		n->word = word;
	}
}

/* A third of the letters wrong is a slip, more is another word. */
const char *nearest_found(const struct nearest *n)
{
	if (!n->word || n->distance > strlen(n->word) / 3 + 1 || n->distance >= strlen(n->word))
		return NULL;
	return n->word;
}
