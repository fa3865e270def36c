/* test_service_traits.c: facts that hold of every service. */
#include "conf/service_traits.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

START_TEST(each_service_has_a_name_of_its_own)
{
	for (int i = 0; i < CONF_SERVICE_COUNT; i++) {
		ck_assert_ptr_nonnull(service_traits[i].name);
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(service_traits[i].name, service_traits[j].name);
	}
}
END_TEST

/* A connection may rest only at a checkpoint, and only a request that was understood may be asked again. */
START_TEST(what_is_not_followed_neither_rests_nor_repeats_nor_judges_ends)
{
	const struct service_traits *t = &service_traits[_i];

	if (t->following == SERVICE_FOLLOWED)
		return;
	ck_assert_int_eq(t->rest, SERVICE_NEVER_RESTS);
	ck_assert_int_eq(t->loss, SERVICE_CUT_BY_LOSS);
	ck_assert_int_eq(t->ends, SERVICE_HALVES_END);
}
END_TEST

/* A service that gives up has the traits of tcp. */
START_TEST(tcp_is_not_followed)
{
	ck_assert_int_eq(service_traits[CONF_TCP].following, SERVICE_NOT_FOLLOWED);
}
END_TEST

/* The names of ALPN have one byte for their length (RFC 7301 3.1). */
START_TEST(each_protocol_of_a_service_is_one_of_alpn)
{
	for (const char *const *protocol = service_alpn((enum conf_service)_i); *protocol; protocol++) {
		ck_assert_uint_ge(strlen(*protocol), 1);
		ck_assert_uint_le(strlen(*protocol), UINT8_MAX);
	}
}
END_TEST

UNIT(service_traits)
{
	TCase *facts = tcase_create("service_traits");

	tcase_add_test(facts, each_service_has_a_name_of_its_own);
	tcase_add_loop_test(
		facts, what_is_not_followed_neither_rests_nor_repeats_nor_judges_ends, 0, CONF_SERVICE_COUNT);
	tcase_add_test(facts, tcp_is_not_followed);
	tcase_add_loop_test(facts, each_protocol_of_a_service_is_one_of_alpn, 0, CONF_SERVICE_COUNT);
	return facts_run(facts);
}
