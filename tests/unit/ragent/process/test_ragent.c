/* test_ragent.c: facts of the root object: what it opens at its start, what keeps it from starting, its end, and how
 * one process replaces another. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/loop/timer.h"
#include "root_object.h"
#include "tests/unit/unit.h"

/* And nothing of it is left. */
static void does_not_start(const char *listen, const char *keys, const char *cause)
{
	unsigned before;

	read_file(listen, keys);
	before = open_descriptors();
	ck_assert_ptr_null(ragent_create(&params, error, sizeof error));
	ck_assert_msg(strstr(error, cause) != NULL, "%s", error);
	ck_assert_uint_eq(open_descriptors(), before);
}

/* In a process of its own, because only root may do some of what the facts do. Its exit status says what went wrong. */
static int life(const char *listen, const char *keys, int serves)
{
	unsigned before;
	int result;

	read_file(listen, keys);
	before = open_descriptors();
	starts(listen, keys);
	ck_assert_int_eq(write(serves, "", 1), 1);
	result = ragent_run(ragent);
	ragent_destroy(ragent);
	if (open_descriptors() != before)
		return 2;
	return result == 0 ? 0 : 1;
}

/* Returns when it serves at @listen. */
static pid_t another(const char *listen, const char *keys)
{
	int serves[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(serves), 0);
	pid = fork();
	if (pid == 0)
		_exit(life(listen, keys, serves[1]));
	close(serves[1]);
	ck_assert_int_eq(read(serves[0], &byte, 1), 1);
	close(serves[0]);
	return pid;
}

/* It ends in order. */
static void has_ended(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : 256, 0);
}

