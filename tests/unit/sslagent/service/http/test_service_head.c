/* test_service_head.c: facts of the head of a request, whose time is limited. */
#include "tests/unit/sslagent/service/service_talk.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

START_TEST(a_head_is_under_way_from_the_first_byte_of_a_request_to_its_end)
{
	struct service s = started(CONF_HTTP);

	ck_assert_uint_eq(service_head_under_way(&s), 0);
	ask(&s, "G");
	uint32_t first = service_head_under_way(&s);
	ck_assert_uint_ne(first, 0);
	ask(&s, "ET / HTTP/1.1\r\nHost: a\r\n");
	ck_assert_uint_eq(service_head_under_way(&s), first);
	ask(&s, "\r\n");
	ck_assert_uint_eq(service_head_under_way(&s), 0);
	answer(&s, OK5);
	ck_assert_uint_eq(service_head_under_way(&s), 0);
	ask(&s, GET "P");
	uint32_t piped = service_head_under_way(&s);
	ask(&s, "OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab");
	ck_assert_uint_eq(service_head_under_way(&s), 0); /* a body has its time */
	ask(&s, "cG");
	ck_assert_uint_ne(service_head_under_way(&s), 0);
	ck_assert_uint_ne(service_head_under_way(&s), piped);
	service_destroy(&s);
}
END_TEST

START_TEST(empty_lines_in_front_of_a_request_count_for_it)
{
	struct service s = started(CONF_HTTP);

	ask(&s, "\r\n");
	uint32_t blank = service_head_under_way(&s);
	ck_assert_uint_ne(blank, 0);
	ask(&s, GET);
	ck_assert_uint_eq(service_head_under_way(&s), 0);
	answer(&s, OK5);
	ck_assert_uint_eq(service_head_under_way(&s), 0);
	ask(&s, "\r\n");
	ck_assert_uint_eq(service_head_under_way(&s), blank);
	service_destroy(&s);
}
END_TEST

/* The backend answers before the request has ended: what is between the two is no head. */
START_TEST(an_early_answer_leaves_no_head_under_way)
{
	struct service s = started(CONF_HTTP);

	ask(&s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab");
	answer(&s, OK5);
	ask(&s, "c");
	ck_assert_uint_eq(service_head_under_way(&s), 0);
	service_destroy(&s);
}
END_TEST

START_TEST(what_is_no_http_has_no_head)
{
	struct service http = started(CONF_HTTP), tcp = started(CONF_TCP);

	ask(&http, "\x01\x02");
	ck_assert_uint_eq(service_head_under_way(&http), 0);
	ask(&tcp, "G");
	ck_assert_uint_eq(service_head_under_way(&tcp), 0);
	service_destroy(&http);
	service_destroy(&tcp);
}
END_TEST

START_TEST(a_late_head_has_an_answer_unless_another_is_due_before)
{
	struct service s = started(CONF_HTTP);
	size_t len = 0;

	ask(&s, "GET /");
	const char *late = service_last_words(&s, SERVICE_HEAD_LATE, &len);
	ck_assert(late && len == strlen(late) && strstr(late, "408 Request Timeout"));
	ask(&s, " HTTP/1.1\r\nHost: a\r\n\r\nGET /");
	ck_assert_ptr_null(service_last_words(&s, SERVICE_HEAD_LATE, &len));
	service_destroy(&s);
}
END_TEST

START_TEST(where_no_request_began_nothing_has_to_be_answered)
{
	struct service s = started(CONF_HTTP);
	size_t len = 1;

	ask(&s, "\r\n");
	ck_assert_ptr_nonnull(service_last_words(&s, SERVICE_HEAD_LATE, &len));
	ck_assert_uint_eq(len, 0);
	service_destroy(&s);
}
END_TEST

static void add(TCase *t)
{
	service_blocks_init(&blocks);
	tcase_add_test(t, a_head_is_under_way_from_the_first_byte_of_a_request_to_its_end);
	tcase_add_test(t, empty_lines_in_front_of_a_request_count_for_it);
	tcase_add_test(t, an_early_answer_leaves_no_head_under_way);
	tcase_add_test(t, what_is_no_http_has_no_head);
	tcase_add_test(t, a_late_head_has_an_answer_unless_another_is_due_before);
	tcase_add_test(t, where_no_request_began_nothing_has_to_be_answered);
}

UNIT(service_head)
{
	return run_suite("service_head", add);
}
