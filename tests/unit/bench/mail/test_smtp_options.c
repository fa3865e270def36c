/* test_smtp_options.c: facts of the command lines of smtp-source and smtp-sink. */
#include <stdio.h>
#include <string.h>

#include "bench/mail/sink_options.h"
#include "bench/mail/source_options.h"
#include "net/socket/address.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define WORDS_MAX 32

static char words[512];
static char *argv[WORDS_MAX];

static int split(const char *line)
{
	int argc = 0;
	snprintf(words, sizeof words, "x %s", line);
	for (char *word = strtok(words, " "); word && argc < WORDS_MAX - 1; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return argc;
}

static struct source_options source;
static struct sink_options sink;

static enum option_parse parse_source(const char *line)
{
	return source_options_parse(split(line), argv, &source);
}

static enum option_parse parse_sink(const char *line)
{
	return sink_options_parse(split(line), argv, &sink);
}

START_TEST(flags_of_postfix_are_understood)
{
	ck_assert_int_eq(
		parse_source("-s 100 -m 10000 -f from@example.com -t to@example.com -l 5 -r 3 -d -c -M host -N -S hi "
			     "-w 0.5 -R 2 -C 3 -A -T 4096 -v inet:127.0.0.1:10025"),
		OPTIONS_PARSED);
	ck_assert_uint_eq(source.sessions, 100);
	ck_assert_uint_eq(source.messages, 10000);
	ck_assert_str_eq(source.from, "from@example.com");
	ck_assert_uint_eq(source.recipients, 3);
	ck_assert_uint_eq(source.per_connection, 0);
	ck_assert_uint_eq(source.pause_ms, 500);
	ck_assert_uint_eq(source.random_pause_ms, 2000);
	ck_assert_uint_eq(source.connect_tries, 3);
	ck_assert_int_eq(source.on_failure, SOURCE_GOES_ON);
	ck_assert_int_eq(source.names, SOURCE_NUMBERED_NAMES);
	ck_assert_int_eq(source.targets[0].ss_family, AF_INET);
}
END_TEST

START_TEST(without_options_one_mail_is_sent)
{
	ck_assert_int_eq(parse_source("[::1]:25"), OPTIONS_PARSED);
	ck_assert_uint_eq(source.messages, 1);
	ck_assert_uint_eq(source.sessions, 1);
	ck_assert_uint_eq(source.per_connection, 1);
	ck_assert_uint_eq(source.connects, 1);
	ck_assert_uint_eq(source.connect_tries, 1);
	ck_assert_int_eq(source.tls, SOURCE_CLEAR);
	ck_assert_int_eq(source.on_failure, SOURCE_GIVES_UP);
}
END_TEST

START_TEST(a_family_of_addresses_can_be_wanted)
{
	ck_assert_int_eq(parse_source("-4 127.0.0.1:25"), OPTIONS_PARSED);
	ck_assert_int_eq(parse_source("-6 [::1]:25"), OPTIONS_PARSED);
	ck_assert_int_eq(parse_source("-4 localhost:10025"), OPTIONS_PARSED);
	ck_assert_int_eq(source.targets[0].ss_family, AF_INET);
	ck_assert_uint_eq(address_port((struct sockaddr *)&source.targets[0]), 10025);
}
END_TEST

static unsigned port_of(const char *line)
{
	ck_assert_int_eq(parse_source(line), OPTIONS_PARSED);
	return address_port((struct sockaddr *)&source.targets[0]);
}

START_TEST(a_server_without_a_port_has_port_25_as_in_postfix)
{
	ck_assert_uint_eq(port_of("127.0.0.1"), 25);
	ck_assert_uint_eq(port_of("inet:127.0.0.1"), 25);
	ck_assert_uint_eq(port_of("[127.0.0.1]:26"), 26);
	ck_assert_uint_eq(port_of("[::1]"), 25);
	ck_assert_int_eq(source.targets[0].ss_family, AF_INET6);
	ck_assert_uint_eq(port_of("-4 localhost"), 25);
	ck_assert_uint_eq(port_of("-4 [localhost]:26"), 26);
}
END_TEST

START_TEST(a_wanted_family_does_not_concern_a_unix_socket)
{
	ck_assert_int_eq(parse_source("-4 unix:/a"), OPTIONS_PARSED);
	ck_assert_int_eq(parse_source("-6 unix:/a"), OPTIONS_PARSED);
	ck_assert_int_eq(source.targets[0].ss_family, AF_UNIX);
}
END_TEST

START_TEST(a_server_that_is_none_is_refused)
{
	static const char *const bad[] = { ":25", "inet:", "[]:25", "[::1", "[::1]x", "::1:25", "localhost:", "-4 ::1",
		"-4 [::1]:25", "-6 127.0.0.1" };

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(parse_source(bad[i]) == OPTIONS_BAD, "%s", bad[i]);
}
END_TEST

START_TEST(a_load_may_have_several_servers_and_processes)
{
	ck_assert_int_eq(parse_source("-s 5 -m 10 --processes 3 127.0.0.1:26 127.0.0.1:25 [::1]:27"), OPTIONS_PARSED);
	ck_assert_uint_eq(source.processes, 3);
	ck_assert_uint_eq(source.target_count, 3);
	ck_assert_uint_eq(address_port((struct sockaddr *)&source.targets[1]), 25);
	ck_assert_str_eq(source.target_names[2], "[::1]:27");
	ck_assert_int_eq(parse_source("--source 127.0.0.1 127.0.0.1:25 unix:/a"), OPTIONS_BAD);
	const char *many = "[::1]:1 [::1]:2 [::1]:3 [::1]:4 [::1]:5 [::1]:6 [::1]:7 [::1]:8 [::1]:9 [::2]:1 [::2]:2 "
			   "[::2]:3 [::2]:4 [::2]:5 [::2]:6 [::2]:7 [::2]:8";
	ck_assert_int_eq(parse_source(many), OPTIONS_BAD);
	ck_assert_uint_eq(source.target_count, SOURCE_TARGETS_MAX);
}
END_TEST

START_TEST(lmtp_has_extensions)
{
	ck_assert_int_eq(parse_source("-L --pipelining --chunking --starttls 127.0.0.1:24"), OPTIONS_PARSED);
	ck_assert_uint_eq(source.greeting, SOURCE_LHLO);
}
END_TEST

START_TEST(bad_source_options_are_refused)
{
	const char *bad[] = { "", "-s 0 127.0.0.1:25", "-s x 127.0.0.1:25", "127.0.0.1:25 x:y:z", "--what",
		"--processes 2 -s 1 -m 2 127.0.0.1:25", "--processes 2 -s 2 -m 1 127.0.0.1:25",
		"--rate 5 -w 1 127.0.0.1:25", "-o --starttls 127.0.0.1:25", "-F file -l 5 127.0.0.1:25",
		"--proxy-source 10.0.0.1 127.0.0.1:25", "--proxy v3 127.0.0.1:25", "-f a<b 127.0.0.1:25", ":25",
		"a:b:25", "--mix 0:0 127.0.0.1:25", "--tls-version 1.1 127.0.0.1:25", "-6 127.0.0.1:25",
		"-4 [::1]:25" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(parse_source(bad[i]) == OPTIONS_BAD, "%s", bad[i]);
}
END_TEST

START_TEST(h_is_help_of_a_source_and_the_name_of_a_sink)
{
	ck_assert_int_eq(parse_source("-h"), OPTIONS_HELP);
	ck_assert_int_eq(parse_sink("-h mx.example 127.0.0.1:0"), OPTIONS_PARSED);
	ck_assert_int_eq(parse_sink("--help"), OPTIONS_HELP);
}
END_TEST

START_TEST(a_sink_offers_what_it_can)
{
	ck_assert_int_eq(parse_sink("--size 1000 --hide chunking 127.0.0.1:0 [::1]:0"), OPTIONS_PARSED);
	ck_assert_uint_eq(sink.listen_count, 2);
	ck_assert_uint_eq(smtp_ehlo_size(&sink.offers), 1000);
	ck_assert(!smtp_ehlo_has(&sink.offers, SMTP_CAP_CHUNKING));
	ck_assert(!smtp_ehlo_has(&sink.offers, SMTP_CAP_BINARYMIME));
	ck_assert(!smtp_ehlo_has(&sink.offers, SMTP_CAP_STARTTLS));
	ck_assert_int_eq(parse_sink("--cert a --key b 127.0.0.1:0"), OPTIONS_PARSED);
	ck_assert(smtp_ehlo_has(&sink.offers, SMTP_CAP_STARTTLS));
	ck_assert_int_eq(parse_sink("--cert a --key b --tls 127.0.0.1:0"), OPTIONS_PARSED);
	ck_assert(!smtp_ehlo_has(&sink.offers, SMTP_CAP_STARTTLS));
}
END_TEST

START_TEST(a_sink_trusts_whom_it_is_told)
{
	ck_assert_int_eq(parse_sink("--proxy --xcssltx 10.0.0.0/8 --xcssltx ::1 127.0.0.1:0"), OPTIONS_PARSED);
	ck_assert_uint_eq(sink.trusted_count, 2);
	ck_assert_uint_eq(sink.ids_max, 10000);
	ck_assert_int_eq(parse_sink("127.0.0.1:0"), OPTIONS_PARSED);
	ck_assert_uint_eq(sink.trusted_count, 0);
}
END_TEST

START_TEST(bad_sink_options_are_refused)
{
	const char *bad[] = { "", "127.0.0.1", "--cert a 127.0.0.1:0", "--tls 127.0.0.1:0", "--need-tls 127.0.0.1:0",
		"--over 422 127.0.0.1:0", "--hide NOTHING 127.0.0.1:0", "--delay x:1 127.0.0.1:0", "-m 0 127.0.0.1:0",
		"--xcssltx ::1 127.0.0.1:0", "--proxy --xcssltx x 127.0.0.1:0", "--drop decide 127.0.0.1:0" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(parse_sink(bad[i]) == OPTIONS_BAD, "%s", bad[i]);
}
END_TEST

UNIT(smtp_options)
{
	const TTest *facts[] = {
		flags_of_postfix_are_understood,
		without_options_one_mail_is_sent,
		a_family_of_addresses_can_be_wanted,
		a_server_without_a_port_has_port_25_as_in_postfix,
		a_wanted_family_does_not_concern_a_unix_socket,
		a_server_that_is_none_is_refused,
		a_load_may_have_several_servers_and_processes,
		lmtp_has_extensions,
		bad_source_options_are_refused,
		h_is_help_of_a_source_and_the_name_of_a_sink,
		a_sink_offers_what_it_can,
		a_sink_trusts_whom_it_is_told,
		bad_sink_options_are_refused,
	};
	return suite_run("smtp_options", facts, SUITE_LEN(facts));
}
