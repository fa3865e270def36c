/* test_hops.c: facts of counting Received fields. */
#include "smtpproxy/policy/hops.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const char message[] =
	"Received: from a\r\n\tby b\r\nRECEIVED: from c\r\nX-Received: no\r\nSubject: received:\r\n"
	"Receive: no\r\nreceived:x\r\n\r\nReceived: in the body\r\n";

START_TEST(fields_of_the_header_are_counted)
{
	struct hops h = { 0 };
	ck_assert_uint_eq(hops_follow(&h, message, strlen(message)), 3);
}
END_TEST

START_TEST(the_pieces_do_not_matter)
{
	for (size_t piece = 1; piece < 20; piece++) {
		struct hops h = { 0 };
		for (size_t at = 0; at < strlen(message); at += piece) {
			const size_t left = strlen(message) - at;
			hops_follow(&h, message + at, left < piece ? left : piece);
		}
		ck_assert_uint_eq(h.count, 3);
	}
}
END_TEST

START_TEST(a_message_without_a_header_has_none)
{
	struct hops h = { 0 };
	ck_assert_uint_eq(hops_follow(&h, "\r\nReceived: x\r\n", 15), 0);
}
END_TEST

UNIT(hops)
{
	const TTest *facts[] = {
		fields_of_the_header_are_counted,
		the_pieces_do_not_matter,
		a_message_without_a_header_has_none,
	};
	return suite_run("hops", facts, SUITE_LEN(facts));
}
