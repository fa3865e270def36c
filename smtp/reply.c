/* reply.c: code, separator, enhanced code. Codes are taken by their first digit only: servers use second digits that
 * RFC 5321 4.2.1 does not know. */
#include "smtp/reply.h"

#include <string.h>

#include "proto/error.h"

/* One to three digits without leading zeros (RFC 3463 2), then @end; both are taken from @rest. */
static int smtp_reply_take_number(struct smtp_span *rest, char end, uint16_t *out)
{
	uint64_t value;
	struct smtp_span left = *rest, digits = smtp_span_until(&left, end);
	if (digits.len > 3 || digits.len == rest->len || (digits.len > 1 && digits.at[0] == '0'))
		return CSSL_E_RANGE;
	if (smtp_span_number(digits, 999, &value) < 0)
		return CSSL_E_RANGE;
	*out = (uint16_t)value;
	*rest = left;
	return 0;
}

/* "2.0.0 " and the like at the head of @text. status 0: there is none, or its class is not that of @code. */
static struct smtp_enhanced read_enhanced(struct smtp_span text, unsigned code)
{
	struct smtp_enhanced none = { 0 }, found = { 0 };
	uint16_t status;
	struct smtp_span rest = text;
	if (smtp_reply_take_number(&rest, '.', &status) < 0 || smtp_reply_take_number(&rest, '.', &found.subject) < 0)
		return none;
	struct smtp_span left = rest, detail = smtp_span_until(&left, ' ');
	uint64_t value;
	if (detail.len > 3 || smtp_span_number(detail, 999, &value) < 0 || status != code / 100 || status == 3)
		return none;
	found.status = (uint8_t)status;
	found.detail = (uint16_t)value;
	return found;
}

static int read_code(struct smtp_span text, uint16_t *code)
{
	uint64_t value;
	if (text.len < 3 || smtp_span_number((struct smtp_span){ text.at, 3 }, 599, &value) < 0 || value < 200)
		return CSSL_E_RANGE;
	*code = (uint16_t)value;
	return 0;
}

int smtp_reply_line_parse(struct smtp_span text, struct smtp_reply_line *out)
{
	char separator = text.len > 3 ? text.at[3] : ' ';
	if (read_code(text, &out->code) < 0 || (separator != ' ' && separator != '-'))
		return CSSL_E_RANGE;
	size_t head = text.len > 3 ? 4 : 3;
	out->is_last = separator == ' ';
	out->text = (struct smtp_span){ text.at + head, text.len - head };
	out->enhanced = read_enhanced(out->text, out->code);
	return 0;
}

/* --- the reader --- */

void smtp_reply_begin(struct smtp_reply_reader *r, char *buf, size_t max)
{
	*r = (struct smtp_reply_reader){ .buf = buf, .max = (uint16_t)max };
}

void smtp_reply_drop(struct smtp_reply_reader *r)
{
	r->lines = r->given = 0;
	r->bytes = 0;
}

bool smtp_reply_is_between(const struct smtp_reply_reader *r)
{
	return r->lines == 0 && r->bytes == 0 && r->held == 0;
}

/* Keeps what fits of a line. */
static struct smtp_span smtp_reply_hold(struct smtp_reply_reader *r, struct smtp_span piece)
{
	const size_t room = r->max - r->held, len = piece.len < room ? piece.len : room;

	memcpy(r->buf + r->held, piece.at, len);
	r->held = (uint16_t)(r->held + len);
	r->cut |= len < piece.len;
	return (struct smtp_span){ r->buf, r->held };
}

static bool is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

static bool is_separator(char c)
{
	return c == ' ' || c == '-' || c == '\t';
}

static bool is_clean(const struct smtp_reply_reader *r, struct smtp_span text, struct smtp_span wire)
{
	size_t i = 0;

	while (i < text.len && !is_control(text.at[i]))
		i++;
	return i == text.len && wire.len == text.len + 2 && wire.len <= r->max && !r->cut &&
	       (text.len == 3 || text.at[3] == ' ' || text.at[3] == '-');
}

/* @text may be in the buffer. */
static struct smtp_span write_anew(struct smtp_reply_reader *r, struct smtp_span text)
{
	const size_t head = text.len > 3 && is_separator(text.at[3]) ? 4 : 3, room = r->max - 6u;
	const size_t len = text.len - head < room ? text.len - head : room;
	const char separator = head == 4 && text.at[3] == '-' ? '-' : ' ';

	r->cut |= len < text.len - head;
	memmove(r->buf + 4, text.at + head, len);
	memmove(r->buf, text.at, 3);
	r->buf[3] = separator;
	for (size_t i = 4; i < len + 4; i++)
		r->buf[i] = is_control(r->buf[i]) ? '?' : r->buf[i];
	memcpy(r->buf + 4 + len, "\r\n", 2);
	return (struct smtp_span){ r->buf, len + 6 };
}

/* @wire ends with LF, unless it was cut. */
static int read_line(struct smtp_reply_reader *r, struct smtp_span wire, struct smtp_reply_line *out)
{
	struct smtp_span text = wire;
	uint16_t code;

	while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
		text.len--;
	/* Four digits are no code: 2500 must not be read as 250. */
	const bool is_line = read_code(text, &code) == 0 && !(text.len > 3 && text.at[3] >= '0' && text.at[3] <= '9');
	r->held = 0;
	if (!is_line) {
		r->cut = 0;
		return CSSL_E_RANGE;
	}
	wire = is_clean(r, text, wire) ? wire : write_anew(r, text);
	smtp_reply_line_parse((struct smtp_span){ wire.at, wire.len - 2 }, out);
	out->wire = wire;
	out->is_cut = r->cut;
	out->number = ++r->lines;
	r->cut = 0;
	if (out->is_last)
		smtp_reply_drop(r);
	return out->is_last ? SMTP_REPLY_DONE : SMTP_REPLY_MORE;
}

int smtp_reply_read(struct smtp_reply_reader *r, const char *in, size_t len, size_t *taken, struct smtp_reply_line *out)
{
	int result = SMTP_REPLY_NONE;

	for (*taken = 0; *taken < len && result == SMTP_REPLY_NONE;) {
		const char *from = in + *taken, *lf = memchr(from, '\n', len - *taken);
		struct smtp_span piece = { from, lf ? (size_t)(lf - from) + 1 : len - *taken };

		*taken += piece.len;
		if (piece.len > SMTP_REPLY_BYTES_MAX - r->bytes)
			return CSSL_E_TOO_LONG;
		r->bytes += (uint32_t)piece.len;
		if (!lf || r->held)
			piece = smtp_reply_hold(r, piece);
		if (lf)
			result = read_line(r, piece, out);
		/* A caller gets no more lines than that. The others are passed over: the last one decides. */
		if (result == SMTP_REPLY_MORE && out->wire.len > SMTP_REPLY_TEXT_MAX - r->given)
			result = SMTP_REPLY_NONE;
		else if (result == SMTP_REPLY_MORE)
			r->given = (uint16_t)(r->given + out->wire.len);
	}
	return result;
}
