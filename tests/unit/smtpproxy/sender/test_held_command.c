/* test_held_command.c: facts of a command that waits. */
#include <string.h>

#include "smtpproxy/sender/held_command.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtp_client_event read_from(const char *line)
{
	return (struct smtp_client_event){ .kind = SMTP_CLIENT_COMMAND, .wire = smtp_span_of(line) };
}

START_TEST(a_kept_command_is_read_again_as_it_came)
{
	char line[] = "MAIL FROM:<a@example.org> SIZE=10\r\n";
	const struct smtp_client_event came = read_from(line);
	struct held_command h = { 0 };

	ck_assert_int_eq(held_command_keep(&h, &came), 0);
	memset(line, 'x', strlen(line)); /* the sender's buffer has other bytes now */
	const struct smtp_client_event e = held_command_event(&h, 0);
	ck_assert_int_eq(e.kind, SMTP_CLIENT_COMMAND);
	ck_assert_int_eq(e.command.verb, SMTP_VERB_MAIL);
	ck_assert_uint_eq(e.wire.len, strlen(line));
	ck_assert_mem_eq(e.command.path.mailbox.at, "a@example.org", e.command.path.mailbox.len);
	ck_assert_mem_eq(e.command.params.at, "SIZE=10", e.command.params.len);
	held_command_free(&h);
}
END_TEST

START_TEST(what_is_freed_waits_no_more)
{
	const struct smtp_client_event came = read_from("DATA\r\n");
	struct held_command h = { 0 };

	held_command_free(&h);
	ck_assert_int_eq(held_command_keep(&h, &came), 0);
	held_command_free(&h);
	ck_assert_ptr_null(h.text);
	ck_assert_uint_eq(h.len, 0);
	held_command_free(&h);
}
END_TEST

UNIT(held_command)
{
	const TTest *const facts[] = { a_kept_command_is_read_again_as_it_came, what_is_freed_waits_no_more };

	return suite_run("held command", facts, SUITE_LEN(facts));
}
