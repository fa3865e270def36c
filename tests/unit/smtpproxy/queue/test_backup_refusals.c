/* test_backup_refusals.c: servers that answer and refuse: what the log tells of them, and how often. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/log.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtpproxy/queue/queue_servers.h"
#include "tests/unit/unit.h"

#define NOAUTH  "NOAUTH Authentication required."
#define NOPERM  "NOPERM this user has no permissions to run the 'fcall' command"
#define UNKNOWN "ERR unknown command 'AUTH', with args beginning with: 'gateway' 's3cret-word' "

static char log_path[] = "/tmp/cssl-refusals-XXXXXX", told[16384];

static void begin_with_a_log(void)
{
	begin();
	close(mkstemp(log_path));
	ck_assert_int_eq(log_open("test", NULL, LOG_TEXT, LOG_DEBUG, log_path), 0);
}

static void end_with_a_log(void)
{
	unlink(log_path);
}

/* How often the log has it. */
static unsigned times(const char *what)
{
	FILE *f = fopen(log_path, "r");
	unsigned n = 0;

	told[fread(told, 1, sizeof told - 1, f)] = '\0';
	fclose(f);
	for (const char *at = told; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void refuses_login(struct backup *s, const char *answer)
{
	s->paths[0].retry_ms = 0;
	backup_tick(s, now_ms);
	link_ops->on_refused(&s->paths[0].link, answer);
}

static void goes_away(struct backup *s)
{
	backup_give_up(s, "the test says so");
	s->active = NULL;
	s->paths[0].link.state = REDIS_LINK_IDLE;
}

START_TEST(answer_to_auth_that_may_have_the_password_is_not_told)
{
	goes_away(b);
	refuses_login(b, UNKNOWN);
	ck_assert_uint_eq(times("backup refuses"), 1);
	ck_assert_uint_eq(times("s3cret"), 0);
	ck_assert_uint_eq(times("cause=\"it does not take AUTH\""), 1);
	refuses_login(b, "ERR AUTH failed for 's3cret-word'");
	ck_assert_uint_eq(times("s3cret"), 0);
	refuses_login(b, "ERR AUTH <password> called without any password configured for the default user.");
	ck_assert_uint_eq(times("cause=\"it has no password\""), 1);
}
END_TEST

START_TEST(server_with_too_many_clients_is_told_as_that)
{
	goes_away(b);
	refuses_login(b, "ERR max number of clients reached");
	ck_assert_uint_eq(times("cause=\"it has as many clients as it takes\""), 1);
}
END_TEST

/* b is filled, and a was complete last. */
static void only_b_is_filled(void)
{
	goes_away(a);
	memcpy(q->shared.members[0], RUN_A, sizeof RUN_A);
	b->state = BACKUP_FILLING;
	b->fill_next = NULL;
	for (unsigned n = 0; n < 20; n++)
		queue_join_filled(q);
	ck_assert_int_eq(b->state, BACKUP_FILLING);
}

START_TEST(lost_member_is_told_once_although_another_server_refused)
{
	backup_refused(b, REFUSAL_AT_CALL, NOPERM);
	only_b_is_filled();
	ck_assert_uint_eq(times("backup not used alone"), 1);
	ck_assert_uint_eq(times("an operator has to order the takeover"), 1);
}
END_TEST

START_TEST(takeover_is_not_told_while_the_member_refuses)
{
	backup_refused(a, REFUSAL_AT_LOGIN, NOAUTH);
	only_b_is_filled();
	ck_assert_uint_eq(times("takeover"), 0);
	now_ms += 60000;
	queue_join_filled(q);
	ck_assert_uint_eq(times("backup not used alone"), 1);
}
END_TEST

/* Behind absent_ms. */
static void looks_for_its_servers(void)
{
	q->conf.absent_ms = 1500;
	q->conf.role = QUEUE_OWNER;
	q->state = QUEUE_LOOKING;
	q->lease = (struct lease){ 0 };
	now_ms += 60000;
	goes_away(a);
	goes_away(b);
}

START_TEST(server_that_refuses_is_told_as_lost_when_it_is)
{
	looks_for_its_servers();
	backup_refused(a, REFUSAL_AT_LOGIN, NOAUTH);
	backup_refused(b, REFUSAL_AT_LOGIN, NOAUTH);
	queue_recover(q);
	queue_recover(q);
	ck_assert_uint_eq(times("queue waits for a server that refuses"), 2);
	ck_assert_uint_eq(times("takeover"), 0);
	now_ms += 60000;
	backup_refused(b, REFUSAL_AT_LOGIN, NOAUTH);
	queue_recover(q);
	queue_recover(q);
	ck_assert_uint_eq(times("queue waits for a backup backup=0"), 1);
	ck_assert_uint_eq(times("queue waits for a backup"), 1);
	ck_assert_uint_eq(times("queue waits for a server that refuses"), 2);
}
END_TEST

static void only_b_is_told_as_silent(void)
{
	queue_recover(q);
	ck_assert_uint_eq(times("queue waits for a backup backup=0"), 0);
	ck_assert_uint_eq(times("queue waits for a backup backup=1"), 1);
}

START_TEST(server_that_loads_for_long_is_not_told_as_silent)
{
	looks_for_its_servers();
	backup_refused(a, REFUSAL_AT_CALL, "LOADING Redis is loading the dataset in memory");
	only_b_is_told_as_silent();
	ck_assert_uint_eq(times("cause=\"it reads its file\" remedy=wait"), 1);
}
END_TEST

START_TEST(server_that_has_just_let_the_gateway_in_is_not_told_as_silent)
{
	looks_for_its_servers();
	backup_refused(a, REFUSAL_AT_LOGIN, NOAUTH);
	backup_let_in(a, REFUSAL_AT_LOGIN);
	a->active = &a->paths[0];
	only_b_is_told_as_silent();
}
END_TEST

START_TEST(backup_that_is_given_up_is_told_although_another_one_refuses)
{
	backup_refused(a, REFUSAL_AT_LOGIN, NOAUTH);
	backup_give_up(b, "the server restarted");
	ck_assert_uint_eq(times("warning test: backup given up"), 1);
	connected(b, RUN_B);
	b->state = BACKUP_CLAIMED;
	backup_give_up(b, backup_begins_again);
	b->state = BACKUP_CLAIMED;
	backup_call_failed(b, NOPERM);
	ck_assert_uint_eq(times("warning test: backup given up"), 1);
	ck_assert_uint_eq(times("warning test: backup refuses"), 2);
}
END_TEST

static const char *const passing[] = {
	"OOM command not allowed when used memory > 'maxmemory'.",
	"STALE 1",
};

START_TEST(server_that_is_full_does_not_refuse)
{
	for (size_t n = 0; n < sizeof passing / sizeof passing[0]; n++) {
		connected(b, RUN_B);
		b->state = BACKUP_CLAIMED;
		backup_call_failed(b, passing[n]);
		ck_assert_int_eq(backup_refuses(b), 0);
		ck_assert_uint_eq(times("backup refused a call"), n + 1);
	}
	connected(b, RUN_B);
	b->state = BACKUP_CLAIMED;
	backup_call_failed(b, NOPERM);
	ck_assert_int_eq(backup_refuses(b), 1);
}
END_TEST

UNIT(backup_refusals)
{
	const TTest *facts[] = {
		answer_to_auth_that_may_have_the_password_is_not_told,
		server_with_too_many_clients_is_told_as_that,
		server_that_loads_for_long_is_not_told_as_silent,
		server_that_has_just_let_the_gateway_in_is_not_told_as_silent,
		lost_member_is_told_once_although_another_server_refused,
		takeover_is_not_told_while_the_member_refuses,
		server_that_refuses_is_told_as_lost_when_it_is,
		backup_that_is_given_up_is_told_although_another_one_refuses,
		server_that_is_full_does_not_refuse,
	};
	TCase *all = tcase_create("backup_refusals");

	tcase_add_checked_fixture(all, begin_with_a_log, end_with_a_log);
	return suite_run_case("backup_refusals", all, facts, SUITE_LEN(facts));
}
