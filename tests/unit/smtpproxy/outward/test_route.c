/* test_route.c: facts of the pool of source addresses, and of what the file says of a receiver. */
#include "smtpproxy/outward/route.h"

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
		counts[route_pick_source(&outward, AF_INET, nth) - pool]++;
	ck_assert_uint_eq(counts[0], 10);
	ck_assert_uint_eq(counts[1], 0);
	ck_assert_uint_eq(counts[2], 30);
}
END_TEST

START_TEST(a_family_without_a_source_has_none)
{
	const struct smtpproxy_outward v4 = { .sources = pool, .source_count = 1 };
	fill();
	ck_assert_ptr_null(route_pick_source(&v4, AF_INET6, 7));
	ck_assert_ptr_null(route_pick_source(&(struct smtpproxy_outward){ 0 }, AF_INET, 0));
	ck_assert_ptr_eq(route_pick_source(&outward, AF_INET6, 7), &pool[1]);
}
END_TEST

static struct smtpproxy_receiver rows[1];
static struct conf_smtpproxy conf = {
	.outward = { .receivers = rows, .tls = SMTPPROXY_TLS_MAY },
	.limits.connections = 20,
};

static struct sockaddr_storage receiver_at(const char *text)
{
	struct sockaddr_storage to;
	ck_assert_int_eq(address_parse_host(text, &to), 0);
	return to;
}

START_TEST(a_receiver_without_a_row_has_the_tls_of_all_and_the_name_that_it_was_found_by)
{
	const struct sockaddr_storage to = receiver_at("192.0.2.9");
	const struct destination_goal goal = {
		.to = (const struct sockaddr *)&to, .host = "mx.example", .tls = SMTPPROXY_TLS_BY_ADDRESS
	};
	struct onward_route r = route_make(&conf, &goal, &(struct client_address){ 0 });
	ck_assert_uint_eq(route_apply_file(&r, &conf, &goal), 20);
	ck_assert_int_eq(r.tls, SMTPPROXY_TLS_MAY);
	ck_assert_str_eq(r.name, "mx.example");
}
END_TEST

START_TEST(routes_are_the_same_by_address_and_by_id)
{
	const struct sockaddr_storage to = receiver_at("192.0.2.9"), elsewhere = receiver_at("192.0.2.10");
	const uint8_t id[ONWARD_ID_LEN] = { 1 };
	const struct client_address nobody = { 0 };
	const struct destination_goal plain = { .to = (const struct sockaddr *)&to },
				      named = { .to = (const struct sockaddr *)&to, .unique_id = id },
				      other = { .to = (const struct sockaddr *)&elsewhere };
	const struct onward_route a = route_make(&conf, &plain, &nobody), b = route_make(&conf, &plain, &nobody),
				  c = route_make(&conf, &named, &nobody), d = route_make(&conf, &other, &nobody);
	ck_assert(route_is_same(&a, &b));
	ck_assert_uint_eq(route_hash(&a), route_hash(&b));
	ck_assert(!route_is_same(&a, &c));
	ck_assert(!route_is_same(&a, &d));
	ck_assert_uint_eq(route_receiver_hash(&a), route_receiver_hash(&c));
}
END_TEST

UNIT(route)
{
	const TTest *facts[] = { connections_are_shared_by_weight, a_family_without_a_source_has_none,
		a_receiver_without_a_row_has_the_tls_of_all_and_the_name_that_it_was_found_by,
		routes_are_the_same_by_address_and_by_id };
	return suite_run("route", facts, SUITE_LEN(facts));
}
