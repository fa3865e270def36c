/* line.c: memchr() finds the end of the line. A complete line is searched once for flaws. */
#include "smtp/line.h"

#include <string.h>

void smtp_line_begin(struct smtp_line_reader *r, size_t max, char *buf)
{
	*r = (struct smtp_line_reader){ .max = (uint16_t)max, .buf = buf };
}

void smtp_line_wipe(const struct smtp_line_reader *r)
{
	explicit_bzero(r->buf, r->most);
}

bool smtp_line_is_between(const struct smtp_line_reader *r)
{
	return r->held == 0 && !r->skips;
}

static unsigned flaw_of(const char *at, size_t left)
{
	unsigned char c = (unsigned char)*at;
	if (c == 0)
		return SMTP_LINE_NUL;
	if (c > 127)
		return SMTP_LINE_8BIT;
	if (c == '\r')
		return left > 1 && at[1] == '\n' ? 0 : SMTP_LINE_BARE_CR;
	return (c < ' ' && c != '\t') || c == 0x7f ? SMTP_LINE_CONTROL : 0;
}

static unsigned flaws_of(struct smtp_span text)
{
	unsigned flaws = 0;
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)(text.at[i] - ' ') > '~' - ' ')
			flaws |= flaw_of(text.at + i, text.len - i);
	return flaws;
}

/* The line of @wire; its last byte is the LF that ends it. */
static int smtp_line_give(struct smtp_line_reader *r, struct smtp_span wire, struct smtp_line *out)
{
	size_t end = wire.len > 1 && wire.at[wire.len - 2] == '\r' ? 2 : 1;
	out->wire = wire;
	out->text = (struct smtp_span){ wire.at, wire.len - end };
	out->flaws = flaws_of(out->text) | (end == 1 ? SMTP_LINE_BARE_LF : 0);
	r->held = 0;
	return SMTP_LINE;
}

/* @wire has as many bytes as a line may have, and no end. */
static int give_too_long(struct smtp_line_reader *r, struct smtp_span wire, struct smtp_line *out)
{
	r->skips = 1;
	r->held = 0;
	out->wire = out->text = wire;
	out->flaws = SMTP_LINE_TOO_LONG;
	return SMTP_LINE;
}

/* The length of @in up to and with the LF that ends the line, or 0. */
static size_t len_to_end(const char *in, size_t len)
{
	const char *lf = len ? memchr(in, '\n', len) : NULL;
	return lf ? (size_t)(lf - in) + 1 : 0;
}

static size_t smtp_line_skip(struct smtp_line_reader *r, const char *in, size_t len)
{
	const size_t end = len_to_end(in, len);
	r->skips = end == 0;
	return end ? end : len;
}

int smtp_line_read(struct smtp_line_reader *r, const char *in, size_t len, size_t *taken, struct smtp_line *out)
{
	*taken = r->skips ? smtp_line_skip(r, in, len) : 0;
	in += *taken;
	len -= *taken;
	if (len == 0)
		return 0;
	size_t room = (size_t)r->max - r->held, look = len < room ? len : room;
	size_t end = len_to_end(in, look), piece = end ? end : look;

	*taken += piece;
	struct smtp_span wire = { in, piece };
	/* Only a line that comes in pieces is copied. One that is whole, or too long at once, stays where it is. */
	if (r->held || (!end && look < room)) {
		memcpy(r->buf + r->held, in, piece);
		r->held = (uint16_t)(r->held + piece);
		if (r->held > r->most)
			r->most = r->held;
		wire = (struct smtp_span){ r->buf, r->held };
	}
	if (end)
		return smtp_line_give(r, wire, out);
	return look == room ? give_too_long(r, wire, out) : 0;
}
