/* test_sources.c: facts of the pool of source addresses. */
#include "smtpproxy/outward/outward.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtpproxy_source pool[3];
static const struct smtpproxy_outward outward = { .sources = pool, .source_count = 3 };

static void fill(void)
{
	ck_assert_int_eq(address_parse_host("192.0.2.1", &pool[0].address), 0);
	ck_assert_int_eq(address_parse_host("2001:db8::1", &pool[1].address), 0);
	ck_assert_int_eq(address_parse_host("192.0.2.2", &pool[2].address), 0);
	pool[0].weight = 1;
	pool[1].weight = 5;
	pool[2].weight = 3;
}

START_TEST(connections_are_shared_by_weight)
{
	unsigned counts[3] = { 0 };
	fill();
	for (uint32_t nth = 0; nth < 40; nth++)
		counts[sources_pick(&outward, AF_INET, nth) - pool]++;
	ck_assert_uint_eq(counts[0], 10);
	ck_assert_uint_eq(counts[1], 0);
	ck_assert_uint_eq(counts[2], 30);
}
END_TEST

START_TEST(a_family_without_a_source_has_none)
{
	const struct smtpproxy_outward v4 = { .sources = pool, .source_count = 1 };
	fill();
	ck_assert_ptr_null(sources_pick(&v4, AF_INET6, 7));
	ck_assert_ptr_null(sources_pick(&(struct smtpproxy_outward){ 0 }, AF_INET, 0));
	ck_assert_ptr_eq(sources_pick(&outward, AF_INET6, 7), &pool[1]);
}
END_TEST

UNIT(sources)
{
	const TTest *facts[] = { connections_are_shared_by_weight, a_family_without_a_source_has_none };
	return suite_run("sources", facts, SUITE_LEN(facts));
}
