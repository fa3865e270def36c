/* test_tx_before.c: facts of the ledger of the process that this one has replaced. */
#include "smtpproxy/ledger/tx_before.h"

#include <sodium.h>
#include <string.h>

#include "smtpproxy/ledger/tx_message.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct tx_before *before;
static struct tx_ledger *own; /* of the process before */
static uint8_t sent[65536];
static size_t sent_len;
static enum smtp_fate told;
static char told_reply[64];
static unsigned tells;

static void send_it(void *ctx, const uint8_t *data, size_t len)
{
	memcpy(sent + sent_len, data, len);
	sent_len += len;
}

static void on_fate(struct tx_waiter *w, enum smtp_fate fate, struct smtp_span reply)
{
	told = fate;
	smtp_span_copy(reply, told_reply, sizeof told_reply);
	tells++;
}

static struct tx_waiter waiter = { .on_fate = on_fate };

static enum tx_before_answer ask(const char *id, const char *key, uint64_t number)
{
	struct smtp_tx_question q = { .name.number = number };
	struct smtp_span reply = { 0 };
	smtp_span_copy(smtp_span_of(id), q.name.id, sizeof q.name.id);
	smtp_span_copy(smtp_span_of(key), q.entry, sizeof q.entry);
	const enum tx_before_answer r = tx_before_ask(before, &q, &waiter, &told, &reply);
	smtp_span_copy(reply, told_reply, sizeof told_reply);
	return r;
}

static void begin(void)
{
	before = tx_before_create(10);
	own = tx_ledger_create(10);
	sent_len = tells = 0;
}

static void end(void)
{
	tx_before_destroy(before);
	tx_ledger_destroy(own);
}

START_TEST(without_another_process_nothing_is_known)
{
	begin();
	ck_assert_int_eq(ask("aa", "k", 1), TX_BEFORE_NOTHING);
	end();
}
END_TEST

START_TEST(a_ledger_that_was_given_answers)
{
	struct tx_entry *e;
	begin();
	e = tx_ledger_enter(own, "aa");
	for (uint64_t n = 1; n <= TX_LEDGER_DECISIONS + 1; n++) {
		ck_assert_int_eq(tx_entry_begin(e, n), 0);
		tx_entry_decide(e, n, smtp_span_of("250 Ok"));
	}
	tx_before_give(before, own, send_it, NULL);
	ck_assert_int_eq(tx_before_read(before, sent, sent_len), (int)sent_len);
	ck_assert_int_eq(ask("aa", e->key, 1), TX_BEFORE_KNOWN);
	ck_assert_int_eq(told, SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(ask("aa", e->key, 2), TX_BEFORE_KNOWN);
	ck_assert_int_eq(told, SMTP_FATE_DECIDED);
	ck_assert_str_eq(told_reply, "250 Ok");
	ck_assert_int_eq(ask("aa", e->key, 9), TX_BEFORE_KNOWN);
	ck_assert_int_eq(told, SMTP_FATE_NEVER);
	ck_assert_int_eq(ask("aa", "another", 2), TX_BEFORE_NOTHING);
	ck_assert_int_eq(ask("bb", "", 2), TX_BEFORE_NOTHING);
	ck_assert_int_eq(ask("aa", "", 2), TX_BEFORE_KNOWN);
	ck_assert_int_eq(told, SMTP_FATE_DECIDED);
	ck_assert_int_eq(ask("bb", e->key, 2), TX_BEFORE_NOTHING);
	end();
}
END_TEST

START_TEST(a_ledger_that_was_taken_over_is_given_on)
{
	struct tx_before *third = tx_before_create(10);
	struct tx_entry *e;
	begin();
	e = tx_ledger_enter(own, "aa");
	tx_entry_decide(e, 5, smtp_span_of("550 No"));
	tx_before_give(before, own, send_it, NULL);
	tx_before_read(before, sent, sent_len);
	struct tx_ledger *empty = tx_ledger_create(10);
	sent_len = 0;
	tx_before_give(before, empty, send_it, NULL);
	tx_before_destroy(before);
	before = third;
	tx_before_read(before, sent, sent_len);
	ck_assert_int_eq(ask("aa", e->key, 5), TX_BEFORE_KNOWN);
	ck_assert_str_eq(told_reply, "550 No");
	tx_ledger_destroy(empty);
	end();
}
END_TEST

START_TEST(a_process_that_lives_is_asked)
{
	struct tx_message m;
	uint8_t answer[TX_MESSAGE_MAX];
	begin();
	tx_before_open(before, send_it, NULL);
	ck_assert_int_eq(ask("aa", "k", 3), TX_BEFORE_ASKED);
	ck_assert_int_gt(tx_message_read(sent, sent_len, &m), 0);
	ck_assert_uint_eq(m.number, 3);
	const struct tx_message reply = { .kind = TX_MESSAGE_ANSWER,
		.ticket = m.ticket,
		.fate = SMTP_FATE_DECIDED,
		.reply = smtp_span_of("250 Ok") };
	const size_t len = tx_message_write(&reply, answer);
	ck_assert_int_eq(tx_before_read(before, answer, len - 1), 0);
	ck_assert_uint_eq(tells, 0);
	ck_assert_int_eq(tx_before_read(before, answer, len), (int)len);
	ck_assert_int_eq(tx_before_read(before, answer, len), (int)len); /* no session waits for a second answer */
	ck_assert_uint_eq(tells, 1);
	ck_assert_str_eq(told_reply, "250 Ok");
	end();
}
END_TEST

START_TEST(an_asker_that_waits_at_the_end_of_the_process_learns_unknown)
{
	begin();
	tx_before_open(before, send_it, NULL);
	ck_assert_int_eq(ask("aa", "k", 3), TX_BEFORE_ASKED);
	tx_before_close(before);
	ck_assert_uint_eq(tells, 1);
	ck_assert_int_eq(told, SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(ask("aa", "k", 3), TX_BEFORE_NOTHING);
	end();
}
END_TEST

START_TEST(an_asker_that_is_gone_gets_no_answer)
{
	begin();
	tx_before_open(before, send_it, NULL);
	ck_assert_int_eq(ask("aa", "k", 3), TX_BEFORE_ASKED);
	tx_waiter_cancel(&waiter);
	tx_before_close(before);
	ck_assert_uint_eq(tells, 0);
	end();
}
END_TEST

UNIT(tx_before)
{
	const TTest *facts[] = {
		without_another_process_nothing_is_known,
		a_ledger_that_was_given_answers,
		a_ledger_that_was_taken_over_is_given_on,
		a_process_that_lives_is_asked,
		an_asker_that_waits_at_the_end_of_the_process_learns_unknown,
		an_asker_that_is_gone_gets_no_answer,
	};
	return sodium_init() < 0 ? 1 : suite_run("tx_before", facts, SUITE_LEN(facts));
}
