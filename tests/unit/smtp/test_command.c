/* test_command.c: facts of command lines. */
#include "smtp/command.h"

#include <string.h>

#include "smtp/line.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtp_command command;

static enum smtp_own parse(const char *text, unsigned flags)
{
	return smtp_command_parse(smtp_span_of(text), flags, &command);
}

static const struct row {
	const char *text;
	enum smtp_verb verb;
	enum smtp_own strict, lenient;
} rows[] = {
	{ "EHLO example.com", SMTP_VERB_EHLO, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "ehlo [192.0.2.1]", SMTP_VERB_EHLO, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "EHLO", SMTP_VERB_EHLO, SMTP_OWN_BAD_NAME, SMTP_OWN_BAD_NAME },
	{ "HELO my,pc", SMTP_VERB_HELO, SMTP_OWN_BAD_NAME, SMTP_OWN_NONE },
	{ "HELO my pc", SMTP_VERB_HELO, SMTP_OWN_BAD_NAME, SMTP_OWN_NONE },
	{ "RCPT TO:< a@b. >", SMTP_VERB_RCPT, SMTP_OWN_BAD_RECIPIENT, SMTP_OWN_NONE },
	{ "MAIL FROM:<>", SMTP_VERB_MAIL, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "mail from:<a@b> size=1", SMTP_VERB_MAIL, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "MAIL FROM: <a@b>", SMTP_VERB_MAIL, SMTP_OWN_BAD_SENDER, SMTP_OWN_NONE },
	{ "MAIL FROM :<a@b>", SMTP_VERB_MAIL, SMTP_OWN_SYNTAX, SMTP_OWN_NONE },
	{ "MAIL FROM:a@b", SMTP_VERB_MAIL, SMTP_OWN_BAD_SENDER, SMTP_OWN_NONE },
	{ "MAIL FROM:<a@b>SIZE=1", SMTP_VERB_MAIL, SMTP_OWN_BAD_SENDER, SMTP_OWN_BAD_SENDER },
	{ "MAIL <a@b>", SMTP_VERB_MAIL, SMTP_OWN_SYNTAX, SMTP_OWN_SYNTAX },
	{ "MAIL", SMTP_VERB_MAIL, SMTP_OWN_SYNTAX, SMTP_OWN_SYNTAX },
	{ "MAIL TO:<a@b>", SMTP_VERB_MAIL, SMTP_OWN_SYNTAX, SMTP_OWN_SYNTAX },
	{ "RCPT TO:<a@b> NOTIFY=NEVER", SMTP_VERB_RCPT, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "RCPT TO:<postmaster>", SMTP_VERB_RCPT, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "RCPT TO:<>", SMTP_VERB_RCPT, SMTP_OWN_BAD_RECIPIENT, SMTP_OWN_BAD_RECIPIENT },
	{ "RCPT FROM:<a@b>", SMTP_VERB_RCPT, SMTP_OWN_SYNTAX, SMTP_OWN_SYNTAX },
	{ "DATA", SMTP_VERB_DATA, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "DATA ", SMTP_VERB_DATA, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "DATA x", SMTP_VERB_DATA, SMTP_OWN_NO_ARGUMENT, SMTP_OWN_NONE },
	{ "BDAT 0 LAST", SMTP_VERB_BDAT, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "BDAT 17 last", SMTP_VERB_BDAT, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "BDAT", SMTP_VERB_BDAT, SMTP_OWN_BAD_CHUNK, SMTP_OWN_BAD_CHUNK },
	{ "BDAT LAST", SMTP_VERB_BDAT, SMTP_OWN_BAD_CHUNK, SMTP_OWN_BAD_CHUNK },
	{ "BDAT -1", SMTP_VERB_BDAT, SMTP_OWN_BAD_CHUNK, SMTP_OWN_BAD_CHUNK },
	{ "BDAT 1 FIRST", SMTP_VERB_BDAT, SMTP_OWN_BAD_CHUNK, SMTP_OWN_BAD_CHUNK },
	{ "BDAT 1 LAST x", SMTP_VERB_BDAT, SMTP_OWN_BAD_CHUNK, SMTP_OWN_BAD_CHUNK },
	{ "BDAT 9223372036854775808", SMTP_VERB_BDAT, SMTP_OWN_BAD_CHUNK, SMTP_OWN_BAD_CHUNK },
	{ "STARTTLS", SMTP_VERB_STARTTLS, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "StartTLS", SMTP_VERB_STARTTLS, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "starttls ", SMTP_VERB_STARTTLS, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "STARTTLS foo", SMTP_VERB_STARTTLS, SMTP_OWN_NO_ARGUMENT, SMTP_OWN_NO_ARGUMENT },
	{ "STARTTLSfoo", SMTP_VERB_UNKNOWN, SMTP_OWN_UNKNOWN_COMMAND, SMTP_OWN_UNKNOWN_COMMAND },
	{ "AUTH PLAIN dGVzdA==", SMTP_VERB_AUTH, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "AUTH", SMTP_VERB_AUTH, SMTP_OWN_SYNTAX, SMTP_OWN_SYNTAX },
	{ "NOOP anything goes", SMTP_VERB_NOOP, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "VRFY", SMTP_VERB_VRFY, SMTP_OWN_SYNTAX, SMTP_OWN_NONE },
	{ "GET / HTTP/1.1", SMTP_VERB_GET, SMTP_OWN_NONE, SMTP_OWN_NONE },
	{ "", SMTP_VERB_UNKNOWN, SMTP_OWN_UNKNOWN_COMMAND, SMTP_OWN_UNKNOWN_COMMAND },
	{ "HTTP/1.1", SMTP_VERB_UNKNOWN, SMTP_OWN_UNKNOWN_COMMAND, SMTP_OWN_UNKNOWN_COMMAND },
};

