/* test_cluster.c: agents of one process over real sockets. */
#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/report/log.h"
#include "proto/error.h"
#include "tests/unit/sslagent/cluster/cluster_fixture.h"
#include "tests/unit/sslagent/revoke_what.h"
#include "tests/unit/unit.h"

static struct test_cluster t;

static void stop_all(void)
{
	cluster_stop_all(&t);
}

static void three_over_unix(void)
{
	cluster_start_all(&t, 3, LINKS_UNIX);
}

static void three_over_tcp(void)
{
	cluster_start_all(&t, 3, LINKS_TCP);
}

START_TEST(a_session_made_on_one_agent_is_found_on_all)
{
	uint8_t id[SESSION_ID_LEN];

	for (unsigned from = 0; from < 3; from++) {
		ck_assert_int_eq(cluster_share(&t, from, (struct session_wish){ 0 }, TOLD, id), 0);
		for (unsigned at = 0; at < 3; at++)
			cluster_wait_found(&t, at, id);
	}
}
END_TEST

START_TEST(a_found_session_is_what_was_shared)
{
	struct session_wish wish = { .server_name = "shop.example", .client = "192.0.2.7", .remaining_s = 1000 };
	struct session_source *source = t.agents[1].source;
	uint8_t id[SESSION_ID_LEN];
	struct sess_obj obj;

	cluster_share(&t, 0, wish, TOLD, id);
	cluster_wait_found(&t, 1, id);
	ck_assert_int_eq(source->find(source, id, SESSION_ID_LEN, &obj), SESSION_FOUND);
	ck_assert_str_eq(obj.facts.origin, "a");
	ck_assert_str_eq(obj.facts.server_name, "shop.example");
	ck_assert_uint_eq(obj.facts.client.len, 4);
	ck_assert_uint_eq(obj.session_len, 135);
	ck_assert_uint_le(obj.session_remaining_s, 1000);
	ck_assert_uint_ge(obj.session_remaining_s, 995);
	ck_assert_uint_le(obj.facts.family_age_s, 5);
	sess_obj_destroy(&obj);
}
END_TEST

START_TEST(a_thousand_sessions_reach_all)
{
	uint8_t ids[1000][SESSION_ID_LEN];

	for (unsigned i = 0; i < 1000; i++)
		ck_assert_int_eq(cluster_share(&t, i % 3, (struct session_wish){ 0 }, TOLD, ids[i]), 0);
	for (unsigned i = 0; i < 1000; i++)
		for (unsigned at = 0; at < 3; at++)
			cluster_wait_found(&t, at, ids[i]);
}
END_TEST

START_TEST(what_was_not_told_is_pulled_from_its_origin)
{
	uint8_t id[SESSION_ID_LEN];
	int64_t ms;

	cluster_share(&t, 0, (struct session_wish){ 0 }, UNTOLD, id);
	ck_assert_int_eq(cluster_find(&t, 2, id), SESSION_ELSEWHERE);
	ck_assert_int_eq(cluster_pull(&t, 2, id, &ms), SESSION_FOUND);
	ck_assert_int_lt(ms, 500);
	ck_assert_int_eq(cluster_find(&t, 2, id), SESSION_FOUND);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ELSEWHERE);
}
END_TEST

START_TEST(a_session_its_origin_has_not_is_absent_and_remembered_to_be)
{
	uint8_t id[SESSION_ID_LEN];
	int64_t ms;

	t.agents[0].source->make_id(t.agents[0].source, id);
	ck_assert_int_eq(cluster_find(&t, 0, id), SESSION_ABSENT);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ELSEWHERE);
	ck_assert_int_eq(cluster_pull(&t, 1, id, &ms), SESSION_ABSENT);
	ck_assert_int_lt(ms, 500);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ABSENT);
}
END_TEST

START_TEST(an_id_that_is_not_ours_is_absent)
{
	uint8_t id[SESSION_ID_LEN];

	randombytes_buf(id, sizeof(id));
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ABSENT);
	ck_assert_int_eq(t.agents[1].source->find(t.agents[1].source, id, 5, NULL), SESSION_ABSENT);
}
END_TEST

