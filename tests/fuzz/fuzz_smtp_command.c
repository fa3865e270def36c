/* fuzz_smtp_command.c: a command line: what is read lies in the line, and what strict reading takes lenient reading
 * takes, too. Parameters are read behind it. */
#include <string.h>

#include "smtp/params.h"
#include "smtp/tx_name.h"
#include "tests/fuzz/must.h"

static void must_lie_in(struct smtp_span part, const char *line, size_t len)
{
	MUST(part.len == 0 || (part.at >= line && part.at + part.len <= line + len));
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
	return own;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	const char *line = (const char *)in;
	enum smtp_own strict = read_line(line, len, 0);
	enum smtp_own utf8 = read_line(line, len, SMTP_PARSE_UTF8);
	enum smtp_own lenient = read_line(line, len, SMTP_PARSE_UTF8 | SMTP_PARSE_LENIENT);
	MUST(strict || !utf8);
	MUST(utf8 || !lenient);
	return 0;
}
