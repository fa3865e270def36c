/* test_ownerships.c: facts of the ring of ownerships. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "ragent/connection/ownership/ownerships.h"
#include "ragent/dispatch/agents.h"
#include "tests/unit/unit.h"

static struct ownerships *o;
static struct ownership found[OWNERSHIPS_LISTED];

static void setup(void)
{
	o = ownerships_create();
	ck_assert_ptr_nonnull(o);
}

static void teardown(void)
{
	free(o);
}

static struct connection_id id_of(uint32_t n)
{
	struct connection_id id = { { 0 } };

	memcpy(id.bytes, &n, sizeof n);
	return id;
}

static void note(uint32_t connection, uint16_t epoch)
{
	ownerships_note(
		o, &(struct ownership){ .connection = id_of(connection), .epoch = epoch, .cause = OWNERSHIP_MOVE });
}

static size_t look_up(uint32_t connection)
{
	const struct connection_id id = id_of(connection);

	return ownerships_of(o, &id, found);
}

START_TEST(a_connection_nobody_noted_has_none)
{
	note(1, 1);
	ck_assert_uint_eq(look_up(2), 0);
}
END_TEST

START_TEST(owners_come_back_oldest_first)
{
	note(1, 1);
	note(2, 1);
	note(1, 2);
	note(1, 3);
	ck_assert_uint_eq(look_up(1), 3);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(found[i].epoch, i + 1);
}
END_TEST

START_TEST(the_newest_are_listed_of_one_that_moved_often)
{
	for (uint16_t epoch = 1; epoch <= OWNERSHIPS_LISTED + 10; epoch++)
		note(1, epoch);
	ck_assert_uint_eq(look_up(1), OWNERSHIPS_LISTED);
	ck_assert_uint_eq(found[0].epoch, 11);
	ck_assert_uint_eq(found[OWNERSHIPS_LISTED - 1].epoch, OWNERSHIPS_LISTED + 10);
}
END_TEST

START_TEST(the_oldest_is_forgotten_when_the_ring_is_full)
{
	note(1, 1);
	for (uint32_t i = 0; i < OWNERSHIPS_KEPT - 1; i++)
		note(100 + i, 1);
	ck_assert_uint_eq(look_up(1), 1);
	note(2, 1);
	ck_assert_uint_eq(look_up(1), 0);
	ck_assert_uint_eq(look_up(2), 1);
}
END_TEST

/* --- in another process --- */

static const int same[] = { 0, 1, 2 };
static uint8_t packed[(OWNERSHIPS_KEPT + 1) * 40];

static size_t pack(void)
{
	struct wire_writer w = wire_writer(packed, sizeof packed);

	ownerships_pack(o, &w);
	ck_assert_uint_eq((size_t)wire_writer_len(&w), ownerships_packed_len(o));
	return ownerships_packed_len(o);
}

/* What is there is all there is. */
static void go_elsewhere(const int *agents, size_t len)
{
	free(o);
	setup();
	ck_assert_int_eq(ownerships_unpack(o, agents, 3, packed, len), 0);
}

START_TEST(every_member_is_the_same_in_another_process)
{
	const struct ownership noted = { .connection = { { 9, 8, 7 } },
		.since_ms = UINT64_C(0x0102030405060708),
		.pause_us = 0xa1a2a3a4,
		.epoch = 0xb1b2,
		.agent = 2,
		.cause = OWNERSHIP_REST };

	ownerships_note(o, &noted);
	go_elsewhere(same, pack());
	ck_assert_uint_eq(ownerships_of(o, &noted.connection, found), 1);
	ck_assert_mem_eq(found[0].connection.bytes, noted.connection.bytes, CONNECTION_ID_LEN);
	ck_assert_uint_eq(found[0].since_ms, noted.since_ms);
	ck_assert_uint_eq(found[0].pause_us, noted.pause_us);
	ck_assert_uint_eq(found[0].epoch, noted.epoch);
	ck_assert_int_eq(found[0].agent, noted.agent);
	ck_assert_uint_eq(found[0].cause, noted.cause);
}
END_TEST

START_TEST(a_full_ring_goes_on_with_the_newest_in_order)
{
	for (uint32_t i = 0; i < OWNERSHIPS_KEPT + 3; i++)
		note(i % 2 ? i : 1, (uint16_t)i);
	go_elsewhere(same, pack());
	ck_assert_uint_eq(look_up(1), OWNERSHIPS_LISTED);
	ck_assert_uint_eq(found[OWNERSHIPS_LISTED - 1].epoch, OWNERSHIPS_KEPT + 2);
	ck_assert_uint_eq(look_up(3), 1);
	note(2, 1);
	ck_assert_uint_eq(look_up(3), 0);
}
END_TEST

START_TEST(agents_have_their_numbers_of_the_other_process_and_those_that_are_gone_none)
{
	static const int agents[] = { 2, NO_AGENT, 0 };

	for (int16_t a = NO_AGENT; a < 3; a++)
		ownerships_note(o, &(struct ownership){ .connection = id_of(1), .agent = a });
	go_elsewhere(agents, pack());
	ck_assert_uint_eq(look_up(1), 3);
	ck_assert_int_eq(found[0].agent, NO_AGENT);
	ck_assert_int_eq(found[1].agent, 2);
	ck_assert_int_eq(found[2].agent, 0);
}
END_TEST

static void is_refused(size_t len, int why)
{
	struct ownerships *there = ownerships_create();

	ck_assert_int_eq(ownerships_unpack(there, same, 3, packed, len), why);
	ck_assert_uint_eq(ownerships_packed_len(there), 0);
	free(there);
}

START_TEST(of_what_is_cut_or_cannot_be_nothing_is_noted)
{
	note(1, 1);
	note(1, 2);
	const size_t len = pack(), one = len / 2;
	for (size_t cut = one + 1; cut < len; cut++)
		is_refused(cut, CSSL_E_TRUNCATED);
	packed[len - 1] = OWNERSHIP_CAUSE_COUNT;
	is_refused(len, CSSL_E_RANGE);
	packed[len - 1] = 0;
	packed[len - 2] = 3; /* agent */
	is_refused(len, CSSL_E_RANGE);
	packed[len - 3] = packed[len - 2] = 0xfe;
	is_refused(len, CSSL_E_RANGE);
}
END_TEST

START_TEST(more_than_a_ring_holds_is_refused)
{
	for (uint32_t i = 0; i < OWNERSHIPS_KEPT; i++)
		note(i, 1);
	const size_t len = pack(), one = len / OWNERSHIPS_KEPT;
	memcpy(packed + len, packed, one);
	is_refused(len + one, CSSL_E_RANGE);
}
END_TEST

UNIT(ownerships)
{
	Suite *s = suite_create("ownerships");
	TCase *t = tcase_create("ring");
	SRunner *r = srunner_create(s);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_connection_nobody_noted_has_none);
	tcase_add_test(t, owners_come_back_oldest_first);
	tcase_add_test(t, the_newest_are_listed_of_one_that_moved_often);
	tcase_add_test(t, the_oldest_is_forgotten_when_the_ring_is_full);
	tcase_add_test(t, every_member_is_the_same_in_another_process);
	tcase_add_test(t, a_full_ring_goes_on_with_the_newest_in_order);
	tcase_add_test(t, agents_have_their_numbers_of_the_other_process_and_those_that_are_gone_none);
	tcase_add_test(t, of_what_is_cut_or_cannot_be_nothing_is_noted);
	tcase_add_test(t, more_than_a_ring_holds_is_refused);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	const int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
