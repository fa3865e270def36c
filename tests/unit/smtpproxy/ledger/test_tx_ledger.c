/* test_tx_ledger.c: facts of the memory of named transactions. */
#include "smtpproxy/ledger/tx_ledger.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtp_span asked;

static enum smtp_fate ask(struct tx_entry *e, uint64_t number)
{
	asked = (struct smtp_span){ 0 };
	return tx_entry_ask(e, number, &asked);
}

START_TEST(a_decision_is_remembered)
{
	struct tx_ledger *l = tx_ledger_create(10);
	struct tx_entry *e = tx_ledger_enter(l, "aa");
	ck_assert_int_eq(tx_entry_begin(e, 1), 0);
	tx_entry_decide(e, 1, smtp_span_of("250 2.0.0 Ok"));
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_DECIDED);
	ck_assert(smtp_span_is(asked, "250 2.0.0 Ok"));
	tx_ledger_leave(l, e);
	ck_assert_ptr_eq(tx_ledger_enter(l, "aa"), e);
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_DECIDED);
	tx_ledger_destroy(l);
}
END_TEST

START_TEST(a_question_is_a_fence)
{
	struct tx_ledger *l = tx_ledger_create(10);
	struct tx_entry *e = tx_ledger_enter(l, "aa");
	ck_assert_int_eq(ask(e, 5), SMTP_FATE_NEVER);
	ck_assert_int_eq(tx_entry_begin(e, 5), CSSL_E_RANGE);
	ck_assert_int_eq(tx_entry_begin(e, 4), CSSL_E_RANGE);
	ck_assert_int_eq(tx_entry_begin(e, 6), 0);
	ck_assert_int_eq(tx_entry_begin(e, 6), CSSL_E_RANGE);
	ck_assert_int_eq(ask(e, 5), SMTP_FATE_NEVER);
	tx_ledger_destroy(l);
}
END_TEST

START_TEST(an_overwritten_decision_is_unknown)
{
	struct tx_ledger *l = tx_ledger_create(10);
	struct tx_entry *e = tx_ledger_enter(l, "aa");
	for (uint64_t n = 1; n <= TX_LEDGER_DECISIONS + 2; n++) {
		ck_assert_int_eq(tx_entry_begin(e, n), 0);
		tx_entry_decide(e, n, smtp_span_of("250 Ok"));
	}
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(ask(e, 2), SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(ask(e, 3), SMTP_FATE_DECIDED);
	ck_assert_int_eq(ask(e, TX_LEDGER_DECISIONS + 3), SMTP_FATE_NEVER);
	tx_ledger_destroy(l);
}
END_TEST

START_TEST(only_entries_without_a_session_are_evicted)
{
	struct tx_ledger *l = tx_ledger_create(2);
	char key[17];
	struct tx_entry *a = tx_ledger_enter(l, "aa"), *b = tx_ledger_enter(l, "bb");
	strcpy(key, b->key);
	ck_assert_str_ne(a->key, b->key);
	ck_assert_ptr_null(tx_ledger_enter(l, "cc"));
	tx_ledger_leave(l, b);
	ck_assert_ptr_nonnull(tx_ledger_enter(l, "cc"));
	ck_assert_uint_eq(tx_ledger_evicted(l), 1);
	tx_ledger_leave(l, a);
	b = tx_ledger_enter(l, "bb");
	ck_assert_str_ne(b->key, key);
	ck_assert_uint_eq(tx_ledger_evicted(l), 2);
	tx_ledger_destroy(l);
}
END_TEST

START_TEST(the_entry_that_rests_longest_goes_first)
{
	struct tx_ledger *l = tx_ledger_create(2);
	struct tx_entry *a = tx_ledger_enter(l, "aa"), *b = tx_ledger_enter(l, "bb");
	char key[17];
	strcpy(key, a->key);
	tx_ledger_leave(l, a);
	tx_ledger_leave(l, b);
	tx_ledger_leave(l, tx_ledger_enter(l, "aa"));
	tx_ledger_leave(l, tx_ledger_enter(l, "cc"));
	ck_assert_str_eq(tx_ledger_enter(l, "aa")->key, key);
	tx_ledger_destroy(l);
}
END_TEST

START_TEST(a_long_reply_is_cut)
{
	struct tx_ledger *l = tx_ledger_create(1);
	struct tx_entry *e = tx_ledger_enter(l, "aa");
	char reply[TX_LEDGER_REPLY_MAX + 10];
	memset(reply, '5', sizeof reply);
	ck_assert_int_eq(tx_entry_begin(e, 1), 0);
	tx_entry_decide(e, 1, (struct smtp_span){ reply, sizeof reply });
	ck_assert_int_eq(ask(e, 1), SMTP_FATE_DECIDED);
	ck_assert_uint_eq(asked.len, TX_LEDGER_REPLY_MAX - 1);
	tx_ledger_destroy(l);
}
END_TEST

START_TEST(a_lower_bound_counts_for_the_next_entry)
{
	struct tx_ledger *l = tx_ledger_create(3);
	tx_ledger_leave(l, tx_ledger_enter(l, "aa"));
	tx_ledger_leave(l, tx_ledger_enter(l, "bb"));
	struct tx_entry *used = tx_ledger_enter(l, "cc");
	tx_ledger_set_max(l, 2);
	ck_assert_ptr_nonnull(tx_ledger_enter(l, "dd"));
	ck_assert_uint_eq(tx_ledger_evicted(l), 2);
	ck_assert_ptr_eq(tx_ledger_enter(l, "cc"), used);
	ck_assert_ptr_null(tx_ledger_enter(l, "ee"));
	tx_ledger_destroy(l);
}
END_TEST

UNIT(tx_ledger)
{
	const TTest *facts[] = {
		a_decision_is_remembered,
		a_question_is_a_fence,
		an_overwritten_decision_is_unknown,
		only_entries_without_a_session_are_evicted,
		the_entry_that_rests_longest_goes_first,
		a_long_reply_is_cut,
		a_lower_bound_counts_for_the_next_entry,
	};
	return sodium_init() < 0 ? 1 : suite_run("tx_ledger", facts, SUITE_LEN(facts));
}
