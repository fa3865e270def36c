/* test_replies.c: facts of the table that counts replies by receiver and code. */
#include "smtpproxy/outward/replies.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define START_MS 5000u

static struct replies all;
static char *text;

static const char *written(void)
{
	size_t len;
	free(text);
	FILE *f = open_memstream(&text, &len);
	replies_write(&all, f);
	fclose(f);
	return text;
}

static void has(const char *line)
{
	ck_assert_msg(strstr(written(), line) != NULL, "%s is not in:\n%s", line, text);
}

static unsigned rows(void)
{
	unsigned n = 0;
	for (const char *at = strstr(written(), "{receiver="); at; at = strstr(at + 1, "{receiver="))
		n++;
	return n;
}

/* Receivers r0, r1, ...: one reply each. */
static void fill(unsigned receivers, uint64_t now_ms)
{
	char name[32];
	for (unsigned i = 0; i < receivers; i++) {
		snprintf(name, sizeof name, "r%u", i);
		replies_count(&all, name, 250, now_ms);
	}
}

START_TEST(each_receiver_and_code_has_a_row)
{
	replies_count(&all, "mx.example", 250, START_MS);
	replies_count(&all, "mx.example", 250, START_MS);
	replies_count(&all, "mx.example", 550, START_MS);
	replies_count(&all, "192.0.2.1:25", 250, START_MS);
	ck_assert_str_eq(written(), "# HELP smtpproxy_replies_total replies of receivers, by receiver and code\n"
				    "# TYPE smtpproxy_replies_total counter\n"
				    "smtpproxy_replies_total{receiver=\"mx.example\",code=\"250\"} 2\n"
				    "smtpproxy_replies_total{receiver=\"mx.example\",code=\"550\"} 1\n"
				    "smtpproxy_replies_total{receiver=\"192.0.2.1:25\",code=\"250\"} 1\n");
}
END_TEST

START_TEST(codes_that_no_rfc_has_share_the_row_of_their_class)
{
	for (unsigned code = 200; code <= 599; code++)
		replies_count(&all, "mx.example", code, START_MS);
	ck_assert_uint_eq(rows(), REPLIES_CODES);
	has("code=\"2xx\"} 93\n");
	has("code=\"3xx\"} 99\n");
	has("code=\"4xx\"} 94\n");
	has("code=\"5xx\"} 86\n");
	has("code=\"554\"} 1\n");
}
END_TEST

START_TEST(further_receivers_count_for_the_others)
{
	fill(REPLIES_RECEIVERS_MAX + 7, START_MS);
	ck_assert_uint_eq(rows(), REPLIES_RECEIVERS_MAX + 1);
	has("{receiver=\"r99\",code=\"250\"} 1\n");
	has("{receiver=\"others\",code=\"250\"} 7\n");
}
END_TEST

START_TEST(a_receiver_with_the_name_of_the_others_is_one_of_them)
{
	replies_count(&all, "others", 250, START_MS);
	fill(REPLIES_RECEIVERS_MAX + 1, START_MS);
	ck_assert_uint_eq(rows(), REPLIES_RECEIVERS_MAX + 1);
	has("{receiver=\"others\",code=\"250\"} 2\n");
}
END_TEST

START_TEST(the_row_of_the_most_silent_receiver_goes_to_a_new_one_after_an_hour)
{
	fill(REPLIES_RECEIVERS_MAX, START_MS);
	replies_count(&all, "r0", 250, START_MS + 1);
	replies_count(&all, "new", 421, START_MS + REPLIES_KEPT_MS - 1);
	has("{receiver=\"others\",code=\"421\"} 1\n");
	replies_count(&all, "new", 421, START_MS + REPLIES_KEPT_MS);
	has("{receiver=\"new\",code=\"421\"} 1\n");
	ck_assert_ptr_null(strstr(written(), "\"r1\""));
	has("{receiver=\"r0\",code=\"250\"} 2\n");
	has("{receiver=\"others\",code=\"250\"} 1\n");
	has("{receiver=\"others\",code=\"421\"} 1\n");
}
END_TEST

START_TEST(no_name_breaks_its_line)
{
	char name[DNS_NAME_TEXT];
	replies_name("a\"} 9\n#\\\x7f\xc3\xa9 b", name);
	ck_assert_str_eq(name, "a_}_9_#_____b");
	replies_name("[2001:db8::1]:25", name);
	ck_assert_str_eq(name, "[2001:db8::1]:25");
}
END_TEST

START_TEST(a_name_that_is_too_long_is_cut)
{
	char name[2 * DNS_NAME_TEXT], out[DNS_NAME_TEXT];
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	replies_name(name, out);
	ck_assert_uint_eq(strlen(out), DNS_NAME_TEXT - 1);
}
END_TEST

static void forget(void)
{
	memset(&all, 0, sizeof(all));
}

UNIT(replies)
{
	const TTest *facts[] = {
		each_receiver_and_code_has_a_row,
		codes_that_no_rfc_has_share_the_row_of_their_class,
		further_receivers_count_for_the_others,
		a_receiver_with_the_name_of_the_others_is_one_of_them,
		the_row_of_the_most_silent_receiver_goes_to_a_new_one_after_an_hour,
		no_name_breaks_its_line,
		a_name_that_is_too_long_is_cut,
	};

	return suite_run_with("replies", forget, facts, SUITE_LEN(facts));
}
