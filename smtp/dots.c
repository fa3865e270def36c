/* dots.c: passes bytes in runs up to the next LF, and examines only the bytes after CR LF. */
#include "smtp/dots.h"

#include <string.h>

static int at_line_head(const struct smtp_dots *dots)
{
	return !dots->begun || (dots->last[0] == '\r' && dots->last[1] == '\n');
}

static void remember(struct smtp_dots *dots, const char *piece, size_t len)
{
	if (len >= 2 || !dots->begun)
		dots->last[0] = len >= 2 ? (uint8_t)piece[len - 2] : 0;
	else
		dots->last[0] = dots->last[1];
	dots->last[1] = (uint8_t)piece[len - 1];
	dots->begun = 1;
}

/* The next run: to the LF that ends a line, or all. */
static size_t run_len(const char *in, size_t len)
{
	const char *lf = memchr(in, '\n', len);
	return lf ? (size_t)(lf - in) + 1 : len;
}

size_t smtp_dots_add(struct smtp_dots *dots, const char *in, size_t len, char *out)
{
	char *to = out;
	for (size_t at = 0, run; at < len; at += run) {
		if (in[at] == '.' && at_line_head(dots))
			*to++ = '.';
		run = run_len(in + at, len - at);
		memcpy(to, in + at, run);
		to += run;
		remember(dots, in + at, run);
	}
	return (size_t)(to - out);
}

struct smtp_span smtp_dots_end(const struct smtp_dots *dots)
{
	return smtp_span_of(at_line_head(dots) ? ".\r\n" : "\r\n.\r\n");
}

size_t smtp_dots_remove(struct smtp_dots *dots, const char *in, size_t len, char *out)
{
	char *to = out;
	for (size_t at = 0, run; at < len; at += run) {
		int added = in[at] == '.' && at_line_head(dots);
		run = run_len(in + at, len - at);
		char tail[2] = { run >= 2 ? in[at + run - 2] : 0, in[at + run - 1] }; /* @out may be @in */
		memmove(to, in + at + added, run - (size_t)added);
		to += run - (size_t)added;
		remember(dots, run >= 2 ? tail : tail + 1, run >= 2 ? 2 : 1);
	}
	return (size_t)(to - out);
}
