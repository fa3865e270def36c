/* test_handshake_limit.c: facts of the handshake that gives way when there are too many. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/limits/admission.h"
#include "net/limits/handshake_limit.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define PLACES 64u

static struct handshake_place places[PLACES];
static struct handshake_limit *l;
static uint64_t now_ms;

static struct client_address ipv4(uint8_t n)
{
	return (struct client_address){ .len = 4, .bytes = { 10, 0, 0, n } };
}

static void start(uint32_t total, uint32_t per_source)
{
	memset(places, 0, sizeof places);
	now_ms = 1000000;
	l = handshake_limit_create(total, per_source);
	ck_assert_ptr_nonnull(l);
}

static void stop(void)
{
	for (unsigned i = 0; i < PLACES; i++)
		handshake_limit_leave(l, &places[i]);
	ck_assert_uint_eq(handshake_limit_count(l), 0);
	handshake_limit_destroy(l);
}

/* Takes place number @place. Returns the number of the place that had to be given up for it; -1 if none; or the error.
 */
static int enter_from(unsigned place, const struct client_address *from)
{
	struct handshake_place *loser;
	int r = handshake_limit_enter(l, &places[place], from, now_ms, &loser);

	ck_assert(r == 0 || !loser);
	return r < 0 ? r : loser ? (int)(loser - places) : -1;
}

static int enter(unsigned place, uint8_t source)
{
	struct client_address from = ipv4(source);

	return enter_from(place, &from);
}

START_TEST(below_the_limits_all_have_a_place)
{
	start(4, 2);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(enter(i, (uint8_t)(i / 2)), -1);
	ck_assert_uint_eq(handshake_limit_count(l), 4);
	stop();
}
END_TEST

START_TEST(a_source_has_its_share_and_no_more)
{
	start(0, 2);
	ck_assert_int_eq(enter(0, 1), -1);
	ck_assert_int_eq(enter(1, 1), -1);
	ck_assert_int_eq(enter(2, 1), CSSL_E_FULL);
	ck_assert_int_eq(enter(3, 2), -1);
	handshake_limit_leave(l, &places[0]);
	ck_assert_int_eq(enter(2, 1), -1);
	stop();
}
END_TEST

START_TEST(the_oldest_of_the_source_that_holds_most_gives_way_at_once)
{
	start(4, 0);
	ck_assert_int_eq(enter(0, 1), -1);
	ck_assert_int_eq(enter(1, 2), -1);
	ck_assert_int_eq(enter(2, 2), -1);
	ck_assert_int_eq(enter(3, 2), -1);
	ck_assert_int_eq(enter(4, 3), 1);
	ck_assert_ptr_null(places[1].source);
	ck_assert_uint_eq(handshake_limit_count(l), 4);
	stop();
}
END_TEST

