/* test_tombstones.c: what hits whom, for how long, and what when there are too many. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/sess_obj.h"
#include "tests/unit/sslagent/revoke_what.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define LIFETIME_MS 10000

static struct tombstones *t;
static const uint8_t id[SESSION_ID_LEN] = { 1 }, other_id[SESSION_ID_LEN] = { 2 };
static const uint8_t family[FAMILY_ID_LEN] = { 3 }, other_family[FAMILY_ID_LEN] = { 4 };
static const struct client_address client = { { 192, 0, 2, 1 }, 4 }, other_client = { { 192, 0, 2, 2 }, 4 };

static void setup(void)
{
	ck_assert_int_ge(sodium_init(), 0);
	t = tombstones_create(LIFETIME_MS, 100);
	ck_assert_ptr_nonnull(t);
}

static void teardown(void)
{
	tombstones_destroy(t);
}

static revoke_what by_bytes(enum revoke_by by, const void *bytes, size_t len)
{
	return REVOKE(by, .session_id = bytes_of(bytes, len)); /* the others are in the same place */
}

static int hit_at(int64_t family_made_ms)
{
	struct session_seen who = { .id = id,
		.family_id = family,
		.server_name = "www.example",
		.client = &client,
		.family_made_ms = family_made_ms,
		.made_ms = family_made_ms };

	return tombstones_hit(t, &who);
}

static int other_hit_at(int64_t family_made_ms)
{
	struct session_seen who = { .id = other_id,
		.family_id = other_family,
		.server_name = "other.example",
		.client = &other_client,
		.family_made_ms = family_made_ms,
		.made_ms = family_made_ms };

	return tombstones_hit(t, &who);
}

static void add_at(revoke_what what, int64_t at_ms)
{
	ck_assert_int_eq(tombstones_add(t, &what, at_ms, at_ms), 0);
}

START_TEST(nothing_is_hit_at_first)
{
	ck_assert_int_eq(hit_at(0), 0);
	ck_assert_uint_eq(tombstones_count(t), 0);
}
END_TEST

START_TEST(a_session_is_hit_by_its_id_whenever_it_was_made)
{
	add_at(by_bytes(REVOKE_SESSION, id, sizeof(id)), 1000);
	ck_assert_int_eq(hit_at(0), 1);
	ck_assert_int_eq(hit_at(5000), 1);
	ck_assert_int_eq(other_hit_at(0), 0);
}
END_TEST

START_TEST(a_session_is_hit_by_its_family_whenever_it_was_made)
{
	add_at(by_bytes(REVOKE_FAMILY, family, sizeof(family)), 1000);
	ck_assert_int_eq(hit_at(5000), 1);
	ck_assert_int_eq(other_hit_at(0), 0);
}
END_TEST

START_TEST(a_name_hits_families_begun_before_and_not_after)
{
	add_at(REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"www.example"), 1000);
	ck_assert_int_eq(hit_at(999), 1);
	ck_assert_int_eq(hit_at(1000), 1);
	ck_assert_int_eq(hit_at(1001), 0);
	ck_assert_int_eq(other_hit_at(999), 0);
}
END_TEST

START_TEST(a_name_has_no_case)
{
	add_at(REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"WWW.Example"), 1000);
	ck_assert_int_eq(hit_at(0), 1);
}
END_TEST

START_TEST(an_address_hits_families_begun_before_and_not_after)
{
	add_at(by_bytes(REVOKE_CLIENT_ADDRESS, client.bytes, 4), 1000);
	ck_assert_int_eq(hit_at(1000), 1);
	ck_assert_int_eq(hit_at(1001), 0);
	ck_assert_int_eq(other_hit_at(1000), 0);
}
END_TEST

START_TEST(all_hits_everything_begun_before_and_nothing_after)
{
	add_at(REVOKE(REVOKE_ALL), 1000);
	ck_assert_int_eq(hit_at(1000), 1);
	ck_assert_int_eq(other_hit_at(1000), 1);
	ck_assert_int_eq(hit_at(1001), 0);
}
END_TEST

static void add_filter_at(Cssl__SessionFilter f, int64_t at_ms)
{
	add_at(REVOKE(REVOKE_MATCHING, .matching = &f), at_ms);
}

/* A session of its own, of a family as old. */
static int session_hit(int64_t made_ms, uint16_t suite)
{
	struct session_seen who = { .id = id,
		.family_id = family,
		.server_name = "www.example",
		.client = &client,
		.family_made_ms = made_ms,
		.made_ms = made_ms,
		.protocol_version = 0x0304,
		.cipher_suite = suite };

	return tombstones_hit(t, &who);
}

