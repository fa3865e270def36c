/* reply.c: code, separator, enhanced code. Codes are taken by their first digit only: servers use second digits that
 * RFC 5321 4.2.1 does not know. */
#include "smtp/reply.h"

#include "proto/error.h"
#include "smtp/line.h"

/* One to three digits without leading zeros (RFC 3463 2), then @end; both are taken from @rest. */
static int take_number(struct smtp_span *rest, char end, uint16_t *out)
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

struct smtp_enhanced smtp_enhanced_parse(struct smtp_span text, unsigned code, size_t *taken)
{
	struct smtp_enhanced none = { 0 }, found = { 0 };
	uint16_t status;
	struct smtp_span rest = text;
	*taken = 0;
	if (take_number(&rest, '.', &status) < 0 || take_number(&rest, '.', &found.subject) < 0)
		return none;
	struct smtp_span left = rest, detail = smtp_span_until(&left, ' ');
	uint64_t value;
	if (detail.len > 3 || smtp_span_number(detail, 999, &value) < 0 || status != code / 100 || status == 3)
		return none;
	found.status = (uint8_t)status;
	found.detail = (uint16_t)value;
	*taken = (size_t)(detail.at - text.at) + detail.len + (detail.len < rest.len);
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
	size_t ignored;
	char separator = text.len > 3 ? text.at[3] : ' ';
	if (read_code(text, &out->code) < 0 || (separator != ' ' && separator != '-'))
		return CSSL_E_RANGE;
	size_t head = text.len > 3 ? 4 : 3;
	out->is_last = separator == ' ';
	out->text = (struct smtp_span){ text.at + head, text.len - head };
	out->enhanced = smtp_enhanced_parse(out->text, out->code, &ignored);
	return 0;
}

int smtp_reply_add(struct smtp_reply *reply, struct smtp_span text, unsigned flaws, struct smtp_reply_line *line)
{
	if (flaws & SMTP_LINE_TOO_LONG)
		return CSSL_E_TOO_LONG;
	if (flaws & (SMTP_LINE_NUL | SMTP_LINE_BARE_CR | SMTP_LINE_BARE_LF) || smtp_reply_line_parse(text, line) < 0)
		return CSSL_E_RANGE;
	if (reply->lines > 0 && line->code != reply->code)
		return CSSL_E_MISMATCH;
	if (reply->lines == 0)
		reply->enhanced = line->enhanced;
	reply->code = line->code;
	reply->lines++;
	reply->len += (uint32_t)text.len + 2;
	if (reply->lines > SMTP_REPLY_LINES_MAX || reply->len > SMTP_REPLY_TEXT_MAX)
		return CSSL_E_TOO_LONG;
	return line->is_last ? SMTP_REPLY_DONE : SMTP_REPLY_MORE;
}