START_TEST(a_newcomer_of_the_source_that_holds_most_is_refused)
{
	start(4, 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(enter(i, 1), -1);
	ck_assert_int_eq(enter(3, 2), -1);
	now_ms += 10 * HANDSHAKE_GRACE_MS;
	ck_assert_int_eq(enter(4, 1), CSSL_E_FULL);
	ck_assert_ptr_null(places[4].source);
	stop();
}
END_TEST

START_TEST(among_equals_the_oldest_gives_way_once_it_had_its_time)
{
	start(3, 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(enter(i, (uint8_t)(i + 1)), -1);
		now_ms += 10;
	}
	ck_assert_int_eq(enter(3, 9), CSSL_E_FULL);
	now_ms += HANDSHAKE_GRACE_MS - 30;
	ck_assert_int_eq(enter(3, 9), 0);
	ck_assert_int_eq(enter(4, 10), CSSL_E_FULL);
	stop();
}
END_TEST

START_TEST(a_flood_from_few_sources_takes_no_place_of_others)
{
	start(32, 0);
	for (unsigned i = 0; i < 8; i++) /* slow, and each by itself */
		ck_assert_int_eq(enter(i, (uint8_t)(100 + i)), -1);
	for (unsigned n = 0; n < 1000; n++) {
		unsigned free_place = 8;
		while (free_place < PLACES && places[free_place].source)
			free_place++;
		(void)enter(free_place, (uint8_t)(n % 3));
		now_ms += HANDSHAKE_GRACE_MS;
	}
	for (unsigned i = 0; i < 8; i++)
		ck_assert_ptr_nonnull(places[i].source);
	ck_assert_uint_eq(handshake_limit_count(l), 32);
	stop();
}
END_TEST

START_TEST(an_ipv6_site_is_one_source_with_a_larger_share)
{
	struct client_address from = { .len = 16, .bytes = { 0x20, 0x01, 0xd, 0xb8 } };

	start(0, 2);
	for (unsigned i = 0; i <= 2 * ADMISSION_OF_SITE; i++) {
		from.bytes[7] = (uint8_t)i;
		ck_assert_int_eq(enter_from(i, &from), i < 2 * ADMISSION_OF_SITE ? -1 : CSSL_E_FULL);
	}
	from.bytes[5] = 1;
	ck_assert_int_eq(enter_from(PLACES - 1, &from), -1);
	stop();
}
END_TEST

static struct client_address ipv6(uint8_t subnet, uint8_t host)
{
	return (struct client_address){ .len = 16, .bytes = { 0x20, 0x01, 0xd, 0xb8, [7] = subnet, [15] = host } };
}

/* The derived limits: a source has half of the total. */
START_TEST(neither_a_subnet_nor_a_site_takes_all_places)
{
	static const struct {
		unsigned subnets, most;
	} floods[] = { { 1, 16 }, { 200, 24 } };

	for (unsigned f = 0; f < 2; f++) {
		unsigned taken = 0;
		start(32, 16);
		for (unsigned i = 0; i < 200; i++) {
			struct client_address from = ipv6((uint8_t)(i % floods[f].subnets), (uint8_t)i);
			int r = enter_from(taken, &from);
			ck_assert_int_eq(r, taken < floods[f].most ? -1 : CSSL_E_FULL);
			taken += r == -1;
		}
		ck_assert_uint_eq(taken, floods[f].most);
		handshake_limit_leave(l, &places[0]);
		struct client_address again = ipv6(0, 0);
		ck_assert_int_eq(enter_from(0, &again), -1);
		stop();
	}
}
END_TEST

START_TEST(a_site_has_no_less_than_one_of_its_subnets)
{
	start(32, 30);
	for (unsigned i = 0; i < 31; i++) {
		struct client_address from = ipv6(1, (uint8_t)i);
		ck_assert_int_eq(enter_from(i, &from), i < 30 ? -1 : CSSL_E_FULL);
	}
	stop();
}
END_TEST

START_TEST(handshakes_of_another_process_are_counted_and_never_refused)
{
	struct client_address from = ipv4(1);

	start(2, 1);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(handshake_limit_bring(l, &places[i], &from, now_ms), 0);
	ck_assert_uint_eq(handshake_limit_count(l), 4);
	ck_assert_int_eq(enter(4, 1), CSSL_E_FULL);
	ck_assert_int_eq(enter(5, 2), 0);
	stop();
}
END_TEST

START_TEST(leaving_twice_is_leaving_once)
{
	start(2, 2);
	ck_assert_int_eq(enter(0, 1), -1);
	handshake_limit_leave(l, &places[0]);
	handshake_limit_leave(l, &places[0]);
	ck_assert_uint_eq(handshake_limit_count(l), 0);
	stop();
}
END_TEST

/* Any order of coming and going leaves the counts right. */
START_TEST(counts_survive_any_order)
{
	unsigned held = 0;

	start(24, 8);
	for (unsigned n = 0; n < 20000; n++) {
		unsigned i = randombytes_uniform(PLACES);
		now_ms += randombytes_uniform(100);
		if (places[i].source) {
			handshake_limit_leave(l, &places[i]);
		} else {
			(void)enter(i, (uint8_t)randombytes_uniform(7));
		}
		held = 0;
		for (unsigned k = 0; k < PLACES; k++)
			held += places[k].source != NULL;
		ck_assert_uint_eq(handshake_limit_count(l), held);
		ck_assert_uint_le(held, 24);
	}
	stop();
}
END_TEST

UNIT(handshake_limit)
{
	const TTest *const facts[] = {
		below_the_limits_all_have_a_place,
		a_source_has_its_share_and_no_more,
		the_oldest_of_the_source_that_holds_most_gives_way_at_once,
		a_newcomer_of_the_source_that_holds_most_is_refused,
		among_equals_the_oldest_gives_way_once_it_had_its_time,
		a_flood_from_few_sources_takes_no_place_of_others,
		an_ipv6_site_is_one_source_with_a_larger_share,
		neither_a_subnet_nor_a_site_takes_all_places,
		a_site_has_no_less_than_one_of_its_subnets,
		handshakes_of_another_process_are_counted_and_never_refused,
		leaving_twice_is_leaving_once,
		counts_survive_any_order,
	};

	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return suite_run("handshake_limit", facts, SUITE_LEN(facts));
}
