/* test_refusals.c: servers that answer and refuse: what the log tells of them, and how often. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/report/log.h"
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

static void refuses_at(struct backup *s, enum refusal_at at, const char *answer)
{
	refusal_told(&s->refusal, at, answer, REFUSAL_TEXT_PLAIN, now_ms);
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

/* In TLS 1.3, it does so behind the handshake. */
START_TEST(server_that_wants_a_certificate_is_told_once)
{
	goes_away(b);
	for (unsigned n = 0; n < 3; n++) {
		b->paths[0].retry_ms = 0;
		backup_tick(b, now_ms);
		b->paths[0].link.state = REDIS_LINK_READY;
		link_ops->on_ready(&b->paths[0].link);
		link_ops->on_refused(&b->paths[0].link, "TLS tlsv13 alert certificate required");
		goes_away(b);
	}
	ck_assert_uint_eq(times("warning test: backup refuses"), 1);
	ck_assert_uint_eq(times("cause=\"no TLS with it comes about\""), 3);
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
	memcpy(q->shared.marker.members[0], RUN_A, sizeof RUN_A);
	b->state = BACKUP_FILLING;
	b->fill_next = NULL;
	for (unsigned n = 0; n < 20; n++)
		joining_join_filled(q);
	ck_assert_int_eq(b->state, BACKUP_FILLING);
}

START_TEST(lost_member_is_told_once_although_another_server_refused)
{
	refuses_at(b, REFUSAL_AT_CALL, NOPERM);
	only_b_is_filled();
	ck_assert_uint_eq(times("backup not used alone"), 1);
	ck_assert_uint_eq(times("an operator has to order the takeover"), 1);
}
END_TEST

START_TEST(takeover_is_not_told_while_the_member_refuses)
{
	refuses_at(a, REFUSAL_AT_LOGIN, NOAUTH);
	only_b_is_filled();
	ck_assert_uint_eq(times("takeover"), 0);
	now_ms += 60000;
	joining_join_filled(q);
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
	refuses_at(a, REFUSAL_AT_LOGIN, NOAUTH);
	refuses_at(b, REFUSAL_AT_LOGIN, NOAUTH);
	looking_step(q);
	looking_step(q);
	ck_assert_uint_eq(times("queue waits for a server that refuses"), 2);
	ck_assert_uint_eq(times("takeover"), 0);
	now_ms += 60000;
	refuses_at(b, REFUSAL_AT_LOGIN, NOAUTH);
	looking_step(q);
	looking_step(q);
	ck_assert_uint_eq(times("queue waits for a backup backup=0"), 1);
	ck_assert_uint_eq(times("queue waits for a backup"), 1);
	ck_assert_uint_eq(times("queue waits for a server that refuses"), 2);
}
END_TEST

static void only_b_is_told_as_silent(void)
{
	looking_step(q);
	ck_assert_uint_eq(times("queue waits for a backup backup=0"), 0);
	ck_assert_uint_eq(times("queue waits for a backup backup=1"), 1);
}

START_TEST(server_that_loads_for_long_is_not_told_as_silent)
{
	looks_for_its_servers();
	refuses_at(a, REFUSAL_AT_CALL, "LOADING Redis is loading the dataset in memory");
	only_b_is_told_as_silent();
	ck_assert_uint_eq(times("cause=\"it reads its file\" remedy=wait"), 1);
}
END_TEST

START_TEST(server_that_has_just_let_the_gateway_in_is_not_told_as_silent)
{
	looks_for_its_servers();
	refuses_at(a, REFUSAL_AT_LOGIN, NOAUTH);
	refusal_lifted(&a->refusal, REFUSAL_AT_LOGIN);
	a->active = &a->paths[0];
	only_b_is_told_as_silent();
}
END_TEST

