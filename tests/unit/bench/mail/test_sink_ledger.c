/* test_sink_ledger.c: facts of the memory of named transactions. */
#include "bench/mail/sink_ledger.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"

static struct smtp_span asked;

static enum smtp_fate ask(struct sink_entry *e, uint64_t number)
{
	asked = (struct smtp_span){ 0 };
	return sink_entry_ask(e, number, &asked);
}

START_TEST(a_decision_is_remembered)
{
	struct sink_ledger *l = sink_ledger_create(10);
	struct sink_entry *e = sink_ledger_enter(l, "aa");
	ck_assert_int_eq(sink_entry_begin(e, 1), 0);
	sink_entry_decide(e, 1, smtp_span_of("250 2.0.0 Ok"));
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_DECIDED);
	ck_assert(smtp_span_is(asked, "250 2.0.0 Ok"));
	sink_ledger_leave(l, e);
	ck_assert_ptr_eq(sink_ledger_enter(l, "aa"), e);
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_DECIDED);
	sink_ledger_destroy(l);
}
END_TEST

START_TEST(a_question_is_a_fence)
{
	struct sink_ledger *l = sink_ledger_create(10);
	struct sink_entry *e = sink_ledger_enter(l, "aa");
	ck_assert_int_eq(ask(e, 5), SMTP_FATE_NEVER);
	ck_assert_int_eq(sink_entry_begin(e, 5), CSSL_E_RANGE);
	ck_assert_int_eq(sink_entry_begin(e, 4), CSSL_E_RANGE);
	ck_assert_int_eq(sink_entry_begin(e, 6), 0);
	ck_assert_int_eq(sink_entry_begin(e, 6), CSSL_E_RANGE);
	ck_assert_int_eq(ask(e, 5), SMTP_FATE_NEVER);
	sink_ledger_destroy(l);
}
END_TEST

START_TEST(what_was_overwritten_is_unknown)
{
	struct sink_ledger *l = sink_ledger_create(10);
	struct sink_entry *e = sink_ledger_enter(l, "aa");
	for (uint64_t n = 1; n <= SINK_LEDGER_DECISIONS + 2; n++) {
		ck_assert_int_eq(sink_entry_begin(e, n), 0);
		sink_entry_decide(e, n, smtp_span_of("250 Ok"));
	}
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(ask(e, 2), SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(ask(e, 3), SMTP_FATE_DECIDED);
	ck_assert_int_eq(ask(e, SINK_LEDGER_DECISIONS + 3), SMTP_FATE_NEVER);
	sink_ledger_destroy(l);
}
END_TEST

START_TEST(only_entries_without_a_session_are_evicted)
{
	struct sink_ledger *l = sink_ledger_create(2);
	char key[17];
	struct sink_entry *a = sink_ledger_enter(l, "aa"), *b = sink_ledger_enter(l, "bb");
	strcpy(key, b->key);
	ck_assert_str_ne(a->key, b->key);
	ck_assert_ptr_null(sink_ledger_enter(l, "cc"));
	sink_ledger_leave(l, b);
	ck_assert_ptr_nonnull(sink_ledger_enter(l, "cc"));
	ck_assert_uint_eq(sink_ledger_evicted(l), 1);
	sink_ledger_leave(l, a);
	b = sink_ledger_enter(l, "bb");
	ck_assert_str_ne(b->key, key);
	ck_assert_uint_eq(sink_ledger_evicted(l), 2);
	sink_ledger_destroy(l);
}
END_TEST

START_TEST(the_entry_that_rests_longest_goes_first)
{
	struct sink_ledger *l = sink_ledger_create(2);
	struct sink_entry *a = sink_ledger_enter(l, "aa"), *b = sink_ledger_enter(l, "bb");
	char key[17];
	strcpy(key, a->key);
	sink_ledger_leave(l, a);
	sink_ledger_leave(l, b);
	sink_ledger_leave(l, sink_ledger_enter(l, "aa"));
	sink_ledger_leave(l, sink_ledger_enter(l, "cc"));
	ck_assert_str_eq(sink_ledger_enter(l, "aa")->key, key);
	sink_ledger_destroy(l);
}
END_TEST

START_TEST(a_long_reply_is_cut)
{
	struct sink_ledger *l = sink_ledger_create(1);
	struct sink_entry *e = sink_ledger_enter(l, "aa");
	char reply[SINK_REPLY_MAX + 10];
	memset(reply, '5', sizeof reply);
	ck_assert_int_eq(sink_entry_begin(e, 1), 0);
	sink_entry_decide(e, 1, (struct smtp_span){ reply, sizeof reply });
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_DECIDED);
	ck_assert_uint_eq(asked.len, SINK_REPLY_MAX - 1);
	sink_ledger_destroy(l);
}
END_TEST

int main(void)
{
	const TTest *facts[] = {
		a_decision_is_remembered,
		a_question_is_a_fence,
		what_was_overwritten_is_unknown,
		only_entries_without_a_session_are_evicted,
		the_entry_that_rests_longest_goes_first,
		a_long_reply_is_cut,
	};
	return sodium_init() < 0 ? 1 : suite_run("sink_ledger", facts, SUITE_LEN(facts));
}
