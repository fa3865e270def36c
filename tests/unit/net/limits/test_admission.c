/* test_admission.c: facts of how many connections there may be. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <sodium.h>

#include "net/limits/admission.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct client_address ipv4(uint32_t n)
{
	return (struct client_address){ .len = 4,
		.bytes = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n } };
}

START_TEST(the_total_is_limited_and_given_back)
{
	struct admission *a = admission_create(2, 0);

	ck_assert_int_eq(admission_enter(a), 0);
	ck_assert_int_eq(admission_enter(a), 0);
	ck_assert_int_eq(admission_enter(a), CSSL_E_FULL);
	ck_assert_uint_eq(admission_total(a), 2);
	admission_leave(a);
	ck_assert_int_eq(admission_enter(a), 0);
	admission_destroy(a);
}
END_TEST

START_TEST(who_may_go_beyond_the_limit_gets_in_and_keeps_others_out)
{
	struct admission *a = admission_create(2, 0);

	ck_assert_int_eq(admission_enter(a), 0);
	ck_assert_int_eq(admission_enter(a), 0);
	ck_assert_int_eq(admission_enter_beyond(a, 2), 0);
	ck_assert_int_eq(admission_enter_beyond(a, 2), 0);
	ck_assert_int_eq(admission_enter_beyond(a, 2), CSSL_E_FULL);
	admission_leave(a);
	admission_leave(a);
	ck_assert_int_eq(admission_enter(a), CSSL_E_FULL);
	ck_assert_int_eq(admission_enter_beyond(a, 2), 0);
	admission_set_limits(a, UINT32_MAX, 0);
	ck_assert_int_eq(admission_enter_beyond(a, 2), 0);
	admission_destroy(a);
}
END_TEST

START_TEST(no_limit_limits_nothing)
{
	struct admission *a = admission_create(0, 0);
	struct client_address c = ipv4(1);

	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(admission_enter(a), 0);
		ck_assert_int_eq(admission_enter_source(a, &c), 0);
	}
	ck_assert_uint_eq(admission_total(a), 1000);
	admission_destroy(a);
}
END_TEST

START_TEST(a_source_is_limited_and_others_are_not_its_business)
{
	struct admission *a = admission_create(0, 2);
	struct client_address one = ipv4(1), other = ipv4(2);

	ck_assert_int_eq(admission_enter_source(a, &one), 0);
	ck_assert_int_eq(admission_enter_source(a, &one), 0);
	ck_assert_int_eq(admission_enter_source(a, &one), CSSL_E_FULL);
	ck_assert_int_eq(admission_enter_source(a, &other), 0);
	admission_leave_source(a, &one);
	ck_assert_int_eq(admission_enter_source(a, &one), 0);
	admission_destroy(a);
}
END_TEST

START_TEST(an_ipv6_source_is_its_64_bit_prefix)
{
	struct admission *a = admission_create(0, 1);
	struct client_address one = { .len = 16, .bytes = { 0x20, 0x01, 0xd, 0xb8 } };
	struct client_address neighbour = one, stranger = one;

	neighbour.bytes[15] = 9;
	stranger.bytes[7] = 9;
	ck_assert_int_eq(admission_enter_source(a, &one), 0);
	ck_assert_int_eq(admission_enter_source(a, &neighbour), CSSL_E_FULL);
	ck_assert_int_eq(admission_enter_source(a, &stranger), 0);
	admission_destroy(a);
}
END_TEST

/* 2001:db8:0:N::1 */
static struct client_address subscriber(unsigned n)
{
	return (struct client_address){ .len = 16,
		.bytes = { 0x20, 0x01, 0xd, 0xb8, [6] = (uint8_t)(n >> 8), (uint8_t)n, [15] = 1 } };
}