static int is_absent(void *ctx)
{
	return cluster_find(&t, 1, ctx) == SESSION_ABSENT;
}

START_TEST(a_dead_origin_is_not_waited_for)
{
	uint8_t id[SESSION_ID_LEN];

	cluster_share(&t, 0, (struct session_wish){ 0 }, UNTOLD, id);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_ELSEWHERE);
	cluster_stop(&t, 0);
	wait_until(is_absent, id, "the origin to be taken for dead");
}
END_TEST

START_TEST(a_session_too_large_for_a_datagram_is_found_on_all)
{
	uint8_t id[SESSION_ID_LEN];

	ck_assert_int_eq(cluster_share(&t, 0, (struct session_wish){ .der_len = 20030 }, TOLD, id), 0);
	cluster_wait_found(&t, 1, id);
	cluster_wait_found(&t, 2, id);
	ck_assert_uint_eq(cluster_counted(&t, 0, COUNT_OBJECTS_TOO_LARGE), 1);
}
END_TEST

START_TEST(a_session_above_the_limit_is_refused)
{
	struct made_session *made = malloc(sizeof(*made));
	struct session_source *source = t.agents[0].source;
	uint8_t id[SESSION_ID_LEN];

	source->make_id(source, id);
	session_make(made, &(struct session_wish){ .id = id });
	made->obj.session_len = SESSION_DER_MAX + 1;
	ck_assert_int_lt(source->share(source, NULL, &made->obj), 0);
	ck_assert_int_eq(cluster_find(&t, 0, id), SESSION_ABSENT);
	free(made);
}
END_TEST

/* Three sessions of which the first two share what is revoked. */
static void check_revocation(const revoke_what *what, const struct session_wish *hit, const struct session_wish *spared)
{
	uint8_t ids[3][SESSION_ID_LEN];
	struct test_revocation r;

	cluster_share(&t, 0, *hit, TOLD, ids[0]);
	cluster_share(&t, 1, *hit, TOLD, ids[1]);
	cluster_share(&t, 2, *spared, TOLD, ids[2]);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned at = 0; at < 3; at++)
			cluster_wait_found(&t, at, ids[i]);
	r = cluster_revoke_and_wait(&t, 1, what);
	ck_assert_uint_eq(r.sessions, 2);
	ck_assert_uint_eq(r.confirmed, 3);
	ck_assert_uint_eq(r.unconfirmed, 0);
	for (unsigned at = 0; at < 3; at++) {
		ck_assert_int_ne(cluster_find(&t, at, ids[0]), SESSION_FOUND);
		ck_assert_int_ne(cluster_find(&t, at, ids[1]), SESSION_FOUND);
		ck_assert_int_eq(cluster_find(&t, at, ids[2]), SESSION_FOUND);
	}
	ck_assert_int_eq(cluster_find(&t, 0, ids[0]), SESSION_ABSENT);
	ck_assert_int_eq(cluster_pull(&t, 2, ids[0], NULL), SESSION_ABSENT);
}

START_TEST(a_revoked_family_is_gone_everywhere)
{
	uint8_t family[FAMILY_ID_LEN];
	struct session_wish hit = { .family_id = family }, spared = { 0 };

	randombytes_buf(family, sizeof(family));
	const revoke_what what = REVOKE(REVOKE_FAMILY, .family_id = bytes_of(family, FAMILY_ID_LEN));
	check_revocation(&what, &hit, &spared);
}
END_TEST

START_TEST(a_revoked_server_name_is_gone_everywhere)
{
	revoke_what what = REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"Shop.example");
	struct session_wish hit = { .server_name = "shop.example" }, spared = { .server_name = "blog.example" };

	check_revocation(&what, &hit, &spared);
}
END_TEST

START_TEST(a_revoked_client_address_is_gone_everywhere)
{
	const uint8_t address[] = { 192, 0, 2, 7 };
	revoke_what what = REVOKE(REVOKE_CLIENT_ADDRESS, .client_address = bytes_of(address, 4));
	struct session_wish hit = { .client = "192.0.2.7" }, spared = { .client = "192.0.2.8" };

	check_revocation(&what, &hit, &spared);
}
END_TEST

