/* test_mx_list.c: facts of the order in which mail servers are tried. */
#include "smtpproxy/dns/records.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MOST 32u

static uint8_t bytes[MOST][16];
static struct dns_record records[MOST];
static size_t count;
static struct mx_list list;

/* Makes a host name of one label with one letter. A space makes the root. */
static void add(uint8_t preference, char host)
{
	const size_t len = host == ' ' ? 3 : 5;
	uint8_t *b = bytes[count];
	b[1] = preference;
	b[2] = host == ' ' ? 0 : 1;
	b[3] = (uint8_t)host;
	records[count++] = (struct dns_record){ b, len };
}

static uint32_t first(uint32_t below)
{
	return 0;
}

static uint32_t last(uint32_t below)
{
	return below - 1;
}

static enum mx_verdict read_with(uint32_t (*random)(uint32_t below))
{
	return mx_list_read(&list, records, count, "own", random);
}

static void ck_order(const char *letters)
{
	ck_assert_uint_eq(list.count, strlen(letters));
	for (unsigned i = 0; i < list.count; i++)
		ck_assert_int_eq(list.at[i].host[0], letters[i]);
}

START_TEST(the_smallest_preference_comes_first)
{
	add(30, 'c');
	add(10, 'a');
	add(20, 'b');
	ck_assert_int_eq(read_with(first), MX_HOSTS);
	ck_order("abc");
}
END_TEST

START_TEST(servers_of_one_preference_are_in_random_order)
{
	add(10, 'a');
	add(10, 'b');
	add(5, 'c');
	add(10, 'd');
	ck_assert_int_eq(read_with(first), MX_HOSTS);
	ck_order("cdba");
	ck_assert_int_eq(read_with(last), MX_HOSTS);
	ck_order("cabd");
}
END_TEST

START_TEST(the_root_alone_means_no_mail)
{
	add(0, ' ');
	ck_assert_int_eq(read_with(first), MX_NULL);
}
END_TEST

START_TEST(the_root_beside_servers_is_left_out)
{
	add(0, ' ');
	add(10, 'a');
	ck_assert_int_eq(read_with(first), MX_HOSTS);
	ck_order("a");
}
END_TEST

START_TEST(our_own_name_cuts_the_list)
{
	add(10, 'a');
	add(20, 'o');
	add(20, 'b');
	add(30, 'c');
	ck_assert_int_eq(mx_list_read(&list, records, count, "O", last), MX_HOSTS);
	ck_order("a");
}
END_TEST

START_TEST(our_own_name_first_is_a_loop)
{
	add(10, 'o');
	add(20, 'b');
	ck_assert_int_eq(mx_list_read(&list, records, count, "o", last), MX_LOOP);
}
END_TEST

START_TEST(records_without_a_host_name_are_broken)
{
	add(10, '\n');
	ck_assert_int_eq(read_with(first), MX_BROKEN);
}
END_TEST

START_TEST(the_best_of_too_many_servers_are_kept)
{
	for (unsigned i = 0; i < MOST; i++)
		add((uint8_t)(MOST - i), (char)('a' + i % 26));
	ck_assert_int_eq(read_with(last), MX_HOSTS);
	ck_assert_uint_eq(list.count, MX_LIST_MAX);
	for (unsigned i = 0; i < MX_LIST_MAX; i++)
		ck_assert_uint_eq(list.at[i].preference, i + 1);
}
END_TEST

static void begin(void)
{
	count = 0;
}

UNIT(mx_list)
{
	const TTest *facts[] = {
		the_smallest_preference_comes_first,
		servers_of_one_preference_are_in_random_order,
		the_root_alone_means_no_mail,
		the_root_beside_servers_is_left_out,
		our_own_name_cuts_the_list,
		our_own_name_first_is_a_loop,
		records_without_a_host_name_are_broken,
		the_best_of_too_many_servers_are_kept,
	};
	return suite_run_with("mx_list", begin, facts, SUITE_LEN(facts));
}
