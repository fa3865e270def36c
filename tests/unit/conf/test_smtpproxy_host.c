/* test_smtpproxy_host.c: facts of the addresses of this host that smtpproxy's file names. */
#include <stdio.h>
#include <string.h>

#include "conf/smtpproxy.h"
#include "proto/error.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

/* An address that no host has (RFC 5737). */
#define NOBODYS "192.0.2.77"

static char error[4096];

static int check(const char *listener, const char *source)
{
	char text[512];
	struct conf_smtpproxy *c;
	snprintf(text, sizeof text,
		"name: m\nlisteners:\n  - { address: '%s', trusted: [ 127.0.0.1/32 ] }\n"
		"outward:\n  sources:\n    - address: 127.0.0.1\n    - address: %s\n",
		listener, source);
	ck_assert_msg(conf_smtpproxy_parse(text, strlen(text), "f.yaml", &c, error, sizeof error) == 0, "%s", error);
	const int r = conf_smtpproxy_check_host(c, error, sizeof error);
	conf_smtpproxy_destroy(c);
	return r;
}

START_TEST(addresses_of_this_host_are_good)
{
	ck_assert_int_eq(check("0.0.0.0:25", "127.0.0.2"), 0);
	ck_assert_int_eq(check("127.0.0.1:1", "127.0.0.2"), 0);
	ck_assert_str_eq(error, "");
}
END_TEST

START_TEST(an_address_that_the_host_lacks_is_named)
{
	ck_assert_int_eq(check("0.0.0.0:25", NOBODYS), CSSL_E_CONFIG);
	ck_assert_str_eq(error,
		"f.yaml:7: key 'outward.sources.address': found '" NOBODYS ":0', expected an address of this host");
	ck_assert_int_eq(check(NOBODYS ":25", "127.0.0.2"), CSSL_E_CONFIG);
	ck_assert_str_eq(
		error, "f.yaml:3: key 'listeners.address': found '" NOBODYS ":25', expected an address of this host");
}
END_TEST

UNIT(smtpproxy_host)
{
	TCase *facts = tcase_create("smtpproxy_host");
	tcase_add_test(facts, addresses_of_this_host_are_good);
	tcase_add_test(facts, an_address_that_the_host_lacks_is_named);
	return facts_run(facts);
}