#define CERTIFICATE "a client's certificate"

/* By each criterion, and by two at once: what meets only one of them stays. */
START_TEST(what_a_filter_lets_through_is_gone_everywhere)
{
	const uint8_t address[] = { 192, 0, 2, 7 };
	uint8_t hash[CERTIFICATE_HASH_LEN];
	struct {
		Cssl__SessionFilter filter;
		struct session_wish hit, spared;
	} rows[] = {
		{ FILTER(.cipher_suite = 0x1302), { .cipher_suite = 0x1302 }, { .cipher_suite = 0x1303 } },
		{ FILTER(.client_address = bytes_of(address, 4), .client_prefix = 24), { .client = "192.0.2.9" },
			{ .client = "192.0.3.9" } },
		{ FILTER(.client_certificate = bytes_of(hash, CERTIFICATE_HASH_LEN)),
			{ .client_certificate = CERTIFICATE }, { .client_certificate = "another" } },
		{ FILTER(.client_certificate = bytes_of(hash, CERTIFICATE_HASH_LEN)),
			{ .client_certificate = CERTIFICATE }, { 0 } },
		{ FILTER(.server_name = (char *)"Shop.example", .client_address = bytes_of(address, 4),
			  .client_prefix = 32),
			{ .server_name = (char *)"shop.example", .client = "192.0.2.7" },
			{ .server_name = (char *)"shop.example", .client = "192.0.2.8" } },
	};
	const revoke_what what = REVOKE(REVOKE_MATCHING, .matching = &rows[_i].filter);

	session_filter_hash((const uint8_t *)CERTIFICATE, strlen(CERTIFICATE), hash);
	check_revocation(&what, &rows[_i].hit, &rows[_i].spared);
}
END_TEST
#define FILTER_ROWS 5

START_TEST(a_filter_that_says_nothing_revokes_nothing)
{
	const uint8_t any[SESSION_ID_LEN] = { 1 };
	Cssl__SessionFilter nothing = FILTER(), one = FILTER(.session_id = bytes_of(any, SESSION_ID_LEN));
	uint8_t id[SESSION_ID_LEN];

	cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, id);
	cluster_wait_found(&t, 1, id);
	for (int i = 0; i < 2; i++) {
		revoke_what what = REVOKE(REVOKE_MATCHING, .matching = i ? &one : &nothing);
		ck_assert_uint_eq(cluster_revoke_and_wait(&t, 0, &what).confirmed, 0);
	}
	ck_assert_int_eq(cluster_find(&t, 0, id), SESSION_FOUND);
	ck_assert_int_eq(cluster_find(&t, 1, id), SESSION_FOUND);
}
END_TEST

START_TEST(a_revoked_session_is_gone_everywhere_with_its_family)
{
	uint8_t family[FAMILY_ID_LEN], id[SESSION_ID_LEN], child[SESSION_ID_LEN], other[SESSION_ID_LEN];

	randombytes_buf(family, sizeof(family));
	cluster_share(&t, 0, (struct session_wish){ .family_id = family }, TOLD, id);
	cluster_share(&t, 1, (struct session_wish){ .family_id = family }, TOLD, child);
	cluster_share(&t, 1, (struct session_wish){ 0 }, TOLD, other);
	for (unsigned at = 0; at < 3; at++) {
		cluster_wait_found(&t, at, id);
		cluster_wait_found(&t, at, child);
		cluster_wait_found(&t, at, other);
	}
	const revoke_what what = REVOKE(REVOKE_SESSION, .session_id = bytes_of(id, SESSION_ID_LEN));
	struct test_revocation r = cluster_revoke_and_wait(&t, 2, &what);
	ck_assert_uint_eq(r.confirmed, 3);
	ck_assert_uint_eq(r.sessions, 2);
	for (unsigned at = 0; at < 3; at++) {
		ck_assert_int_ne(cluster_find(&t, at, id), SESSION_FOUND);
		ck_assert_int_ne(cluster_find(&t, at, child), SESSION_FOUND);
		ck_assert_int_eq(cluster_find(&t, at, other), SESSION_FOUND);
	}
}
END_TEST

