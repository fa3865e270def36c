/* loose_end.c: lines end in LF, with or without CR. Only the beginning of a line is kept. */
#include "sslagent/service/http/loose_end.h"

#include <string.h>
#include <strings.h>

static bool loose_end_starts(const struct loose_end *l, const char *word)
{
	const size_t len = strlen(word);

	return l->line_len >= len && strncasecmp(l->line, word, len) == 0;
}

/* What comes behind the name: a colon and @value, with blanks before either. NULL: something else. */
static const char *loose_end_value_of(const char *at)
{
	at += strspn(at, " \t");
	return *at == ':' ? at + 1 + strspn(at + 1, " \t") : NULL;
}

/* Digits and nothing else, the same each time. 0 or -1. */
static int loose_end_take_length(struct loose_end *l, const char *digits)
{
	uint64_t n = 0;
	const char *at = digits;

	for (; at && *at >= '0' && *at <= '9' && at - digits < 18; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	if (!at || at == digits || at[strspn(at, " \t")] || (l->framing == LOOSE_OF_LENGTH && n != l->length))
		return -1;
	if (l->framing == LOOSE_NO_BODY)
		return 0; /* that is of another answer: RFC 9110 8.6 */
	l->framing = LOOSE_OF_LENGTH;
	l->length = n;
	return 0;
}

static bool is_identity(const char *value)
{
	return value && strncasecmp(value, "identity", 8) == 0 && value[8 + strspn(value + 8, " \t")] == '\0';
}

/* 0 or -1: nobody knows where the body ends. */
static int loose_end_take_field(struct loose_end *l)
{
	if (loose_end_starts(l, "content-length"))
		return l->line_len < LOOSE_LINE_MAX ? loose_end_take_length(l, loose_end_value_of(l->line + 14)) : -1;
	if (loose_end_starts(l, "transfer-encoding"))
		return l->line_len < LOOSE_LINE_MAX && is_identity(loose_end_value_of(l->line + 17)) ? 0 : -1;
	return 0;
}

/* HTTP/1.1 200 OK, or ICY 200 OK. An interim answer would be followed by another head. */
static int take_first_line(struct loose_end *l)
{
	const char *status = strchr(l->line, ' ');

	status = status ? status + strspn(status, " ") - 1 : NULL;
	if (!status || (!loose_end_starts(l, "HTTP/") && !loose_end_starts(l, "ICY ")) || status[1] == '1')
		return -1;
	if (strncmp(status + 1, "204", 3) == 0 || strncmp(status + 1, "304", 3) == 0)
		l->framing = LOOSE_NO_BODY;
	return 0;
}

static void loose_end_take_line(struct loose_end *l)
{
	size_t kept = l->line_len < LOOSE_LINE_MAX ? l->line_len : LOOSE_LINE_MAX - 1;

	if (l->last == '\r') {
		l->line_len--;
		kept = l->line_len < kept ? l->line_len : kept;
	}
	l->line[kept] = '\0';
	if (l->part == LOOSE_FIRST_LINE)
		l->part = take_first_line(l) < 0 ? LOOSE_UNKNOWN : LOOSE_FIELDS;
	else if (l->line_len == 0)
		l->part = LOOSE_BODY;
	else if (l->line[0] == ' ' || l->line[0] == '\t' ||
		 loose_end_take_field(l) < 0) /* of a line that goes on, readers differ */
		l->part = LOOSE_UNKNOWN;
	l->line_len = 0;
}

void loose_end_follow(struct loose_end *l, const uint8_t *data, size_t len)
{
	size_t at = 0;

	for (; at < len && (l->part == LOOSE_FIRST_LINE || l->part == LOOSE_FIELDS); at++) {
		if (data[at] == '\n') {
			loose_end_take_line(l);
			l->last = 0;
			continue;
		}
		if (l->last == '\r') /* some take it for the end of a line */
			l->part = LOOSE_UNKNOWN;
		l->last = (char)data[at];
		if (l->line_len < LOOSE_LINE_MAX - 1)
			l->line[l->line_len] = (char)data[at];
		l->line_len++;
	}
	l->body += len - at;
}

bool loose_end_is_whole(const struct loose_end *l, int is_to_head)
{
	if (l->part != LOOSE_BODY)
		return false;
	return is_to_head || l->framing != LOOSE_OF_LENGTH || l->body >= l->length;
}
