/* test_sink_rules.c: facts of smtp-sink's misbehaviour. */
#include "bench/mail/sink_rules.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct sink_rules rules;

static void begin(void)
{
	memset(&rules, 0, sizeof rules);
}

START_TEST(without_rules_nothing_is_odd)
{
	struct sink_decision d = sink_rules_decide(&rules, SINK_STEP_MAIL);
	ck_assert(!d.delay_ms && !d.tarpit_ms && !d.reply && !d.drops);
}
END_TEST

START_TEST(a_rule_is_for_its_steps)
{
	ck_assert_int_eq(sink_rules_add(&rules, SINK_DELAYS, "mail,RCPT:1.5"), 0);
	ck_assert_uint_eq(sink_rules_decide(&rules, SINK_STEP_MAIL).delay_ms, 1500);
	ck_assert_uint_eq(sink_rules_decide(&rules, SINK_STEP_RCPT).delay_ms, 1500);
	ck_assert_uint_eq(sink_rules_decide(&rules, SINK_STEP_DATA).delay_ms, 0);
	ck_assert_int_eq(sink_rules_add(&rules, SINK_TARPITS, "all:0.1"), 0);
	ck_assert_uint_eq(sink_rules_decide(&rules, SINK_STEP_QUIT).tarpit_ms, 100);
}
END_TEST

START_TEST(a_reply_keeps_its_text)
{
	ck_assert_int_eq(sink_rules_add(&rules, SINK_REPLIES, "end:451 4.3.0 Not now: later:100"), 0);
	ck_assert_str_eq(sink_rules_decide(&rules, SINK_STEP_END).reply, "451 4.3.0 Not now: later");
	ck_assert_int_eq(sink_rules_add(&rules, SINK_REPLIES, "quit:421"), 0);
	ck_assert_str_eq(sink_rules_decide(&rules, SINK_STEP_QUIT).reply, "421");
}
END_TEST

START_TEST(odds_are_kept)
{
	unsigned dropped = 0;
	ck_assert_int_eq(sink_rules_add(&rules, SINK_DROPS, "data:25"), 0);
	for (unsigned i = 0; i < 10000; i++)
		dropped += sink_rules_decide(&rules, SINK_STEP_DATA).drops;
	ck_assert_uint_gt(dropped, 2300);
	ck_assert_uint_lt(dropped, 2700);
	begin();
	sink_rules_add(&rules, SINK_DROPS, "data:0");
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_int_eq(sink_rules_decide(&rules, SINK_STEP_DATA).drops, 0);
}
END_TEST

START_TEST(the_same_seed_throws_the_same)
{
	uint64_t first = 0, second = 0;
	sink_rules_add(&rules, SINK_DROPS, "all:50");
	for (unsigned i = 0; i < 64; i++)
		first = first << 1 | sink_rules_decide(&rules, SINK_STEP_DATA).drops;
	rules.dice = 0;
	for (unsigned i = 0; i < 64; i++)
		second = second << 1 | sink_rules_decide(&rules, SINK_STEP_DATA).drops;
	ck_assert_uint_eq(first, second);
	ck_assert_uint_ne(first, 0);
}
END_TEST

START_TEST(a_malformed_rule_is_refused)
{
	static const struct {
		enum sink_rule_kind kind;
		const char *text;
	} bad[] = { { SINK_DELAYS, "" }, { SINK_DELAYS, ":1" }, { SINK_DELAYS, "mail" }, { SINK_DELAYS, "mail:x" },
		{ SINK_DELAYS, "mail:-1" }, { SINK_DELAYS, "mail:1:101" }, { SINK_DELAYS, "mail:1:x" },
		{ SINK_DELAYS, "send:1" }, { SINK_REPLIES, "mail:45" }, { SINK_REPLIES, "mail:199 no" },
		{ SINK_REPLIES, "mail:600" }, { SINK_REPLIES, "mail:4500" }, { SINK_REPLIES, "mail" },
		{ SINK_DROPS, "mail:101" }, { SINK_DROPS, "x" }, { SINK_TARPITS, "mail:0" }, { SINK_TARPITS, "mail" } };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(sink_rules_add(&rules, bad[i].kind, bad[i].text) == CSSL_E_CONFIG, "%s", bad[i].text);
	ck_assert_uint_eq(rules.count, 0);
}
END_TEST

START_TEST(the_table_is_bounded)
{
	for (unsigned i = 0; i < SINK_RULES_MAX; i++)
		ck_assert_int_eq(sink_rules_add(&rules, SINK_DROPS, "mail"), 0);
	ck_assert_int_eq(sink_rules_add(&rules, SINK_DROPS, "mail"), CSSL_E_FULL);
}
END_TEST

UNIT(sink_rules)
{
	const TTest *facts[] = {
		without_rules_nothing_is_odd,
		a_rule_is_for_its_steps,
		a_reply_keeps_its_text,
		odds_are_kept,
		the_same_seed_throws_the_same,
		a_malformed_rule_is_refused,
		the_table_is_bounded,
	};
	return suite_run_with("sink_rules", begin, facts, SUITE_LEN(facts));
}