START_TEST(a_revoked_session_that_is_not_here_goes_by_its_id)
{
	uint8_t id[SESSION_ID_LEN];

	cluster_share(&t, 0, (struct session_wish){ 0 }, UNTOLD, id);
	const revoke_what what = REVOKE(REVOKE_SESSION, .session_id = bytes_of(id, SESSION_ID_LEN));
	ck_assert_uint_eq(cluster_revoke_and_wait(&t, 2, &what).confirmed, 3);
	for (unsigned at = 0; at < 3; at++)
		ck_assert_int_eq(cluster_find(&t, at, id), SESSION_ABSENT);
}
END_TEST

START_TEST(revoking_all_spares_what_is_made_afterwards)
{
	revoke_what all = REVOKE(REVOKE_ALL);
	uint8_t before[SESSION_ID_LEN], after[SESSION_ID_LEN];

	cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, before);
	cluster_wait_found(&t, 1, before);
	cluster_revoke_and_wait(&t, 1, &all);
	ck_assert_int_eq(cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, after), 0);
	for (unsigned at = 0; at < 3; at++) {
		cluster_wait_found(&t, at, after);
		ck_assert_int_ne(cluster_find(&t, at, before), SESSION_FOUND);
	}
}
END_TEST

static int offered_is_revoked(unsigned at, const uint8_t *family, uint32_t age_s)
{
	struct session_source *source = t.agents[at].source;
	struct offered_family offered = { .id = family, .age_s = age_s };

	return source->family_revoked(source, &offered);
}

START_TEST(a_family_begun_after_a_revocation_of_all_is_resumed_at_once)
{
	revoke_what all = REVOKE(REVOKE_ALL);
	uint8_t family[FAMILY_ID_LEN], id[SESSION_ID_LEN], unknown[FAMILY_ID_LEN] = { 0 };

	randombytes_buf(family, sizeof(family));
	cluster_revoke_and_wait(&t, 1, &all);
	cluster_share(&t, 0, (struct session_wish){ .family_id = family }, TOLD, id);
	for (unsigned at = 0; at < 3; at++) {
		cluster_wait_found(&t, at, id);
		ck_assert_int_eq(offered_is_revoked(at, family, 0), 0);
		ck_assert_int_eq(offered_is_revoked(at, unknown, 0), 1); /* to the second it may be older */
	}
}
END_TEST

START_TEST(a_child_of_a_revoked_family_is_not_stored)
{
	uint8_t family[FAMILY_ID_LEN], id[SESSION_ID_LEN];

	randombytes_buf(family, sizeof(family));
	const revoke_what what = REVOKE(REVOKE_FAMILY, .family_id = bytes_of(family, FAMILY_ID_LEN));
	cluster_revoke_and_wait(&t, 0, &what);
	for (unsigned at = 0; at < 3; at++) {
		ck_assert_int_lt(cluster_share(&t, at, (struct session_wish){ .family_id = family, .family_age_s = 5 },
					 TOLD, id),
			0);
		ck_assert_int_eq(offered_is_revoked(at, family, 5), 1);
	}
}
END_TEST

START_TEST(a_malformed_revocation_revokes_nothing)
{
	const uint8_t family[] = { 1, 2, 3 };
	revoke_what what = REVOKE(REVOKE_FAMILY, .family_id = bytes_of(family, 3));
	struct test_revocation r = cluster_revoke_and_wait(&t, 0, &what);

	ck_assert(r.sessions == 0 && r.confirmed == 0);
}
END_TEST

static void rotate(struct test_agent *a, void *arg)
{
	cluster_rotate(a->cluster);
}

