/* fuzz_smtp_reply.c: replies of a server, as capability sets too: a set that is written is read back the same; a text
 * from outside that goes into a reply of ours makes no line of its own. Answers about transactions are read back, too.
 */
#include <string.h>

#include "smtp/ehlo.h"
#include "smtp/reply.h"
#include "smtp/reply_write.h"
#include "smtp/tx_name.h"
#include "smtp/params.h"
#include "tests/fuzz/smtp_cut.h"

#define REPLY_MAX 1024u

static void check_fate(const struct smtp_reply_line *line)
{
	struct smtp_reply_line decided, again, outer;
	uint8_t out[2048];
	struct wire_writer w = wire_writer(out, sizeof out);
	if (smtp_fate_parse(line, &decided) != SMTP_FATE_DECIDED)
		return;
	MUST(decided.code >= 200 && decided.code < 600 && decided.code / 100 != 3 && decided.is_last == line->is_last);
	struct smtp_span inner = line->text;
	smtp_span_word(&inner);
	smtp_fate_write(&w, SMTP_FATE_DECIDED, inner);
	MUST(wire_writer_len(&w) > 2);
	MUST(smtp_reply_line_parse((struct smtp_span){ (char *)out, (size_t)wire_writer_len(&w) - 2 }, &outer) == 0);
	int r = smtp_fate_parse(&outer, &again);
	MUST(r == SMTP_FATE_DECIDED && again.code == decided.code && again.is_last == decided.is_last);
}

/* What is given is a clean line, and reads back as what was told of it. */
static void check_line(const struct smtp_reply_line *line)
{
	struct smtp_reply_line again;
	MUST(line->code >= 200 && line->code < 600 && line->wire.len >= 5 && line->wire.len <= REPLY_MAX);
	MUST(memcmp(line->wire.at + line->wire.len - 2, "\r\n", 2) == 0);
	for (size_t i = 0; i + 2 < line->wire.len; i++)
		MUST((unsigned char)line->wire.at[i] >= ' ' || line->wire.at[i] == '\t');
	MUST(smtp_reply_line_parse((struct smtp_span){ line->wire.at, line->wire.len - 2 }, &again) == 0);
	MUST(again.code == line->code && again.is_last == line->is_last && again.text.len == line->text.len);
	MUST(line->enhanced.status == 0 || line->enhanced.status == line->code / 100);
}

/* Reads the replies of @in in pieces of @piece bytes; their lines go to @sum, those of a reply to EHLO to @set. Returns
 * how many replies were complete. */
static unsigned read_replies(const char *in, size_t len, size_t piece, struct smtp_ehlo *set, uint64_t *sum)
{
	struct smtp_reply_reader r;
	struct smtp_reply_line line;
	char buf[REPLY_MAX];
	unsigned count = 0;
	smtp_reply_begin(&r, buf, sizeof buf);
	for (size_t at = 0, taken; at < len; at += taken) {
		const size_t next = at + piece - at % piece;
		int result = smtp_reply_read(&r, in + at, (next < len ? next : len) - at, &taken, &line);
		if (result == SMTP_REPLY_NONE)
			continue;
		*sum = smtp_sum(*sum, &result, sizeof result);
		if (result < 0)
			break;
		check_line(&line);
		check_fate(&line);
		*sum = smtp_sum(*sum, line.wire.at, line.wire.len);
		smtp_ehlo_note(set, &line);
		count += result == SMTP_REPLY_DONE;
	}
	return count;
}

static void check_set(const struct smtp_ehlo *set)
{
	struct smtp_ehlo again;
	uint64_t ignored = 0;
	uint8_t out[4096];
	struct wire_writer w = wire_writer(out, sizeof out);
	smtp_ehlo_clear(&again);
	smtp_ehlo_write(&w, "name.example", set);
	MUST(wire_writer_len(&w) > 0);
	MUST(read_replies((const char *)out, (size_t)wire_writer_len(&w), 7, &again, &ignored) == 1);
	MUST(set->has == again.has && set->count == again.count && set->text_len == again.text_len);
	MUST(memcmp(set->text, again.text, set->text_len) == 0);
	smtp_ehlo_keep(&again, SMTP_CAP_ALL & ~SMTP_CAPS_HIDDEN);
	MUST(!(again.has & SMTP_CAPS_HIDDEN));
}

static void check_written(struct smtp_span text)
{
	static uint8_t out[1 << 20];
	struct wire_writer w = wire_writer(out, sizeof out);
	struct smtp_ehlo ignored;
	uint64_t sum = 0;
	smtp_ehlo_clear(&ignored);
	smtp_reply_write(&w, 550, "5.0.0", text);
	const ptrdiff_t out_len = wire_writer_len(&w);
	if (out_len > 0 && out_len <= SMTP_REPLY_TEXT_MAX)
		MUST(read_replies((const char *)out, (size_t)out_len, (size_t)out_len, &ignored, &sum) == 1);
}

static void check_xtext(struct smtp_span text)
{
	static uint8_t back[1 << 20];
	struct wire_writer b = wire_writer(back, sizeof back);
	if (smtp_xtext_read(&b, text) == 0)
		MUST(wire_writer_len(&b) <= (ptrdiff_t)text.len && wire_writer_len(&b) >= (ptrdiff_t)text.len / 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const size_t pieces[] = { SIZE_MAX / 2, 1, 5 };
	struct smtp_ehlo set;
	struct smtp_span text = { (const char *)in, len };
	uint64_t sums[3] = { 0 };
	for (size_t i = 0; i < 3; i++) {
		smtp_ehlo_clear(&set);
		read_replies(text.at, len, pieces[i], &set, &sums[i]);
		MUST(sums[i] == sums[0]);
	}
	check_set(&set);
	if (len > 0) {
		check_written(text);
		check_xtext(text);
	}
	return 0;
}
