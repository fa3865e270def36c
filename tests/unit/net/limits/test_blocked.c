/* test_blocked.c: facts of the networks that an operator keeps out. */
#include <stdio.h>
#include <string.h>

#include "net/limits/blocked.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define NOW 1000u

static struct blocked list; /* each fact has a process of its own */

static struct address_net net(const char *text)
{
	struct address_net out;

	ck_assert_int_eq(address_net_parse(text, &out), 0);
	return out;
}

static int block(const char *text, uint64_t for_ms, uint64_t now_ms)
{
	const struct address_net n = net(text);

	return blocked_set(&list, &n, for_ms, now_ms);
}

static int has(struct blocked *b, const char *text, uint64_t now_ms)
{
	const struct address_net n = net(text);
	struct client_address a = { .len = n.len };

	memcpy(a.bytes, n.bytes, n.len);
	return blocked_has(b, &a, now_ms);
}

START_TEST(a_network_is_blocked_until_its_end)
{
	ck_assert(!has(&list, "192.0.2.7", NOW));
	ck_assert_int_eq(block("192.0.2.0/24", 500, NOW), 0);
	ck_assert(has(&list, "192.0.2.7", NOW + 499));
	ck_assert(!has(&list, "192.0.2.7", NOW + 500));
	ck_assert(!has(&list, "192.0.3.7", NOW));
	ck_assert(!has(&list, "2001:db8::7", NOW));
}
END_TEST

START_TEST(without_an_end_it_is_blocked_for_good)
{
	ck_assert_int_eq(block("2001:db8::/32", BLOCKED_FOR_GOOD, NOW), 0);
	ck_assert(has(&list, "2001:db8::7", UINT64_MAX - 1));
}
END_TEST

START_TEST(the_last_word_counts)
{
	struct blocked_net found[BLOCKED_MAX];

	block("192.0.2.7", BLOCKED_FOR_GOOD, NOW);
	ck_assert_int_eq(block("192.0.2.7", 500, NOW), 0);
	ck_assert_uint_eq(blocked_list(&list, NOW, found), 1);
	ck_assert_uint_eq(found[0].left_ms, 500);
	ck_assert_int_eq(block("192.0.2.7", 0, NOW), 0);
	ck_assert(!has(&list, "192.0.2.7", NOW));
	ck_assert_int_eq(block("192.0.2.7", 0, NOW), CSSL_E_NOT_FOUND);
}
END_TEST

START_TEST(a_list_has_an_end_and_takes_others_in_the_place_of_what_is_over)
{
	char text[32];

	for (unsigned i = 0; i < BLOCKED_MAX; i++) {
		snprintf(text, sizeof text, "10.0.%u.%u", i / 256, i % 256);
		ck_assert_int_eq(block(text, i == 5 ? 10 : 1000, NOW), 0);
	}
	ck_assert_int_eq(block("192.0.2.7", 1000, NOW), CSSL_E_FULL);
	ck_assert_int_eq(block("10.0.0.5", 10, NOW), 0);
	ck_assert_int_eq(block("192.0.2.7", 1000, NOW + 10), 0);
	ck_assert(has(&list, "192.0.2.7", NOW + 10));
}
END_TEST

START_TEST(another_process_gets_the_same_list)
{
	static struct blocked other;
	static uint8_t packed[BLOCKED_PACKED_MAX];
	const struct address_net gone = net("198.51.100.1");

	memset(&other, 0, sizeof other);
	blocked_set(&other, &gone, BLOCKED_FOR_GOOD, 0);
	block("192.0.2.0/24", 500, NOW);
	block("2001:db8::7", BLOCKED_FOR_GOOD, NOW);
	block("192.0.2.9", 1, NOW - 1);
	const size_t len = blocked_pack(&list, NOW, packed);
	ck_assert_int_eq(blocked_unpack(&other, 0, packed, len, 70000), 0);
	ck_assert(has(&other, "192.0.2.7", 70499));
	ck_assert(!has(&other, "192.0.2.7", 70500));
	ck_assert(has(&other, "2001:db8::7", 70500));
	ck_assert(!has(&other, "198.51.100.1", 70000)); /* what was there is replaced */
	for (size_t cut = 0; cut < len; cut++) {
		const int is_whole = cut % 26 == BLOCKED_MADE_LEN;
		ck_assert_int_eq(blocked_unpack(&other, 0, packed, cut, 70000), is_whole ? 0 : CSSL_E_RANGE);
	}
	ck_assert(has(&other, "192.0.2.7", 70499));
	ck_assert(!has(&other, "2001:db8::7", 70000));
	ck_assert_int_eq(blocked_unpack(&other, 0, packed, BLOCKED_MADE_LEN, 70000), 0);
	ck_assert(!has(&other, "192.0.2.7", 70499));
}
END_TEST

