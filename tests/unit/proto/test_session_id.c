/* test_session_id.c */
#include <string.h>

#include "proto/error.h"
#include "proto/session_id.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const uint8_t check_key[SESSION_ID_CHECK_KEY_LEN] = "the check key 16";
static const uint8_t other_key[SESSION_ID_CHECK_KEY_LEN] = "another key, 16.";
static const uint8_t random22[22] = "22 bytes of randomness";

static void make(uint8_t out[static SESSION_ID_LEN])
{
	session_id_make(out, 0xabcd, 1000 * SESSION_ID_TICK_S + 5, random22, check_key);
}

START_TEST(an_id_of_ours_is_recognised_and_says_origin_and_issue_time)
{
	uint8_t id[SESSION_ID_LEN];
	struct session_id_facts facts = { 0 };

	make(id);
	ck_assert_int_eq(session_id_check(id, sizeof(id), check_key, &facts), 0);
	ck_assert_uint_eq(facts.origin, 0xabcd);
	ck_assert_uint_eq(facts.issued_tick, 1000);
}
END_TEST

START_TEST(the_facts_need_not_be_asked_for)
{
	uint8_t id[SESSION_ID_LEN];

	make(id);
	ck_assert_int_eq(session_id_check(id, sizeof(id), check_key, NULL), 0);
}
END_TEST

START_TEST(the_issue_time_wraps_at_24_bits)
{
	uint8_t id[SESSION_ID_LEN];
	struct session_id_facts facts = { 0 };

	session_id_make(id, 1, ((UINT64_C(1) << 24) + 7) * SESSION_ID_TICK_S, random22, check_key);
	ck_assert_int_eq(session_id_check(id, sizeof(id), check_key, &facts), 0);
	ck_assert_uint_eq(facts.issued_tick, 7);
}
END_TEST

START_TEST(a_flipped_bit_anywhere_is_not_ours)
{
	uint8_t id[SESSION_ID_LEN];

	make(id);
	for (unsigned bit = 0; bit < 8 * SESSION_ID_LEN; bit++) {
		id[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(session_id_check(id, sizeof(id), check_key, NULL), CSSL_E_MISMATCH);
		id[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

START_TEST(another_check_key_does_not_recognise_it)
{
	uint8_t id[SESSION_ID_LEN];

	make(id);
	ck_assert_int_eq(session_id_check(id, sizeof(id), other_key, NULL), CSSL_E_MISMATCH);
}
END_TEST

START_TEST(another_length_is_not_ours)
{
	uint8_t id[SESSION_ID_LEN + 1] = { 0 };

	make(id);
	for (size_t len = 0; len <= sizeof(id); len++)
		ck_assert_int_eq(
			session_id_check(id, len, check_key, NULL), len == SESSION_ID_LEN ? 0 : CSSL_E_MISMATCH);
	ck_assert_int_eq(session_id_check(NULL, 0, check_key, NULL), CSSL_E_MISMATCH);
}
END_TEST

/* Whatever their origin and time: only the random part decides the distribution. */
START_TEST(the_order_is_that_of_the_random_parts)
{
	uint8_t a[SESSION_ID_LEN], b[SESSION_ID_LEN];

	memset(a, 0xff, sizeof(a));
	memset(b, 0, sizeof(b));
	ck_assert_int_gt(session_id_compare(a, b), 0);
	ck_assert_uint_eq(session_id_rank(a), UINT64_MAX);
	a[10] = 0;
	b[10] = 1;
	ck_assert_int_lt(session_id_compare(a, b), 0);
	ck_assert_uint_lt(session_id_rank(a), session_id_rank(b));
	memcpy(a + 10, b + 10, sizeof(a) - 10);
	ck_assert_int_gt(session_id_compare(a, b), 0);
	ck_assert_int_eq(session_id_compare(a, a), 0);
}
END_TEST

/* Other processes, and other releases, must come to the same numbers. */
START_TEST(the_number_of_a_name_never_changes)
{
	ck_assert_uint_eq(session_id_origin("agent-1"), 0x3075);
	ck_assert_uint_ne(session_id_origin("agent-2"), session_id_origin("agent-1"));
}
END_TEST

START_TEST(the_layout_never_changes)
{
	uint8_t id[SESSION_ID_LEN];
	static const uint8_t head[10] = { 0xab, 0xcd, 0x00, 0x03, 0xe8, 0xf5, 0x55, 0x03, 0xd3, 0x58 };

	make(id);
	ck_assert_mem_eq(id, head, sizeof(head));
	ck_assert_mem_eq(id + sizeof(head), random22, sizeof(random22));
}
END_TEST

UNIT(session_id)
{
	const TTest *const facts[] = {
		an_id_of_ours_is_recognised_and_says_origin_and_issue_time,
		the_facts_need_not_be_asked_for,
		the_issue_time_wraps_at_24_bits,
		a_flipped_bit_anywhere_is_not_ours,
		another_check_key_does_not_recognise_it,
		another_length_is_not_ours,
		the_order_is_that_of_the_random_parts,
		the_number_of_a_name_never_changes,
		the_layout_never_changes,
	};
	return suite_run("session_id", facts, SUITE_LEN(facts));
}