START_TEST(sessions_go_on_being_shared_while_keys_are_rolled)
{
	uint8_t ids[300][SESSION_ID_LEN];
	const uint64_t unknown = cluster_counted(&t, 1, COUNT_DATAGRAMS_KEY_UNKNOWN); /* while they joined */

	for (unsigned i = 0; i < 300; i++) {
		if (i % 30 == 0)
			cluster_call(&t.agents[0], ON_MAIN, rotate, NULL);
		cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, ids[i]);
		if (i % 30 == 29) /* agents know the last keys only: nothing is under way when the next one comes */
			for (unsigned at = 0; at < 3; at++)
				cluster_wait_found(&t, at, ids[i]);
	}
	for (unsigned i = 0; i < 300; i++)
		for (unsigned at = 0; at < 3; at++)
			cluster_wait_found(&t, at, ids[i]);
	cluster_wait_counted(&t, 0, COUNT_SENDING_KEYS_ROLLED, 1);
	ck_assert_uint_eq(cluster_counted(&t, 1, COUNT_DATAGRAMS_KEY_UNKNOWN), unknown);
}
END_TEST

struct ticket_look {
	struct session_source *source;
	struct ticket_key key;
	const uint8_t *name;
};

static int has_ticket_key(void *ctx)
{
	static const uint8_t salt[16] = "one ticket's iv";
	struct ticket_look *l = ctx;

	return l->source->ticket_key(l->source, l->name, salt, &l->key) == 0;
}

START_TEST(a_ticket_of_one_agent_is_opened_by_all)
{
	for (unsigned from = 0; from < 3; from++) {
		struct ticket_look sealing = { .source = t.agents[from].source };

		ck_assert_msg(has_ticket_key(&sealing), "an agent that is ready has a ticket key");
		for (unsigned at = 0; at < 3; at++) {
			struct ticket_look opening = { .source = t.agents[at].source, .name = sealing.key.name };

			wait_until(has_ticket_key, &opening, "that ticket key everywhere");
			ck_assert_mem_eq(&opening.key, &sealing.key, sizeof(sealing.key));
		}
	}
}
END_TEST

/* Joining */

static void describe_two(void)
{
	cluster_describe(&t, 3, LINKS_UNIX);
	cluster_start(&t, 0);
	cluster_start(&t, 1);
	cluster_wait_joined(&t);
}

START_TEST(a_joining_agent_learns_5000_sessions_and_what_was_revoked)
{
	enum { SESSIONS = 5000 };
	uint8_t(*ids)[SESSION_ID_LEN] = malloc(SESSIONS * SESSION_ID_LEN);
	uint8_t family[FAMILY_ID_LEN], id[SESSION_ID_LEN], revoked[SESSION_ID_LEN];

	randombytes_buf(family, sizeof(family));
	const revoke_what what = REVOKE(REVOKE_FAMILY, .family_id = bytes_of(family, FAMILY_ID_LEN));
	cluster_share(&t, 0, (struct session_wish){ .family_id = family }, TOLD, revoked);
	for (unsigned i = 0; i < SESSIONS; i++)
		cluster_share(&t, i % 2, (struct session_wish){ 0 }, TOLD, ids[i]);
	for (unsigned i = 0; i < SESSIONS; i++)
		cluster_wait_found(&t, 0, ids[i]);
	cluster_revoke_and_wait(&t, 1, &what);
	cluster_start(&t, 2);
	cluster_wait_ready(&t, 2);
	for (unsigned i = 0; i < SESSIONS; i++)
		ck_assert_int_eq(cluster_find(&t, 2, ids[i]), SESSION_FOUND);
	ck_assert_int_eq(cluster_find(&t, 2, revoked) == SESSION_FOUND, 0);
	ck_assert_uint_ge(cluster_counted(&t, 2, COUNT_SNAPSHOTS_TAKEN), 1);
	ck_assert_int_lt(cluster_share(&t, 2, (struct session_wish){ .family_id = family }, TOLD, id), 0);
	cluster_wait_joined(&t);
	free(ids);
}
END_TEST

