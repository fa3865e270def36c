/* test_destination_rules.c: facts about the destinations that mail may have. */
#include "smtpproxy/policy/destination_rules.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtpproxy_listener listeners[2];
static uint16_t ports[] = { 25, 2525 };
static struct address_net local[1];
static struct conf_smtpproxy conf;

static void begin(void)
{
	ck_assert_int_eq(address_parse("127.0.0.1:2525", &listeners[0].address), 0);
	ck_assert_int_eq(address_parse("[::]:2526", &listeners[1].address), 0);
	ck_assert_int_eq(address_net_parse("127.0.0.0/8", &local[0]), 0);
	conf = (struct conf_smtpproxy){ .listeners = listeners, .listener_count = 2 };
	conf.outward.any_port = CONF_OFF;
}

static enum destination_verdict judge(const char *to)
{
	struct sockaddr_storage address;
	struct destination_rules *r = destination_rules_create(&conf);
	ck_assert_int_eq(address_parse(to, &address), 0);
	enum destination_verdict v = destination_rules_judge(r, (const struct sockaddr *)&address, 1);
	destination_rules_destroy(r);
	return v;
}

START_TEST(only_port_25_is_allowed_unless_others_are_named)
{
	begin();
	ck_assert_int_eq(judge("192.0.2.1:25"), DESTINATION_ALLOWED);
	ck_assert_int_eq(judge("[2001:db8::1]:25"), DESTINATION_ALLOWED);
	ck_assert_int_eq(judge("192.0.2.1:587"), DESTINATION_BAD_PORT);
	conf.outward.ports = ports;
	conf.outward.port_count = 2;
	ck_assert_int_eq(judge("192.0.2.1:2525"), DESTINATION_ALLOWED);
	conf.outward.any_port = CONF_ON;
	ck_assert_int_eq(judge("192.0.2.1:587"), DESTINATION_ALLOWED);
}
END_TEST

START_TEST(no_mail_goes_into_this_host_unless_that_is_allowed)
{
	begin();
	ck_assert_int_eq(judge("127.0.0.1:25"), DESTINATION_LOCAL);
	ck_assert_int_eq(judge("[::1]:25"), DESTINATION_LOCAL);
	ck_assert_int_eq(judge("[::ffff:127.0.0.1]:25"), DESTINATION_LOCAL);
	conf.outward.local = local;
	conf.outward.local_count = 1;
	ck_assert_int_eq(judge("127.0.0.1:25"), DESTINATION_ALLOWED);
	ck_assert_int_eq(judge("[::1]:25"), DESTINATION_LOCAL);
}
END_TEST

START_TEST(mail_never_goes_to_our_own_listeners)
{
	begin();
	conf.outward.local = local;
	conf.outward.local_count = 1;
	conf.outward.ports = ports;
	conf.outward.port_count = 2;
	ck_assert_int_eq(judge("127.0.0.1:2525"), DESTINATION_OURSELVES);
	ck_assert_int_eq(judge("[::1]:2526"), DESTINATION_OURSELVES);
	ck_assert_int_eq(judge("127.0.0.2:2525"), DESTINATION_ALLOWED);
	struct sockaddr_storage never;
	ck_assert_int_eq(address_parse("127.0.0.2:2525", &never), 0);
	conf.outward.never = &never;
	conf.outward.never_count = 1;
	ck_assert_int_eq(judge("127.0.0.2:2525"), DESTINATION_OURSELVES);
	ck_assert_int_eq(judge("127.0.0.2:25"), DESTINATION_ALLOWED);
}
END_TEST

START_TEST(an_address_of_no_host_is_refused)
{
	begin();
	ck_assert_int_eq(judge("0.0.0.0:25"), DESTINATION_NOWHERE);
	ck_assert_int_eq(judge("224.0.0.1:25"), DESTINATION_NOWHERE);
	ck_assert_int_eq(judge("255.255.255.255:25"), DESTINATION_NOWHERE);
	ck_assert_int_eq(judge("[ff02::1]:25"), DESTINATION_NOWHERE);
}
END_TEST

UNIT(destination_rules)
{
	const TTest *facts[] = {
		only_port_25_is_allowed_unless_others_are_named,
		no_mail_goes_into_this_host_unless_that_is_allowed,
		mail_never_goes_to_our_own_listeners,
		an_address_of_no_host_is_refused,
	};
	return suite_run("destination_rules", facts, SUITE_LEN(facts));
}
