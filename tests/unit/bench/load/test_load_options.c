/* test_load_options.c: facts of the command line of cssl-bench https. */
#include <stdio.h>
#include <string.h>

#include "bench/load/load_options.h"
#include "net/socket/address.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define WORDS_MAX 16

static struct load_options options;

/* @line: words between single spaces, behind "https --connect 127.0.0.1:443". */
static enum option_parse parse(const char *line)
{
	static char text[256];
	char *words[WORDS_MAX];
	int count = 0;

	snprintf(text, sizeof(text), "https --connect 127.0.0.1:443 %s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		ck_assert_int_lt(count, WORDS_MAX);
		words[count++] = word;
	}
	return load_options_parse(count, words, &options);
}

START_TEST(alone_it_is_ten_seconds_of_full_handshakes)
{
	ck_assert_int_eq(parse(""), OPTIONS_PARSED);
	ck_assert_uint_eq(options.duration_ms, 10000);
	ck_assert_uint_eq(options.connections, 0);
	ck_assert_uint_eq(options.requests, 1);
	ck_assert_int_eq(mix_offers(&options.mix, 5), 0);
	ck_assert(options.schedule.rate == 0);
	ck_assert_uint_eq(options.path_count, 1);
}
END_TEST

START_TEST(a_count_needs_no_duration)
{
	ck_assert_int_eq(parse("--connections 50"), OPTIONS_PARSED);
	ck_assert_uint_eq(options.connections, 50);
	ck_assert_uint_eq(options.duration_ms, 0);
}
END_TEST

START_TEST(seconds_may_have_fractions_and_counts_may_not)
{
	ck_assert_int_eq(parse("--duration 1.5 --ramp 0.25"), OPTIONS_PARSED);
	ck_assert_uint_eq(options.duration_ms, 1500);
	ck_assert_uint_eq(options.schedule.ramp_ns, 250000000);
	ck_assert_int_eq(parse("--clients 1.5"), OPTIONS_BAD);
}
END_TEST

START_TEST(each_path_becomes_a_request_for_the_named_server)
{
	ck_assert_int_eq(parse("--path /1k --path /x?y=1 --sni www.cssl.test"), OPTIONS_PARSED);
	ck_assert_uint_eq(options.path_count, 2);
	ck_assert_str_eq(options.paths[1].request, "GET /x?y=1 HTTP/1.1\r\nHost: www.cssl.test\r\n\r\n");
	ck_assert_uint_eq(options.paths[1].request_len, strlen(options.paths[1].request));
	ck_assert_int_eq(options.paths[0].expected.kind, REPLY_ANY_LENGTH);
}
END_TEST

START_TEST(check_takes_the_length_from_each_path)
{
	ck_assert_int_eq(parse("--check --path /5 --path /2m"), OPTIONS_PARSED);
	ck_assert_int_eq(options.paths[1].expected.kind, REPLY_PATTERN);
	ck_assert_uint_eq(options.paths[0].expected.length, 5);
	ck_assert_uint_eq(options.paths[1].expected.length, 2u << 20);
	ck_assert_int_eq(parse("--check --path /index.html"), OPTIONS_BAD);
}
END_TEST

START_TEST(a_length_is_of_every_answer)
{
	ck_assert_int_eq(parse("--length 0 --path /a --path /b"), OPTIONS_PARSED);
	ck_assert_int_eq(options.paths[1].expected.kind, REPLY_THIS_LENGTH);
	ck_assert_uint_eq(options.paths[1].expected.length, 0);
}
END_TEST

START_TEST(holding_makes_one_connection_a_client)
{
	ck_assert_int_eq(parse("--hold --clients 30"), OPTIONS_PARSED);
	ck_assert_uint_eq(options.connections, 30);
	ck_assert_uint_eq(options.duration_ms, 0);
}
END_TEST

START_TEST(targets_and_sources_are_repeated)
{
	ck_assert_int_eq(
		parse("--connect [::1]:8443 --source 127.0.1.1-127.0.1.20 --source 127.0.3.1"), OPTIONS_PARSED);
	ck_assert_uint_eq(options.target_count, 2);
	ck_assert_uint_eq(address_port((const struct sockaddr *)&options.targets[1]), 8443);
	ck_assert_uint_eq(source_ranges_count(&options.sources), 21);
}
END_TEST

START_TEST(bad_values_are_refused)
{
	static const char *const bad[] = { "--clients 0", "--clients -1", "--clients x", "--rate 0", "--rate nan",
		"--mix 0:0", "--version 1.1", "--connect localhost:443", "--path nothing", "--source 127.0.0.1-",
		"--nonsense", "--duration", "stray", "--quiet=1" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(parse(bad[i]) == OPTIONS_BAD, "'%s' was taken", bad[i]);
}
END_TEST

START_TEST(contradictions_are_refused)
{
	static const char *const bad[] = { "--processes 4 --clients 3", "--processes 4 --connections 3",
		"--requests 0 --connections 5", "--rate 10 --think-ms 5", "--rate 10 --hold", "--hold --requests 0",
		"--check --length 5", "--equal", "--equal --clients 8 --connections 7" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(parse(bad[i]) == OPTIONS_BAD, "'%s' was taken", bad[i]);
}
END_TEST

START_TEST(without_a_target_there_is_no_load)
{
	char name[] = "https", *words[] = { name, NULL };

	ck_assert_int_eq(load_options_parse(1, words, &options), OPTIONS_BAD);
}
END_TEST

UNIT(load_options)
{
	const TTest *facts[] = {
		alone_it_is_ten_seconds_of_full_handshakes,
		a_count_needs_no_duration,
		seconds_may_have_fractions_and_counts_may_not,
		each_path_becomes_a_request_for_the_named_server,
		check_takes_the_length_from_each_path,
		a_length_is_of_every_answer,
		holding_makes_one_connection_a_client,
		targets_and_sources_are_repeated,
		bad_values_are_refused,
		contradictions_are_refused,
		without_a_target_there_is_no_load,
	};

	return suite_run("load_options", facts, SUITE_LEN(facts));
}
