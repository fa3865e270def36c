/* test_tx_message.c: facts about the messages of two processes about named transactions. */
#include "smtpproxy/ledger/tx_message.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static uint8_t bytes[TX_MESSAGE_MAX];

static struct tx_message again(const struct tx_message *m)
{
	struct tx_message out;
	const size_t len = tx_message_write(m, bytes);
	for (size_t part = 0; part < len; part++)
		ck_assert_int_eq(tx_message_read(bytes, part, &out), 0);
	ck_assert_int_eq(tx_message_read(bytes, len, &out), (int)len);
	ck_assert_int_eq(out.kind, m->kind);
	return out;
}

START_TEST(a_question_comes_as_it_was_sent)
{
	const struct tx_message m = { .kind = TX_MESSAGE_QUESTION,
		.ticket = 7,
		.id = smtp_span_of("aa"),
		.key = smtp_span_of("0123"),
		.number = UINT64_MAX };
	const struct tx_message out = again(&m);
	ck_assert_uint_eq(out.ticket, 7);
	ck_assert(smtp_span_is(out.id, "aa") && smtp_span_is(out.key, "0123"));
	ck_assert_uint_eq(out.number, UINT64_MAX);
}
END_TEST

START_TEST(an_answer_comes_as_it_was_sent)
{
	const struct tx_message m = {
		.kind = TX_MESSAGE_ANSWER, .ticket = 8, .fate = SMTP_FATE_DECIDED, .reply = smtp_span_of("250 Ok")
	};
	const struct tx_message out = again(&m);
	ck_assert_uint_eq(out.ticket, 8);
	ck_assert_int_eq(out.fate, SMTP_FATE_DECIDED);
	ck_assert(smtp_span_is(out.reply, "250 Ok"));
}
END_TEST

START_TEST(the_largest_entry_comes_as_it_was_sent)
{
	char id[SMTP_TX_ID_MAX + 1], key[SMTP_TX_ENTRY_MAX + 1], reply[TX_LEDGER_REPLY_MAX];
	struct tx_message out, m = { .kind = TX_MESSAGE_ENTRY, .newest = 9, .forgotten = 4 };
	memset(id, 'a', sizeof id);
	memset(key, 'b', sizeof key);
	memset(reply, 'c', sizeof reply);
	id[sizeof id - 1] = key[sizeof key - 1] = reply[sizeof reply - 1] = '\0';
	m.id = smtp_span_of(id);
	m.key = smtp_span_of(key);
	for (m.decisions = 0; m.decisions < TX_LEDGER_DECISIONS; m.decisions++) {
		m.decided[m.decisions].number = m.decisions + 5;
		m.decided[m.decisions].reply = smtp_span_of(reply);
	}
	out = again(&m);
	ck_assert(smtp_span_is(out.id, id) && smtp_span_is(out.key, key));
	ck_assert_uint_eq(out.newest, 9);
	ck_assert_uint_eq(out.forgotten, 4);
	ck_assert_uint_eq(out.decisions, TX_LEDGER_DECISIONS);
	ck_assert_uint_eq(out.decided[3].number, 8);
	ck_assert(smtp_span_is(out.decided[3].reply, reply));
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
	int error;
} bad[] = {
	{ "\0\0", 2, CSSL_E_TYPE },
	{ "\0\1?", 3, CSSL_E_TYPE },
	{ "\377\377", 2, CSSL_E_TOO_LONG },
	{ "\0\2QX", 4, CSSL_E_TRUNCATED },
	{ "\0\10A\0\0\0\1\3\0\0", 10, CSSL_E_RANGE },
	{ "\0\11A\0\0\0\1\2\0\0x", 11, CSSL_E_TRAILING },
	{ "\0\26E\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5", 24, CSSL_E_TRUNCATED },
};

START_TEST(bytes_of_another_kind_are_refused)
{
	struct tx_message m;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_int_eq(tx_message_read((const uint8_t *)bad[i].bytes, bad[i].len, &m), bad[i].error);
}
END_TEST

UNIT(tx_message)
{
	const TTest *facts[] = {
		a_question_comes_as_it_was_sent,
		an_answer_comes_as_it_was_sent,
		the_largest_entry_comes_as_it_was_sent,
		bytes_of_another_kind_are_refused,
	};
	return suite_run("tx_message", facts, SUITE_LEN(facts));
}