START_TEST(a_filter_hits_what_meets_every_criterion_and_was_begun_before)
{
	add_filter_at(
		FILTER(.server_name = (char *)"WWW.example", .protocol_version = 0x0304, .cipher_suite = 0x1302), 1000);
	ck_assert_int_eq(session_hit(1000, 0x1302), 1);
	ck_assert_int_eq(session_hit(1001, 0x1302), 0);
	ck_assert_int_eq(session_hit(1000, 0x1301), 0);
	ck_assert_int_eq(hit_at(1000), 0); /* its suite is not known */
	ck_assert_int_eq(other_hit_at(500), 0);
}
END_TEST

START_TEST(ages_of_a_filter_are_those_at_its_time)
{
	add_filter_at(FILTER(.min_age_s = 2, .max_age_s = 4), 5000);
	ck_assert_int_eq(session_hit(3001, 1), 0);
	ck_assert_int_eq(session_hit(3000, 1), 1);
	ck_assert_int_eq(session_hit(1000, 1), 1);
	ck_assert_int_eq(session_hit(0, 1), 0); /* 5 s */
	struct session_seen who = { .family_id = family, .family_made_ms = 2000, .made_ms = AGE_UNKNOWN };
	ck_assert_int_eq(tombstones_hit(t, &who), 0);
}
END_TEST

/* A criterion of a later release: no session here could fail it. */
START_TEST(a_filter_with_an_unknown_criterion_is_refused)
{
	static uint8_t data = 1;
	ProtobufCMessageUnknownField unknown = { .tag = 99, .len = 1, .data = &data };
	Cssl__SessionFilter f = FILTER(.cipher_suite = 0x1301);
	const revoke_what what = REVOKE(REVOKE_MATCHING, .matching = &f);

	ck_assert_int_eq(tombstones_check(&what), 0);
	f.base.n_unknown_fields = 1;
	f.base.unknown_fields = &unknown;
	ck_assert_int_eq(tombstones_check(&what), CSSL_E_RANGE);
}
END_TEST

START_TEST(the_same_filter_is_known_and_one_with_an_age_only_for_a_while)
{
	Cssl__SessionFilter name = FILTER(.server_name = (char *)"a.example"), age = FILTER(.min_age_s = 1);
	revoke_what of_name = REVOKE(REVOKE_MATCHING, .matching = &name);
	revoke_what of_age = REVOKE(REVOKE_MATCHING, .matching = &age);

	add_at(of_name, 1000);
	ck_assert_int_eq(tombstones_add(t, &of_name, 900, 5000), TOMBSTONE_KNOWN);
	add_at(of_name, 5000);
	add_at(of_age, 1000);
	ck_assert_int_eq(tombstones_add(t, &of_age, 990, 1010), TOMBSTONE_KNOWN);
	ck_assert_uint_eq(tombstones_count(t), 2);
	add_at(of_age, 5000);
	ck_assert_uint_eq(tombstones_count(t), 3);
	tombstones_expire(t, 5000 + LIFETIME_MS);
	ck_assert_uint_eq(tombstones_count(t), 0);
}
END_TEST

START_TEST(too_many_filters_become_one_that_hits_everything_so_far)
{
	for (uint16_t i = 1; i <= FILTER_STONES_MAX; i++)
		add_filter_at(FILTER(.cipher_suite = i), 1000);
	ck_assert_int_eq(session_hit(900, 0x1301), 0);
	add_filter_at(FILTER(.cipher_suite = 0x1302), 1000);
	ck_assert_int_eq(session_hit(900, 0x1301), 1);
	ck_assert_int_eq(session_hit(1001, 0x1302), 0);
	ck_assert_uint_eq(tombstones_count(t), 1);
}
END_TEST

START_TEST(a_later_revocation_of_the_same_moves_it_and_an_earlier_is_known)
{
	revoke_what what = REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"www.example");

	add_at(what, 1000);
	ck_assert_int_eq(tombstones_add(t, &what, 500, 2000), TOMBSTONE_KNOWN);
	ck_assert_int_eq(tombstones_add(t, &what, 1000, 2000), TOMBSTONE_KNOWN);
	add_at(what, 2000);
	ck_assert_int_eq(hit_at(1500), 1);
	ck_assert_uint_eq(tombstones_count(t), 1);
}
END_TEST

START_TEST(a_tombstone_stands_as_long_as_a_session_could_live)
{
	add_at(by_bytes(REVOKE_FAMILY, family, sizeof(family)), 1000);
	add_at(REVOKE(REVOKE_ALL), 2000);
	tombstones_expire(t, 1000 + LIFETIME_MS - 1);
	ck_assert_uint_eq(tombstones_count(t), 2);
	tombstones_expire(t, 1000 + LIFETIME_MS);
	ck_assert_uint_eq(tombstones_count(t), 1);
	tombstones_expire(t, 2000 + LIFETIME_MS);
	ck_assert_uint_eq(tombstones_count(t), 0);
	ck_assert_int_eq(hit_at(0), 0);
}
END_TEST