START_TEST(a_joining_agent_learns_what_filters_revoked)
{
	Cssl__SessionFilter filter = FILTER(.server_name = (char *)"shop.example", .cipher_suite = 0x1302);
	const revoke_what what = REVOKE(REVOKE_MATCHING, .matching = &filter);
	uint8_t before[SESSION_ID_LEN], id[SESSION_ID_LEN];
	struct session_wish wish = { .server_name = "shop.example", .cipher_suite = 0x1302 };

	cluster_share(&t, 0, wish, TOLD, before);
	cluster_wait_found(&t, 1, before);
	ck_assert_uint_eq(cluster_revoke_and_wait(&t, 1, &what).confirmed, 2);
	cluster_start(&t, 2);
	cluster_wait_joined(&t);
	ck_assert_int_ne(cluster_find(&t, 2, before), SESSION_FOUND);
	ck_assert_int_eq(cluster_share(&t, 2, wish, TOLD, id), 0); /* of a family begun after it */
	wish.family_age_s = 100;
	ck_assert_int_lt(cluster_share(&t, 2, wish, TOLD, id), 0);
	wish.cipher_suite = 0x1301;
	ck_assert_int_eq(cluster_share(&t, 2, wish, TOLD, id), 0);
}
END_TEST

START_TEST(agents_that_were_alone_learn_from_each_other_when_they_meet)
{
	uint8_t of_a[SESSION_ID_LEN], of_b[SESSION_ID_LEN];

	cluster_describe(&t, 2, LINKS_TCP);
	t.agents[1].ring = &t.other_ring; /* so that they do not meet yet */
	cluster_start(&t, 0);
	cluster_start(&t, 1);
	cluster_wait_ready(&t, 0);
	cluster_wait_ready(&t, 1);
	cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, of_a);
	cluster_stop(&t, 1);
	t.agents[1].ring = &t.ring;
	cluster_start(&t, 1);
	cluster_share(&t, 1, (struct session_wish){ 0 }, TOLD, of_b);
	cluster_wait_found(&t, 1, of_a);
	cluster_wait_found(&t, 0, of_b);
}
END_TEST

START_TEST(an_agent_that_comes_back_is_a_member_again)
{
	uint8_t before[SESSION_ID_LEN], after[SESSION_ID_LEN];

	cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, before);
	cluster_wait_found(&t, 1, before);
	cluster_stop(&t, 1);
	cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, after);
	cluster_start(&t, 1);
	cluster_wait_found(&t, 1, before);
	cluster_wait_found(&t, 1, after);
	cluster_wait_joined(&t);
}
END_TEST

START_TEST(an_agent_with_another_key_gets_nothing_and_is_counted)
{
	uint8_t id[SESSION_ID_LEN];
	uint64_t count;

	t.agents[2].ring = &t.other_ring;
	cluster_start(&t, 2);
	cluster_wait_ready(&t, 2); /* alone */
	cluster_share(&t, 0, (struct session_wish){ 0 }, TOLD, id);
	cluster_wait_found(&t, 1, id);
	cluster_wait_counted(&t, 2, COUNT_PEER_LINKS_REFUSED, 2);
	cluster_wait_counted(&t, 0, COUNT_PEER_LINKS_REFUSED, 2);
	ck_assert(cluster_count_sessions(t.agents[2].cluster, &count, NULL) && count == 0);
	ck_assert_uint_eq(cluster_counted(&t, 2, COUNT_PEER_LINKS_OPENED), 0);
	ck_assert_uint_eq(cluster_counted(&t, 2, COUNT_DATAGRAMS_RECEIVED), 0);
}
END_TEST

START_TEST(closing_with_work_under_way_leaves_nothing_behind)
{
	struct pulling_many {
		uint8_t ids[50][SESSION_ID_LEN];
	} many;

	for (unsigned i = 0; i < 50; i++)
		cluster_share(&t, 0, (struct session_wish){ .der_len = 20000 }, TOLD, many.ids[i]);
	cluster_call(&t.agents[0], ON_MAIN, rotate, NULL);
	cluster_start(&t, 2); /* and a snapshot on its way; teardown closes in the middle of it all */
}
END_TEST