START_TEST(backup_that_is_given_up_is_told_although_another_one_refuses)
{
	refuses_at(a, REFUSAL_AT_LOGIN, NOAUTH);
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

/* INFO, of a server that has no owner. */
static void looks_and_hears(struct backup *s, const char *info)
{
	redisReply said = { .type = REDIS_REPLY_STRING, .str = (char *)info, .len = strlen(info) };
	redisReply one = { .type = REDIS_REPLY_NIL }, *library[] = { &one };
	const redisReply functions = { .type = REDIS_REPLY_ARRAY, .elements = 1, .element = library };
	const redisReply owner = { .type = REDIS_REPLY_ARRAY };

	connected(s, RUN_B);
	s->state = BACKUP_AWAY;
	s->looks = 3;
	backup_look_answered(s, ASKED_INFO, &said);
	backup_look_answered(s, ASKED_LIBRARY, &functions);
	backup_look_answered(s, ASKED_OWNER, &owner);
}

static const struct {
	const char *line, *cause;
} unfit_servers[] = {
	{ "maxmemory_policy:allkeys-lru", "it may evict messages" },
	{ "maxmemory_policy:allkeys-random", "it may evict messages" },
	{ "role:slave", "it is a replica" },
	{ "cluster_enabled:1", "it is a part of a Redis Cluster" },
	{ "maxmemory_policy:volatile-lru", NULL },
	{ "maxmemory_policy:noeviction\r\nrole:master\r\ncluster_enabled:0", NULL },
};

START_TEST(server_that_may_lose_messages_is_not_used)
{
	char info[256], cause[128];

	for (size_t n = 0; n < SUITE_LEN(unfit_servers); n++) {
		snprintf(info, sizeof info, "run_id:%s\r\n%s\r\n", RUN_B, unfit_servers[n].line);
		goes_away(b);
		b->refusal.at_ms = 0;
		b->refusal.at = REFUSAL_NONE;
		looks_and_hears(b, info);
		ck_assert_int_eq(backup_refuses(b), unfit_servers[n].cause != NULL);
		ck_assert_int_eq(b->state == BACKUP_AWAY, unfit_servers[n].cause != NULL);
		snprintf(cause, sizeof cause, "cause=\"%s\"", unfit_servers[n].cause ? unfit_servers[n].cause : "");
		ck_assert(!unfit_servers[n].cause || times(cause) > 0);
	}
}
END_TEST

START_TEST(backup_whose_server_begins_to_evict_is_given_up)
{
	redisReply evicts = { .type = REDIS_REPLY_STRING, .str = (char *)"maxmemory_policy:allkeys-lfu\r\n" };

	backup_look_answered(a, ASKED_CHECK, &evicts);
	ck_assert_int_eq(a->state, BACKUP_AWAY);
	ck_assert_uint_eq(times("backup given up"), 1);
	ck_assert_uint_eq(times("answer=maxmemory_policy:allkeys-lfu"), 1);
}
END_TEST

static void says_that_it_saves(const char *when)
{
	redisReply name = { .type = REDIS_REPLY_STRING, .str = (char *)"save" },
		   value = { .type = REDIS_REPLY_STRING, .str = (char *)when, .len = strlen(when) };
	redisReply *both[] = { &name, &value };
	const redisReply pair = { .type = REDIS_REPLY_ARRAY, .elements = 2, .element = both };

	backup_look_answered(b, ASKED_SAVE, &pair);
}

START_TEST(server_that_saves_is_told_once)
{
	says_that_it_saves("");
	ck_assert_uint_eq(times("backup saves snapshots"), 0);
	says_that_it_saves("3600 1");
	says_that_it_saves("3600 1");
	ck_assert_uint_eq(times("backup saves snapshots"), 1);
}
END_TEST

/* Its user may not read the configuration. */
START_TEST(server_that_has_saved_is_told)
{
	const redisReply denied = { .type = REDIS_REPLY_ERROR, .str = (char *)NOPERM };
	redisReply info = { .type = REDIS_REPLY_STRING, .str = (char *)"rdb_saves:0\r\n" };

	backup_look_answered(b, ASKED_CHECK, &info);
	backup_look_answered(b, ASKED_SAVE, &denied);
	ck_assert_uint_eq(times("backup saves snapshots"), 0);
	info.str = (char *)"rdb_saves:2\r\n";
	backup_look_answered(b, ASKED_CHECK, &info);
	backup_look_answered(b, ASKED_SAVE, &denied);
	ck_assert_uint_eq(times("backup saves snapshots"), 1);
}
END_TEST

START_TEST(call_that_a_server_refuses_for_its_state_is_told_with_the_remedy)
{
	connected(b, RUN_B);
	b->state = BACKUP_CLAIMED;
	backup_call_failed(b, "READONLY You can't write against a read only replica.");
	ck_assert_uint_eq(times("cause=\"it is a replica\""), 1);
	connected(b, RUN_B);
	b->state = BACKUP_CLAIMED;
	backup_call_failed(b, "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to");
	ck_assert_uint_eq(times("cause=\"it cannot write its snapshot, and takes no changes\""), 1);
}
END_TEST

/* By whom the server was left behind, and under which version of its marker. */
static const struct {
	const char *left;
	uint64_t version;
	const char *marked;
	int is_refused;
} left_behind[] = {
	{ "", 0, "4", 1 },
	{ RUN_A, 4, "4", 1 },
	{ RUN_B, 4, "4", 0 },
	{ RUN_B, 4, "5", 1 },
};

START_TEST(server_of_a_gateway_with_another_key_is_used_only_if_the_markers_leave_it_behind)
{
	struct marker *read = &q->recovery.markers[0];

	memcpy(read->run_id, RUN_A, sizeof RUN_A);
	snprintf(read->left[1].run_id, sizeof read->left[1].run_id, "%s", left_behind[_i].left);
	read->left[1].version = left_behind[_i].version;
	q->shared.epoch = 1003; /* of an order */
	goes_away(b);
	connected(b, RUN_B);
	shows_another_key(b, RUN_B, left_behind[_i].marked);
	ck_assert_int_eq(b->refusal.at == REFUSAL_AT_LOOK, left_behind[_i].is_refused);
	ck_assert_int_eq(b->state == BACKUP_AWAY, left_behind[_i].is_refused);
}
END_TEST

START_TEST(server_that_was_replaced_is_used_with_another_key)
{
	const struct marker_left l = { .version = 4, .run_id = RUN_B };

	marker_note_replaced(q->shared.marker.replaced, &l);
	goes_away(b);
	connected(b, RUN_B);
	shows_another_key(b, RUN_B, "4");
	ck_assert_int_eq(b->refusal.at, REFUSAL_NONE);
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

UNIT(refusals)
{
	const TTest *facts[] = {
		answer_to_auth_that_may_have_the_password_is_not_told,
		server_with_too_many_clients_is_told_as_that,
		server_that_wants_a_certificate_is_told_once,
		server_that_loads_for_long_is_not_told_as_silent,
		server_that_has_just_let_the_gateway_in_is_not_told_as_silent,
		lost_member_is_told_once_although_another_server_refused,
		takeover_is_not_told_while_the_member_refuses,
		server_that_refuses_is_told_as_lost_when_it_is,
		backup_that_is_given_up_is_told_although_another_one_refuses,
		server_that_is_full_does_not_refuse,
		server_that_may_lose_messages_is_not_used,
		backup_whose_server_begins_to_evict_is_given_up,
		server_that_saves_is_told_once,
		server_that_has_saved_is_told,
		call_that_a_server_refuses_for_its_state_is_told_with_the_remedy,
		server_that_was_replaced_is_used_with_another_key,
	};
	TCase *all = tcase_create("refusals");

	tcase_add_checked_fixture(all, begin_with_a_log, end_with_a_log);
	tcase_add_loop_test(all, server_of_a_gateway_with_another_key_is_used_only_if_the_markers_leave_it_behind, 0,
		SUITE_LEN(left_behind));
	return suite_run_case("refusals", all, facts, SUITE_LEN(facts));
}
