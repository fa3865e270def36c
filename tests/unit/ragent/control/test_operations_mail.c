/* test_operations_mail.c: facts of the question to smtpproxy's status socket, which the test itself serves. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "ragent/control/operations.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static struct {
	unsigned answers;
	char error[256], text[256];
	size_t len;
} got;

static struct conf_ragent self;
static struct ragent_shared shared = { .self = &self };
static struct operations o = { .shared = &shared };
static struct control_request *const request = (struct control_request *)&got; /* never looked at */
static struct sockaddr_storage address;
static int listening;

void control_answer_mail(struct control_request *r, const char *error, const char *text, size_t len)
{
	got.answers++;
	snprintf(got.error, sizeof got.error, "%s", error ? error : "");
	snprintf(got.text, sizeof got.text, "%.*s", text ? (int)len : 1, text ? text : "-");
	got.len = len;
}

void control_fail(struct control_request *r, enum control_failure kind, const char *reason, ...)
{
	ck_abort_msg("%s", reason);
}

static void setup(void)
{
	setup_worker();
	memset(&got, 0, sizeof got);
	o.main = w;
	listening = socket_listen(OVER_UNIX, &address);
	self.mail_status = ((struct sockaddr_un *)&address)->sun_path;
}

static void teardown(void)
{
	close(listening);
	teardown_worker();
}

/* Ask; the descriptor of smtpproxy's side. */
static int ask(void)
{
	int fd = -1;

	operations_mail(&o, request);
	wait_until((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	return fd;
}

static void answered(void)
{
	wait_until(got.answers > 0);
	turns(5);
	ck_assert_uint_eq(got.answers, 1);
}

START_TEST(the_whole_object_is_the_answer)
{
	int fd = ask();

	write_all(fd, "{\"a\"", 4);
	turns(5);
	ck_assert_uint_eq(got.answers, 0);
	write_all(fd, ": 1}", 4);
	close(fd);
	answered();
	ck_assert_str_eq(got.text, "{\"a\": 1}");
	ck_assert_str_eq(got.error, "");
}
END_TEST

START_TEST(without_the_key_there_is_none)
{
	self.mail_status = NULL;
	operations_mail(&o, request);
	answered();
	ck_assert_str_eq(got.text, "-");
	ck_assert_str_eq(got.error, "");
}
END_TEST

START_TEST(a_socket_that_nobody_serves_is_an_error)
{
	close(listening);
	listening = -1;
	operations_mail(&o, request);
	answered();
	ck_assert_str_eq(got.text, "-");
	ck_assert_str_ne(got.error, "");
}
END_TEST

START_TEST(silence_is_an_error_after_a_time)
{
	int fd = ask();

	answered();
	ck_assert_str_eq(got.error, "no answer in time");
	ck_assert_int_eq(read_to_end(fd), 0);
	close(fd);
}
END_TEST

START_TEST(an_answer_without_an_end_is_an_error)
{
	static const char piece[4096];
	int fd = ask();

	for (unsigned i = 0; i < 17 && got.answers == 0; i++) {
		write_all(fd, piece, sizeof piece);
		turns(2);
	}
	answered();
	ck_assert_str_eq(got.error, "its answer is too long");
	close(fd);
}
END_TEST

UNIT(operations_mail)
{
	const TTest *const facts[] = {
		the_whole_object_is_the_answer,
		without_the_key_there_is_none,
		a_socket_that_nobody_serves_is_an_error,
		silence_is_an_error_after_a_time,
		an_answer_without_an_end_is_an_error,
	};
	Suite *s = suite_create("operations_mail");
	TCase *all = tcase_create("operations_mail");
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 60);
	tcase_add_checked_fixture(all, setup, teardown);
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		tcase_add_test(all, facts[i]);
	suite_add_tcase(s, all);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
