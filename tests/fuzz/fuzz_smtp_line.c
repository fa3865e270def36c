/* fuzz_smtp_line.c: lines are the same however their bytes are cut, and each is within its bounds. */
#include <string.h>

#include "smtp/line.h"
#include "tests/fuzz/smtp_cut.h"

#define MAX 24u

static void check(const struct smtp_line *line)
{
	MUST(line->wire.len <= MAX && line->text.len <= line->wire.len && line->text.at == line->wire.at);
	if (line->flaws & SMTP_LINE_TOO_LONG) {
		MUST(line->wire.len == MAX);
		return;
	}
	MUST(line->wire.at[line->wire.len - 1] == '\n');
	MUST(!memchr(line->text.at, '\n', line->text.len));
	MUST(!(line->flaws & SMTP_LINE_NUL) == !memchr(line->text.at, 0, line->text.len));
}

static uint64_t account(const uint8_t *in, size_t len, size_t step)
{
	struct smtp_line_reader r;
	struct smtp_line line;
	char buf[MAX];
	uint64_t sum = 0;
	smtp_line_begin(&r, MAX, buf);
	for (size_t at = 0, taken; at < len; at += taken) {
		size_t piece = len - at < step ? len - at : step;
		int event = smtp_line_read(&r, (const char *)in + at, piece, &taken, &line);
		MUST(taken <= piece && (event == SMTP_LINE || taken == piece));
		if (event != SMTP_LINE)
			continue;
		check(&line);
		sum = smtp_sum(sum, line.wire.at, line.wire.len);
		sum = smtp_sum(sum, &line.flaws, sizeof line.flaws);
		sum = smtp_sum(sum, &line.text.len, sizeof line.text.len);
	}
	return sum + (uint64_t)smtp_line_is_between(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	smtp_must_be_the_same(in, len, account);
	return 0;
}