START_TEST(all_of_an_ipv6_site_have_a_share_together)
{
	struct admission *a = admission_create(0, 2);
	struct client_address elsewhere = subscriber(0);
	unsigned admitted = 0;

	elsewhere.bytes[5] = 1;
	for (unsigned n = 0; n < 1000; n++) {
		struct client_address c = subscriber(n);
		admitted += admission_enter_source(a, &c) == 0;
	}
	ck_assert_uint_eq(admitted, 2 * ADMISSION_OF_SITE);
	ck_assert_int_eq(admission_enter_source(a, &elsewhere), 0);
	struct client_address first = subscriber(0), refused = subscriber(999);
	admission_leave_source(a, &first);
	ck_assert_int_eq(admission_enter_source(a, &refused), 0);
	ck_assert_int_eq(admission_enter_source(a, &refused), CSSL_E_FULL);
	admission_destroy(a);
}
END_TEST

START_TEST(a_refused_source_leaves_nothing_behind)
{
	struct admission *a = admission_create(0, 1);
	struct client_address c = subscriber(1);

	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(admission_enter_source(a, &c), i ? CSSL_E_FULL : 0);
	for (unsigned n = 2; n < 1 + ADMISSION_OF_SITE; n++) { /* the refusals did not count for its site */
		struct client_address other = subscriber(n);
		ck_assert_int_eq(admission_enter_source(a, &other), 0);
	}
	admission_destroy(a);
}
END_TEST

START_TEST(many_sources_are_kept_apart)
{
	struct admission *a = admission_create(0, 1);

	for (uint32_t i = 0; i < 5000; i++) {
		struct client_address c = ipv4(i * 2654435761u);
		ck_assert_int_eq(admission_enter_source(a, &c), 0);
		ck_assert_int_eq(admission_enter_source(a, &c), CSSL_E_FULL);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		struct client_address c = ipv4(i * 2654435761u);
		admission_leave_source(a, &c);
		ck_assert_int_eq(admission_enter_source(a, &c), 0);
	}
	admission_destroy(a);
}
END_TEST

START_TEST(clients_of_another_process_are_counted_and_never_refused)
{
	struct admission *a = admission_create(1, 1);
	struct client_address c = ipv4(1);

	for (unsigned i = 0; i < 3; i++) {
		admission_bring(a);
		ck_assert_int_eq(admission_bring_source(a, &c), 0);
	}
	ck_assert_uint_eq(admission_total(a), 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(admission_enter(a), CSSL_E_FULL);
		ck_assert_int_eq(admission_enter_source(a, &c), CSSL_E_FULL);
		admission_leave(a);
		admission_leave_source(a, &c);
	}
	ck_assert_int_eq(admission_enter(a), 0);
	ck_assert_int_eq(admission_enter_source(a, &c), 0);
	admission_destroy(a);
}
END_TEST

static struct admission *shared;

static void *come_and_go(void *arg)
{
	struct client_address c = ipv4(1);

	for (unsigned i = 0; i < 20000; i++) {
		if (admission_enter(shared) < 0)
			continue;
		if (admission_enter_source(shared, &c) == 0)
			admission_leave_source(shared, &c);
		admission_leave(shared);
	}
	return NULL;
}

START_TEST(threads_lose_no_count)
{
	pthread_t threads[4];
	struct client_address c = ipv4(1);

	shared = admission_create(3, 2);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(admission_total(shared), 0);
	ck_assert_int_eq(admission_enter_source(shared, &c), 0);
	ck_assert_int_eq(admission_enter_source(shared, &c), 0);
	ck_assert_int_eq(admission_enter_source(shared, &c), CSSL_E_FULL);
	admission_destroy(shared);
}
END_TEST

UNIT(admission)
{
	const TTest *const facts[] = {
		the_total_is_limited_and_given_back,
		who_may_go_beyond_the_limit_gets_in_and_keeps_others_out,
		no_limit_limits_nothing,
		a_source_is_limited_and_others_are_not_its_business,
		an_ipv6_source_is_its_64_bit_prefix,
		clients_of_another_process_are_counted_and_never_refused,
		all_of_an_ipv6_site_have_a_share_together,
		a_refused_source_leaves_nothing_behind,
		many_sources_are_kept_apart,
		threads_lose_no_count,
	};

	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return suite_run("admission", facts, SUITE_LEN(facts));
}
