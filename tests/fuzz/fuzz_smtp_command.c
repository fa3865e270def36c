/* fuzz_smtp_command.c: a command line: all parts that were read are in the line, and lenient reading accepts all
 * that strict reading accepts. The parameters after it are read, too. */
#include <string.h>

#include "smtp/params.h"
#include "smtp/tx_name.h"
#include "tests/fuzz/must.h"

static void must_lie_in(struct smtp_span part, const char *line, size_t len)
{
	MUST(part.len == 0 || (part.at >= line && part.at + part.len <= line + len));
}

static void check_question(struct smtp_span argument)
{
	struct smtp_tx_question question, again;
	uint8_t out[SMTP_TX_ID_MAX + SMTP_TX_ENTRY_MAX + 64];
	struct wire_writer w = wire_writer(out, sizeof out);
	if (smtp_tx_question_parse(argument, &question) < 0)
		return;
	smtp_tx_question_write(&w, &question);
	size_t head = sizeof "XCSSLTX " - 1, len = (size_t)wire_writer_len(&w);
	MUST(len > head + 2);
	MUST(smtp_tx_question_parse((struct smtp_span){ (char *)out + head, len - head - 2 }, &again) == 0);
	MUST(memcmp(question.entry, again.entry, strlen(again.entry) + 1) == 0 &&
		question.name.number == again.name.number);
}

static enum smtp_own read_line(const char *line, size_t len, unsigned flags)
{
	struct smtp_command c;
	struct smtp_params params;
	enum smtp_own own = smtp_command_parse((struct smtp_span){ line, len }, flags, &c);
	MUST(own < SMTP_OWN_COUNT && c.verb < SMTP_VERB_COUNT);
	must_lie_in(c.word, line, len);
	must_lie_in(c.argument, line, len);
	must_lie_in(c.path.mailbox, line, len);
	must_lie_in(c.path.local, line, len);
	must_lie_in(c.path.domain, line, len);
	must_lie_in(c.path.route, line, len);
	must_lie_in(c.params, line, len);
	if (own)
		return own;
	MUST(!c.path.utf8 || flags & SMTP_PARSE_UTF8);
	MUST(c.path.domain.len == 0 || c.path.domain.len <= SMTP_DOMAIN_MAX);
	if (smtp_params_read(c.verb, c.params, &params) == SMTP_OWN_NONE)
		for (unsigned i = 0; i < SMTP_PARAM_COUNT; i++)
			must_lie_in(params.value[i], line, len);
	if (c.verb == SMTP_VERB_XCSSLTX)
		check_question(c.argument);
	return own;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	const char *line = (const char *)in;
	enum smtp_own strict = read_line(line, len, 0);
	enum smtp_own utf8 = read_line(line, len, SMTP_PARSE_UTF8);
	enum smtp_own lenient = read_line(line, len, SMTP_PARSE_UTF8 | SMTP_PARSE_LENIENT);
	enum smtp_own judged = read_line(line, len, SMTP_PARSE_UTF8 | SMTP_PARSE_LENIENT | SMTP_PARSE_JUDGED);
	MUST(strict || !utf8);
	MUST(utf8 || !lenient);
	MUST(lenient || !judged);
	return 0;
}
