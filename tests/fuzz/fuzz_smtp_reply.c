/* fuzz_smtp_reply.c: replies of a server, as capability sets too: a set that is written is read back the same; a text
 * from outside that goes into a reply of ours makes no line of its own. Answers about transactions are read back, too.
 */
#include <string.h>

#include "smtp/ehlo.h"
#include "smtp/line.h"
#include "smtp/reply.h"
#include "smtp/reply_write.h"
#include "smtp/tx_fate.h"
#include "smtp/xtext.h"
#include "tests/fuzz/must.h"

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

/* Reads the replies of @in; the lines behind the first of each go to @set. Returns how many were complete. */
static unsigned read_replies(const char *in, size_t len, struct smtp_ehlo *set)
{
	struct smtp_line_reader r;
	struct smtp_line line;
	struct smtp_reply_line parts;
	struct smtp_reply reply = { 0 };
	char buf[1000];
	unsigned count = 0;
	smtp_line_begin(&r, (struct smtp_line_rules){ .max = sizeof buf }, buf);
	for (size_t at = 0, taken; smtp_line_read(&r, in + at, len - at, &taken, &line) == SMTP_LINE; at += taken) {
		int added = smtp_reply_add(&reply, line.text, line.flaws, &parts);
		if (added < 0)
			break;
		check_fate(&parts);
		MUST(reply.code >= 200 && reply.code < 600 && reply.len <= SMTP_REPLY_TEXT_MAX);
		MUST(reply.enhanced.status == 0 || reply.enhanced.status == reply.code / 100);
		if (reply.lines > 1)
			smtp_ehlo_add(set, parts.text);
		if (added == SMTP_REPLY_DONE) {
			memset(&reply, 0, sizeof reply);
			count++;
		}
	}
	return count;
}

static void check_set(const struct smtp_ehlo *set)
{
	struct smtp_ehlo again;
	uint8_t out[4096];
	struct wire_writer w = wire_writer(out, sizeof out);
	smtp_ehlo_clear(&again);
	smtp_ehlo_write(&w, "name.example", set);
	MUST(wire_writer_len(&w) > 0);
	MUST(read_replies((const char *)out, (size_t)wire_writer_len(&w), &again) == 1);
	MUST(smtp_ehlo_equal(set, &again) && set->has == again.has);
	smtp_ehlo_keep(&again, SMTP_CAP_ALL & ~SMTP_CAPS_HIDDEN);
	MUST(!(again.has & SMTP_CAPS_HIDDEN));
}

static void check_written(struct smtp_span text)
{
	static uint8_t out[1 << 20];
	struct wire_writer w = wire_writer(out, sizeof out);
	struct smtp_ehlo ignored;
	unsigned lines = 1;
	smtp_ehlo_clear(&ignored);
	for (size_t i = 0; i < text.len; i++)
		lines += text.at[i] == '\n';
	smtp_reply_write(&w, 550, "5.0.0", text);
	if (lines <= SMTP_REPLY_LINES_MAX && wire_writer_len(&w) > 0 && wire_writer_len(&w) <= SMTP_REPLY_TEXT_MAX)
		MUST(read_replies((const char *)out, (size_t)wire_writer_len(&w), &ignored) == 1);
}

static void check_xtext(struct smtp_span text)
{
	static uint8_t out[1 << 20], back[1 << 20];
	struct wire_writer w = wire_writer(out, sizeof out), b = wire_writer(back, sizeof back);
	smtp_xtext_read(&b, text);
	b = wire_writer(back, sizeof back);
	smtp_xtext_write(&w, text);
	if (wire_writer_len(&w) < 0)
		return;
	MUST(smtp_xtext_read(&b, (struct smtp_span){ (const char *)out, (size_t)wire_writer_len(&w) }) == 0);
	MUST(wire_writer_len(&b) == (ptrdiff_t)text.len && memcmp(back, text.at, text.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct smtp_ehlo set;
	struct smtp_span text = { (const char *)in, len };
	smtp_ehlo_clear(&set);
	read_replies(text.at, len, &set);
	check_set(&set);
	if (len > 0) {
		check_written(text);
		check_xtext(text);
	}
	return 0;
}
