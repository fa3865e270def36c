/* test_operations_mail.c: facts of the question to smtpproxy's status socket, which the test itself serves. */
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/net/fixture.h"
#include "tests/unit/ragent/control/operations/operations_doubles.h"
#include "tests/unit/unit.h"

static struct conf_ragent self;
static struct ragent_shared shared = { .self = &self };
static struct operations o = { .shared = &shared };
static struct sockaddr_storage address;
static int listening;

static void setup(void)
{
	setup_worker();
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

	operations_mail(&o, &(const struct control_input){ 0 }, request);
	wait_until((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	return fd;
}

static void told_once(void)
{
	wait_until(got.answers > 0);
	turns(5);
	answered_with(200);
	ck_assert_uint_eq(told_size(""), 1);
}

START_TEST(the_whole_object_is_the_answer)
{
	int fd = ask();

	write_all(fd, "{\"a\"", 4);
	turns(5);
	ck_assert_uint_eq(got.answers, 0);
	write_all(fd, ": 1}", 4);
	close(fd);
	told_once();
	ck_assert_uint_eq(told_size("smtpproxy"), 1);
	ck_assert_uint_eq(told_integer("smtpproxy.a"), 1);
}
END_TEST

START_TEST(an_answer_that_is_no_object_is_an_error)
{
	int fd = ask();

	write_all(fd, "[1, 2]", 6);
	close(fd);
	told_once();
	ck_assert_str_eq(told_text("smtpproxy.error"), "its answer is no JSON object");
}
END_TEST

START_TEST(without_the_key_there_is_none)
{
	self.mail_status = NULL;
	operations_mail(&o, &(const struct control_input){ 0 }, request);
	told_once();
	ck_assert(json_is_null(told("smtpproxy")));
}
END_TEST

START_TEST(a_socket_that_nobody_serves_is_an_error)
{
	close(listening);
	listening = -1;
	operations_mail(&o, &(const struct control_input){ 0 }, request);
	told_once();
	ck_assert_str_ne(told_text("smtpproxy.error"), "");
}
END_TEST

START_TEST(silence_is_an_error_after_a_time)
{
	int fd = ask();

	told_once();
	ck_assert_str_eq(told_text("smtpproxy.error"), "no answer in time");
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
	told_once();
	ck_assert_str_eq(told_text("smtpproxy.error"), "its answer is too long");
	close(fd);
}
END_TEST

UNIT(operations_mail)
{
	const TTest *const facts[] = {
		the_whole_object_is_the_answer,
		an_answer_that_is_no_object_is_an_error,
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
