/* test_control_guard.c: facts of the guard against guessing. */
#include <check.h>
#include <stdio.h>

#include "net/limits/admission.h"
#include "net/socket/address.h"
#include "ragent/control/access/control_guard.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct control_guard g;

static const struct sockaddr *host(unsigned number)
{
	static struct sockaddr_storage a;
	char text[32];
	snprintf(text, sizeof text, "10.%u.%u.%u", number >> 16, number >> 8 & 255, number & 255);
	ck_assert_int_eq(address_parse_host(text, &a), 0);
	return (struct sockaddr *)&a;
}

static const struct sockaddr *ipv6_host(unsigned subnet, unsigned number)
{
	static struct sockaddr_storage a;
	char text[64];
	snprintf(text, sizeof text, "2001:db8:1:%x::%x", subnet, number);
	ck_assert_int_eq(address_parse_host(text, &a), 0);
	return (struct sockaddr *)&a;
}

static void fail_often(unsigned from, unsigned times, uint64_t now_ms)
{
	for (unsigned i = 0; i < times; i++)
		control_guard_failed(&g, host(from), now_ms);
}

START_TEST(a_source_that_fails_a_few_times_may_go_on)
{
	g.count = 0;
	fail_often(1, GUARD_FAILURES_MAX - 1, 1000);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(1), 1000), 0);
}
END_TEST

START_TEST(only_a_source_that_fails_too_often_waits)
{
	g.count = 0;
	fail_often(1, GUARD_FAILURES_MAX, 1000);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(1), 1001), 60);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(1), 1000 + GUARD_PERIOD_MS - 1), 1);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(2), 1001), 0);
}
END_TEST

/* Else who has a /64 would never wait. */
START_TEST(an_ipv6_source_is_a_subnet)
{
	g.count = 0;
	for (unsigned i = 0; i < GUARD_FAILURES_MAX; i++)
		control_guard_failed(&g, ipv6_host(0, i + 1), 1000);
	ck_assert_uint_eq(control_guard_wait_s(&g, ipv6_host(0, 99), 1000), 60);
	ck_assert_uint_eq(control_guard_wait_s(&g, ipv6_host(1, 99), 1000), 0);
}
END_TEST

START_TEST(an_ipv6_site_has_the_failures_of_several_subnets)
{
	const unsigned most = GUARD_FAILURES_MAX * ADMISSION_OF_SITE;

	g.count = 0;
	for (unsigned i = 0; i < most; i++) {
		ck_assert_uint_eq(control_guard_wait_s(&g, ipv6_host(i, 1), 1000), 0);
		control_guard_failed(&g, ipv6_host(i, 1), 1000);
	}
	ck_assert_uint_eq(control_guard_wait_s(&g, ipv6_host(most, 1), 1000), 60);
}
END_TEST

START_TEST(after_the_period_all_is_forgotten)
{
	g.count = 0;
	fail_often(1, GUARD_FAILURES_MAX, 1000);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(1), 1000 + GUARD_PERIOD_MS), 0);
	control_guard_failed(&g, host(1), 1000 + GUARD_PERIOD_MS);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(1), 1000 + GUARD_PERIOD_MS), 0);
}
END_TEST

START_TEST(failures_that_are_far_apart_do_not_add_up)
{
	g.count = 0;
	for (unsigned i = 0; i < 5 * GUARD_FAILURES_MAX; i++)
		control_guard_failed(&g, host(1), 1000 + i * (GUARD_PERIOD_MS / 5));
	ck_assert_uint_eq(control_guard_wait_s(&g, host(1), 1000 + 5 * GUARD_FAILURES_MAX * (GUARD_PERIOD_MS / 5)), 0);
}
END_TEST

START_TEST(of_too_many_sources_the_oldest_makes_room)
{
	g.count = 0;
	for (unsigned i = 0; i < GUARD_SOURCES_MAX; i++)
		fail_often(i, GUARD_FAILURES_MAX, 1000 + i);
	fail_often(GUARD_SOURCES_MAX, GUARD_FAILURES_MAX, 9000);
	ck_assert_uint_eq(g.count, GUARD_SOURCES_MAX);
	ck_assert_uint_eq(control_guard_wait_s(&g, host(0), 9000), 0);
	ck_assert_uint_gt(control_guard_wait_s(&g, host(1), 9000), 0);
	ck_assert_uint_gt(control_guard_wait_s(&g, host(GUARD_SOURCES_MAX), 9000), 0);
}
END_TEST

UNIT(control_guard)
{
	const TTest *const facts[] = { a_source_that_fails_a_few_times_may_go_on,
		only_a_source_that_fails_too_often_waits, an_ipv6_source_is_a_subnet,
		an_ipv6_site_has_the_failures_of_several_subnets, after_the_period_all_is_forgotten,
		failures_that_are_far_apart_do_not_add_up, of_too_many_sources_the_oldest_makes_room };
	return suite_run("control_guard", facts, SUITE_LEN(facts));
}