START_TEST(each_command_is_read_or_has_its_refusal)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *row = &rows[i];
		ck_assert_msg(parse(row->text, 0) == row->strict, "%s: %s", row->text,
			smtp_own_reply(parse(row->text, 0))->name);
		ck_assert_msg(command.verb == row->verb, "%s: %d", row->text, (int)command.verb);
		ck_assert_msg(parse(row->text, SMTP_PARSE_LENIENT) == row->lenient, "lenient: %s", row->text);
	}
}
END_TEST

START_TEST(parts_of_a_command_are_where_they_were)
{
	parse("RCPT TO:<\"a b\"@c> ORCPT=rfc822;a+40b NOTIFY=NEVER ", 0);
	ck_assert(smtp_span_is(command.path.mailbox, "\"a b\"@c"));
	ck_assert(smtp_span_is(command.params, "ORCPT=rfc822;a+40b NOTIFY=NEVER"));
	parse("BDAT 9223372036854775807 LAST", 0);
	ck_assert_uint_eq(command.chunk_len, INT64_MAX);
	ck_assert_int_eq(command.chunk_is_last, 1);
	parse("BDAT 5", 0);
	ck_assert_int_eq(command.chunk_is_last, 0);
}
END_TEST

START_TEST(flaws_of_the_line_come_first)
{
	static const struct {
		unsigned flaws, flags;
		enum smtp_own own;
	} flawed[] = {
		{ SMTP_LINE_TOO_LONG | SMTP_LINE_NUL, 0, SMTP_OWN_LINE_TOO_LONG },
		{ SMTP_LINE_BARE_LF, 0, SMTP_OWN_BAD_LINE_END },
		{ SMTP_LINE_BARE_CR, 0, SMTP_OWN_BAD_LINE_END },
		{ SMTP_LINE_NUL, 0, SMTP_OWN_BAD_BYTES },
		{ SMTP_LINE_CONTROL, 0, SMTP_OWN_BAD_BYTES },
		{ SMTP_LINE_8BIT, 0, SMTP_OWN_BAD_BYTES },
		{ SMTP_LINE_8BIT, SMTP_PARSE_UTF8, SMTP_OWN_NONE },
		{ 0, 0, SMTP_OWN_NONE },
	};
	for (size_t i = 0; i < sizeof flawed / sizeof flawed[0]; i++) {
		enum smtp_own own =
			smtp_command_of_line(smtp_span_of("NOOP"), flawed[i].flaws, flawed[i].flags, &command);
		ck_assert_int_eq(own, flawed[i].own);
	}
}
END_TEST

START_TEST(the_commands_that_end_a_group_are_known)
{
	ck_assert_int_eq(smtp_verb_grouping(SMTP_VERB_STARTTLS), GROUP_LAST);
	ck_assert_int_eq(smtp_verb_grouping(SMTP_VERB_DATA), GROUP_LAST);
	ck_assert_int_eq(smtp_verb_grouping(SMTP_VERB_RCPT), GROUP_ANY);
	ck_assert_int_eq(smtp_verb_grouping(SMTP_VERB_BDAT), GROUP_ANY);
}
END_TEST

UNIT(command)
{
	const TTest *facts[] = {
		each_command_is_read_or_has_its_refusal,
		parts_of_a_command_are_where_they_were,
		flaws_of_the_line_come_first,
		the_commands_that_end_a_group_are_known,
	};
	return suite_run("command", facts, SUITE_LEN(facts));
}