static void answers(int fd)
{
	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* The start */

START_TEST(it_serves_until_sigterm_and_leaves_nothing_open)
{
	const char *keys = with_control(), *port = free_port();
	const pid_t pid = another(port, keys);

	answers(connect_to_text(port));
	answers(connect_to_path(control));
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	has_ended(pid);
	ck_assert_int_lt(connect_to_text(port), 0);
	ck_assert_int_lt(connect_to_path(control), 0);
}
END_TEST

START_TEST(each_worker_accepts_clients)
{
	struct sockaddr_storage at;
	int clients[64];

	starts("127.0.0.1:0", "workers: 2");
	ck_assert_uint_eq(ragent->running, 2);
	at = bound();
	for (size_t i = 0; i < FACTS_LEN(clients); i++)
		ck_assert_int_ge(clients[i] = connect_to((const struct sockaddr *)&at), 0);
	for (uint64_t limit_ms = now_ms() + WAIT_LIMIT_MS; admission_total(ragent->shared.admission) < 64;)
		ck_assert_uint_lt(now_ms(), limit_ms);
	for (size_t i = 0; i < FACTS_LEN(clients); i++)
		close(clients[i]);
	ends();
}
END_TEST

START_TEST(a_port_that_another_has_is_an_error_that_names_it)
{
	struct sockaddr_storage at;
	char text[ADDRESS_TEXT_MAX];
	const int taken = socket_listen(OVER_TCP4, &at);

	address_format((const struct sockaddr *)&at, text);
	does_not_start(text, with_control(), text);
	ck_assert_int_lt(connect_to_path(control), 0);
	close(taken);
}
END_TEST

START_TEST(a_control_socket_that_cannot_be_made_is_an_error_that_names_it)
{
	does_not_start("127.0.0.1:0", "control: /nonexistent/control.sock", "/nonexistent/control.sock");
}
END_TEST

START_TEST(an_unknown_user_is_an_error_that_names_it)
{
	if (geteuid() != 0)
		return;
	does_not_start("127.0.0.1:0", "workers: 1, user: no-such-user", "no-such-user");
}
END_TEST

START_TEST(a_second_one_cannot_have_the_control_socket_of_the_first)
{
	const char *keys = with_control(), *port = free_port();
	const pid_t first = another(port, keys);

	does_not_start("127.0.0.1:0", keys, control);
	answers(connect_to_path(control));
	ck_assert_int_eq(kill(first, SIGTERM), 0);
	has_ended(first);
}
END_TEST

/* Signals */

static struct timer *sighup_timer;

static void after_sighup(void *ctx)
{
	timer_stop(sighup_timer);
	ck_assert_int_eq(ragent->operations.state, OPERATIONS_RUNNING);
	raise(SIGTERM);
}

START_TEST(sighup_is_not_the_end)
{
	starts("127.0.0.1:0", with_control());
	raise(SIGHUP);
	sighup_timer = timer_start(ragent->main, after_sighup, NULL, 20, 0);
	ck_assert_int_eq(ragent_run(ragent), 0);
	ck_assert_int_eq(ragent->operations.state, OPERATIONS_STOPPING);
}
END_TEST

START_TEST(a_client_that_has_said_nothing_does_not_hold_up_the_end)
{
	struct sockaddr_storage at;
	const uint64_t began_ms = now_ms();
	char byte;
	int client;

	starts("127.0.0.1:0", "workers: 1");
	at = bound();
	client = connect_to((const struct sockaddr *)&at);
	for (; admission_total(ragent->shared.admission) == 0;)
		ck_assert_uint_lt(now_ms(), began_ms + WAIT_LIMIT_MS);
	ends();
	ck_assert_int_le(read(client, &byte, 1), 0);
	ck_assert_uint_lt(now_ms() - began_ms, RAGENT_STOP_LIMIT_MS);
	close(client);
}
END_TEST

/* Replacing */

START_TEST(without_a_control_socket_it_cannot_replace_another)
{
	params.start = RAGENT_REPLACES;
	does_not_start("127.0.0.1:0", "workers: 1", "no control socket");
}
END_TEST

START_TEST(where_nobody_runs_it_cannot_replace_another)
{
	params.start = RAGENT_REPLACES;
	does_not_start("127.0.0.1:0", with_control(), control);
	ck_assert_int_lt(connect_to_path(control), 0);
}
END_TEST

static pid_t replaced;
static int exited = -1;

static void when_it_has_ended(void *ctx)
{
	struct timer **timer = ctx;
	int status;

	if (waitpid(replaced, &status, WNOHANG) == 0)
		return;
	exited = WIFEXITED(status) ? WEXITSTATUS(status) : 256;
	timer_stop(*timer);
	ck_assert_uint_eq(admission_total(ragent->shared.admission), 1); /* the client of before */
	answers(connect_to_text(bound_text()));
	raise(SIGTERM);
}

START_TEST(the_new_process_serves_where_the_old_one_did_and_the_old_one_ends)
{
	const char *keys = with_control(), *port = free_port();
	struct timer *timer;
	int client;

	replaced = another(port, keys);
	client = connect_to_text(port);
	ck_assert_int_ge(client, 0);
	params.start = RAGENT_REPLACES;
	starts(port, keys);
	ck_assert_str_eq(bound_text(), port);
	timer = timer_start(ragent->main, when_it_has_ended, &timer, 5, 5);
	ck_assert_int_eq(ragent_run(ragent), 0);
	ck_assert_int_eq(exited, 0);
	close(client);
}
END_TEST

START_TEST(the_old_process_goes_on_where_the_new_one_cannot_listen_as_it_does)
{
	const char *keys = with_control(), *port = free_port();
	const pid_t old = another(port, keys);

	params.start = RAGENT_REPLACES;
	does_not_start("127.0.0.1:0", keys, port);
	answers(connect_to_text(port));
	answers(connect_to_path(control));
	ck_assert_int_eq(kill(old, SIGTERM), 0);
	has_ended(old);
}
END_TEST

UNIT(ragent)
{
	const TTest *const facts[] = {
		it_serves_until_sigterm_and_leaves_nothing_open,
		each_worker_accepts_clients,
		a_port_that_another_has_is_an_error_that_names_it,
		a_control_socket_that_cannot_be_made_is_an_error_that_names_it,
		an_unknown_user_is_an_error_that_names_it,
		a_second_one_cannot_have_the_control_socket_of_the_first,
		sighup_is_not_the_end,
		a_client_that_has_said_nothing_does_not_hold_up_the_end,
		without_a_control_socket_it_cannot_replace_another,
		where_nobody_runs_it_cannot_replace_another,
		the_new_process_serves_where_the_old_one_did_and_the_old_one_ends,
		the_old_process_goes_on_where_the_new_one_cannot_listen_as_it_does,
	};

	return root_object_suite_run("ragent", facts, FACTS_LEN(facts));
}