UNIT(cluster)
{
	TCase *sessions = tcase_create("sessions"), *tcp = tcase_create("tcp"), *joining = tcase_create("joining"),
	      *alone = tcase_create("alone");
	Suite *suite = suite_create("cluster");
	SRunner *runner;
	int failed;

	log_open("test", "cluster", LOG_TEXT, getenv("TEST_LOG") ? LOG_DEBUG : LOG_ERROR, NULL);
	tcase_add_checked_fixture(sessions, three_over_unix, stop_all);
	tcase_add_test(sessions, a_session_made_on_one_agent_is_found_on_all);
	tcase_add_test(sessions, a_found_session_is_what_was_shared);
	tcase_add_test(sessions, a_thousand_sessions_reach_all);
	tcase_add_test(sessions, what_was_not_told_is_pulled_from_its_origin);
	tcase_add_test(sessions, a_session_its_origin_has_not_is_absent_and_remembered_to_be);
	tcase_add_test(sessions, an_id_that_is_not_ours_is_absent);
	tcase_add_test(sessions, a_dead_origin_is_not_waited_for);
	tcase_add_test(sessions, a_session_too_large_for_a_datagram_is_found_on_all);
	tcase_add_test(sessions, a_session_above_the_limit_is_refused);
	tcase_add_test(sessions, a_revoked_family_is_gone_everywhere);
	tcase_add_test(sessions, a_revoked_server_name_is_gone_everywhere);
	tcase_add_test(sessions, a_revoked_client_address_is_gone_everywhere);
	tcase_add_loop_test(sessions, what_a_filter_lets_through_is_gone_everywhere, 0, FILTER_ROWS);
	tcase_add_test(sessions, a_filter_that_says_nothing_revokes_nothing);
	tcase_add_test(sessions, a_revoked_session_is_gone_everywhere_with_its_family);
	tcase_add_test(sessions, a_revoked_session_that_is_not_here_goes_by_its_id);
	tcase_add_test(sessions, revoking_all_spares_what_is_made_afterwards);
	tcase_add_test(sessions, a_family_begun_after_a_revocation_of_all_is_resumed_at_once);
	tcase_add_test(sessions, a_child_of_a_revoked_family_is_not_stored);
	tcase_add_test(sessions, a_malformed_revocation_revokes_nothing);
	tcase_add_test(sessions, sessions_go_on_being_shared_while_keys_are_rolled);
	tcase_add_test(sessions, a_ticket_of_one_agent_is_opened_by_all);
	tcase_add_checked_fixture(tcp, three_over_tcp, stop_all);
	tcase_add_test(tcp, a_session_made_on_one_agent_is_found_on_all);
	tcase_add_test(tcp, a_session_too_large_for_a_datagram_is_found_on_all);
	tcase_add_test(tcp, what_was_not_told_is_pulled_from_its_origin);
	tcase_add_test(tcp, a_revoked_session_is_gone_everywhere_with_its_family);
	tcase_add_test(tcp, a_revoked_session_that_is_not_here_goes_by_its_id);
	tcase_add_checked_fixture(joining, describe_two, stop_all);
	tcase_add_test(joining, a_joining_agent_learns_5000_sessions_and_what_was_revoked);
	tcase_add_test(joining, a_joining_agent_learns_what_filters_revoked);
	tcase_add_test(joining, an_agent_that_comes_back_is_a_member_again);
	tcase_add_test(joining, an_agent_with_another_key_gets_nothing_and_is_counted);
	tcase_add_test(joining, closing_with_work_under_way_leaves_nothing_behind);
	tcase_add_checked_fixture(alone, NULL, stop_all);
	tcase_add_test(alone, agents_that_were_alone_learn_from_each_other_when_they_meet);
	tcase_set_timeout(sessions, 30);
	tcase_set_timeout(tcp, 30);
	tcase_set_timeout(joining, 60);
	tcase_set_timeout(alone, 30);
	suite_add_tcase(suite, sessions);
	suite_add_tcase(suite, tcp);
	suite_add_tcase(suite, joining);
	suite_add_tcase(suite, alone);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