/* Messages over different links may overtake each other. */
START_TEST(a_list_that_was_made_earlier_never_wins)
{
	static struct blocked other;
	static uint8_t earlier[BLOCKED_PACKED_MAX], later[BLOCKED_PACKED_MAX];
	const size_t earlier_len = blocked_pack(&list, NOW, earlier);

	block("192.0.2.7", BLOCKED_FOR_GOOD, NOW);
	const size_t later_len = blocked_pack(&list, NOW, later);
	ck_assert_int_eq(blocked_unpack(&other, 1, later, later_len, NOW), 0);
	ck_assert_int_eq(blocked_unpack(&other, 1, earlier, earlier_len, NOW), 0);
	ck_assert(has(&other, "192.0.2.7", NOW));
	ck_assert_int_eq(blocked_unpack(&other, 1, later, later_len, NOW), 0); /* once more */
	ck_assert(has(&other, "192.0.2.7", NOW));
	ck_assert_int_eq(
		blocked_unpack(&other, 2, earlier, earlier_len, NOW), 0); /* of a new process, maybe after a boot */
	ck_assert(!has(&other, "192.0.2.7", NOW));
}
END_TEST

/* Law 16: all of a message, or nothing. */
START_TEST(a_mistake_anywhere_changes_nothing)
{
	static uint8_t packed[BLOCKED_PACKED_MAX + 26];
	const struct {
		uint8_t len, prefix, left;
	} wrong[] = { { 0, 0, 1 }, { 3, 8, 1 }, { 5, 8, 1 }, { 17, 8, 1 }, { 255, 8, 1 }, { 4, 33, 1 }, { 16, 129, 1 },
		{ 4, 32, 0 } };

	block("192.0.2.7", BLOCKED_FOR_GOOD, NOW);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		uint8_t *second = packed + BLOCKED_MADE_LEN + 26;
		memset(packed, 1, BLOCKED_MADE_LEN + 52);
		packed[BLOCKED_MADE_LEN] = 4;
		second[0] = wrong[i].len;
		second[1] = wrong[i].prefix;
		memset(second + 18, 0, 8);
		second[25] = wrong[i].left;
		ck_assert_int_eq(blocked_unpack(&list, 1, packed, BLOCKED_MADE_LEN + 52, NOW), CSSL_E_RANGE);
		ck_assert(has(&list, "192.0.2.7", NOW));
		ck_assert(!has(&list, "1.1.1.1", NOW));
	}
	for (size_t i = 0; i <= BLOCKED_MAX; i++)
		memcpy(packed + BLOCKED_MADE_LEN + 26 * i, "\4\10\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 26);
	ck_assert_int_eq(blocked_unpack(&list, 1, packed, BLOCKED_PACKED_MAX + 26, NOW), CSSL_E_RANGE);
	ck_assert(has(&list, "192.0.2.7", NOW));
	ck_assert_int_eq(blocked_unpack(&list, 1, packed, BLOCKED_PACKED_MAX, NOW), 0);
	ck_assert(has(&list, "1.1.1.1", NOW));
}
END_TEST

START_TEST(what_an_attacked_process_left_blocks_nobody)
{
	list.at[3].net = (struct address_net){ .len = 4, .prefix = 200 };
	list.at[3].until_ms = UINT64_MAX;
	ck_assert(!has(&list, "192.0.2.7", NOW));
	ck_assert(!has(NULL, "192.0.2.7", NOW));
}
END_TEST

UNIT(blocked)
{
	const TTest *const facts[] = {
		a_network_is_blocked_until_its_end,
		without_an_end_it_is_blocked_for_good,
		the_last_word_counts,
		a_list_has_an_end_and_takes_others_in_the_place_of_what_is_over,
		another_process_gets_the_same_list,
		a_list_that_was_made_earlier_never_wins,
		a_mistake_anywhere_changes_nothing,
		what_an_attacked_process_left_blocks_nobody,
	};

	return suite_run("blocked", facts, SUITE_LEN(facts));
}
