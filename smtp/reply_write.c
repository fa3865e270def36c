/* reply_write.c: lines with code, separator, enhanced code and cleaned text. */
#include "smtp/reply_write.h"

#include <stdio.h>
#include <string.h>

void smtp_word_write(struct wire_writer *w, const char *word)
{
	wire_put_bytes(w, word, strlen(word));
}

void smtp_text_write(struct wire_writer *w, struct smtp_span text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];
		wire_put_u8(w, c < ' ' || c == 0x7f ? '?' : c);
	}
}

static void smtp_reply_put_line(
	struct wire_writer *w, unsigned code, char separator, const char *enhanced, struct smtp_span text)
{
	size_t head = 4 + strlen(enhanced) + (*enhanced ? 1 : 0), room = SMTP_REPLY_LINE_MAX - 2 - head;
	wire_put_u8(w, (uint8_t)('0' + code / 100 % 10));
	wire_put_u8(w, (uint8_t)('0' + code / 10 % 10));
	wire_put_u8(w, (uint8_t)('0' + code % 10));
	wire_put_u8(w, (uint8_t)separator);
	smtp_word_write(w, enhanced);
	if (*enhanced)
		wire_put_u8(w, ' ');
	if (text.len > room)
		text.len = room;
	smtp_text_write(w, text);
	smtp_word_write(w, "\r\n");
}

void smtp_reply_write(struct wire_writer *w, unsigned code, const char *enhanced, struct smtp_span text)
{
	bool more;
	do {
		more = text.len > 0 && memchr(text.at, '\n', text.len) != NULL;
		struct smtp_span line = smtp_span_until(&text, '\n');
		smtp_reply_put_line(w, code, more ? '-' : ' ', enhanced, line);
	} while (more);
}

/* --- our own replies --- */

static const struct smtp_own_reply rows[SMTP_OWN_COUNT] = { [SMTP_OWN_NONE] = { "none", "", "", 0 },
#define X(name, code, enhanced, text) [SMTP_OWN_##name] = { #name, enhanced, text, code },
	SMTP_OWN_REPLIES(X)
#undef X
};

const struct smtp_own_reply *smtp_own_reply(enum smtp_own which)
{
	return &rows[which < SMTP_OWN_COUNT ? which : SMTP_OWN_NONE];
}

void smtp_own_write(struct wire_writer *w, enum smtp_own which)
{
	const struct smtp_own_reply *row = smtp_own_reply(which);
	if (row->code)
		smtp_reply_write(w, row->code, row->enhanced, smtp_span_of(row->text));
}

size_t smtp_own_line(enum smtp_own which, const char *said, char out[static SMTP_REPLY_LINE_MAX])
{
	const struct smtp_own_reply *row = smtp_own_reply(which);
	const char *gap = row->enhanced[0] ? " " : "", *cause = said[0] ? "; it said: " : "";
	snprintf(out, SMTP_REPLY_LINE_MAX, "%u %s%s%s%s%s", row->code, row->enhanced, gap, row->text, cause, said);
	return strlen(out);
}