START_TEST(too_many_become_one_that_hits_everything_so_far)
{
	struct session_seen revoked = { .id = id, .family_id = family, .family_made_ms = 900 };

	for (unsigned i = 0; i < 101; i++) {
		uint8_t bytes[FAMILY_ID_LEN] = { 9, (uint8_t)i };

		add_at(by_bytes(REVOKE_FAMILY, bytes, sizeof(bytes)), 1000);
	}
	ck_assert_uint_eq(tombstones_count(t), 1);
	ck_assert_int_eq(tombstones_hit(t, &revoked), 1);
	revoked.family_made_ms = 1001;
	ck_assert_int_eq(tombstones_hit(t, &revoked), 0);
}
END_TEST

START_TEST(a_malformed_revocation_is_refused)
{
	Cssl__SessionFilter nothing = FILTER(), one = FILTER(.session_id = bytes_of(id, SESSION_ID_LEN));
	Cssl__SessionFilter long_name = FILTER(.server_name = (char[NAME_MAX_LEN + 2]){ 0 });
	revoke_what bad[] = {
		REVOKE(REVOKE_SESSION, .session_id = bytes_of(id, 31)),
		REVOKE(REVOKE_FAMILY, .family_id = bytes_of(id, 0)),
		REVOKE(REVOKE_CLIENT_ADDRESS, .client_address = bytes_of(id, 5)),
		REVOKE(REVOKE_SERVER_NAME, .server_name = NULL),
		REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)""),
		REVOKE(REVOKE_MATCHING, .matching = NULL),
		REVOKE(REVOKE_MATCHING, .matching = &nothing),
		REVOKE(REVOKE_MATCHING, .matching = &one),
		REVOKE(REVOKE_MATCHING, .matching = &long_name),
		REVOKE(99),
	};

	memset(long_name.server_name, 'a', NAME_MAX_LEN + 1);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(tombstones_add(t, &bad[i], 0, 0), CSSL_E_RANGE);
	ck_assert_uint_eq(tombstones_count(t), 0);
}
END_TEST

static void on_stone(void *ctx, const revoke_what *what, int64_t revoked_ms)
{
	struct tombstones *copy = ctx;

	if (what)
		ck_assert_int_eq(tombstones_add(copy, what, revoked_ms, 5000), 0);
}

START_TEST(all_of_them_can_be_told_to_another_agent)
{
	struct tombstones *told = t;

	add_at(by_bytes(REVOKE_SESSION, id, sizeof(id)), 1000);
	add_at(by_bytes(REVOKE_FAMILY, other_family, sizeof(other_family)), 1000);
	add_at(by_bytes(REVOKE_CLIENT_ADDRESS, client.bytes, 4), 1000);
	add_at(REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"other.example"), 1000);
	add_at(REVOKE(REVOKE_ALL), 500);
	t = tombstones_create(LIFETIME_MS, 100);
	tombstones_each(told, on_stone, t);
	ck_assert_uint_eq(tombstones_count(t), 5);
	ck_assert_int_eq(hit_at(800), 1);
	ck_assert_int_eq(other_hit_at(5000), 1);
	tombstones_destroy(told);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, nothing_is_hit_at_first);
	tcase_add_test(tcase, a_session_is_hit_by_its_id_whenever_it_was_made);
	tcase_add_test(tcase, a_session_is_hit_by_its_family_whenever_it_was_made);
	tcase_add_test(tcase, a_name_hits_families_begun_before_and_not_after);
	tcase_add_test(tcase, a_name_has_no_case);
	tcase_add_test(tcase, an_address_hits_families_begun_before_and_not_after);
	tcase_add_test(tcase, all_hits_everything_begun_before_and_nothing_after);
	tcase_add_test(tcase, a_filter_hits_what_meets_every_criterion_and_was_begun_before);
	tcase_add_test(tcase, ages_of_a_filter_are_those_at_its_time);
	tcase_add_test(tcase, a_filter_with_an_unknown_criterion_is_refused);
	tcase_add_test(tcase, the_same_filter_is_known_and_one_with_an_age_only_for_a_while);
	tcase_add_test(tcase, too_many_filters_become_one_that_hits_everything_so_far);
	tcase_add_test(tcase, a_later_revocation_of_the_same_moves_it_and_an_earlier_is_known);
	tcase_add_test(tcase, a_tombstone_stands_as_long_as_a_session_could_live);
	tcase_add_test(tcase, too_many_become_one_that_hits_everything_so_far);
	tcase_add_test(tcase, a_malformed_revocation_is_refused);
	tcase_add_test(tcase, all_of_them_can_be_told_to_another_agent);
}

UNIT(tombstones)
{
	return run_suite("tombstones", add);
}
