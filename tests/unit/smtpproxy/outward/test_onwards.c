/* test_onwards.c: facts of the connections of one destination. */
#include "smtpproxy/outward/onwards.h"

#include <stdio.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct onwards all;
static uint32_t shared[DESTINATION_PLACES];
static struct onward one, other;

static void setup(void)
{
	all = (struct onwards){ 0 };
	onwards_init(&all, shared);
	one = other = (struct onward){ 0 };
	snprintf(one.greeting.name, sizeof one.greeting.name, "one.example");
	snprintf(other.greeting.name, sizeof other.greeting.name, "other.example");
	onwards_add(&all, &one);
	onwards_add(&all, &other);
}

START_TEST(each_change_counts_for_the_destination_and_for_its_receiver)
{
	shared[DESTINATION_IDLE] = 3; /* of another destination */
	onwards_place(&all, &one, DESTINATION_LEASED);
	ck_assert_uint_eq(all.in[DESTINATION_OPENING], 1);
	ck_assert_uint_eq(all.in[DESTINATION_LEASED], 1);
	ck_assert_uint_eq(shared[DESTINATION_LEASED], 1);
	ck_assert_uint_eq(onwards_count(shared), 5);
	ck_assert_uint_eq(onwards_usable(shared), 4);
	onwards_remove(&all, &one);
	onwards_remove(&all, &other);
	ck_assert_uint_eq(onwards_count(all.in), 0);
	ck_assert_uint_eq(onwards_count(shared), 3);
}
END_TEST

START_TEST(an_idle_connection_that_knows_the_name_comes_first)
{
	ck_assert_ptr_null(onwards_find_idle(&all, "one.example"));
	onwards_place(&all, &one, DESTINATION_IDLE);
	ck_assert_ptr_eq(onwards_find_idle(&all, "other.example"), &one);
	onwards_place(&all, &other, DESTINATION_IDLE);
	ck_assert_ptr_eq(onwards_find_idle(&all, "one.example"), &one);
	ck_assert_ptr_eq(onwards_find_idle(&all, "other.example"), &other);
}
END_TEST

START_TEST(connections_without_tls_are_of_an_earlier_age)
{
	one.taken = other.taken = 1;
	other.tls = (struct onward_tls *)&other;
	onwards_age_clear_ones(&all);
	ck_assert_uint_ne(one.age, all.age);
	ck_assert_uint_eq(other.age, all.age);
}
END_TEST

START_TEST(connections_that_may_still_try_tls_are_of_the_new_age)
{
	other.demand.clear = ONWARD_CLEAR_BY_FALLBACK;
	onwards_age_clear_ones(&all);
	ck_assert_uint_eq(one.age, all.age);
	ck_assert_uint_ne(other.age, all.age);
	onwards_age_clear_ones(&all);
	ck_assert_uint_ne(other.age, all.age); /* once too old, always too old */
}
END_TEST

UNIT(onwards)
{
	const TTest *facts[] = {
		each_change_counts_for_the_destination_and_for_its_receiver,
		an_idle_connection_that_knows_the_name_comes_first,
		connections_without_tls_are_of_an_earlier_age,
		connections_that_may_still_try_tls_are_of_the_new_age,
	};
	return suite_run_with("onwards", setup, facts, SUITE_LEN(facts));
}
