/* test_courier_dialogue.c: facts of what a courier says to its receiver. The test is the connection, the queue, and
 * what decides the fates. */
#include "smtpproxy/delivery/courier_dialogue.h"

#include <stdio.h>
#include <string.h>

#include "smtpproxy/delivery/courier_settle.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define HEAR(text) courier_dialogue_hear(&courier, text, sizeof(text) - 1)

static struct conf_smtpproxy conf;
static struct smtpproxy_counters counters;
static const struct delivery_parts parts = { .conf = &conf, .counters = &counters };
static const struct courier_errand message = { .task = COURIER_DELIVERS }, probe = { .task = COURIER_PROBES };
static struct onward onward;
static struct envelope_text text;
static struct courier courier;
static char said[256]; /* since it was looked at last */
static bool lease;
static unsigned noted; /* replies */

int onward_write(struct onward *o, const void *data, size_t len)
{
	const size_t before = strlen(said);

	snprintf(said + before, sizeof said - before, "%.*s", (int)len, (const char *)data);
	return 0;
}

size_t onward_pending(const struct onward *o)
{
	return 0;
}

void onward_expect(struct onward *o, uint32_t ms)
{
}

bool queue_may_deliver(const struct queue *q)
{
	return lease;
}

int queue_retry(struct queue *q, uint64_t id, enum queue_step step, int64_t due_ms, struct content_bytes note)
{
	return 0;
}

void destination_give_up_clear(struct destination *d, const struct onward *o)
{
}

void courier_note_reply(struct courier *c, const struct smtp_reply_line *line)
{
	noted++;
	if (c->state == COURIER_RCPT)
		fates_set(&c->fates, c->at - 1, line->code / 100 == 2 ? FATE_SENT : FATE_FAILED, smtp_span_of("reply"));
}

static void setup(void)
{
	const struct smtp_span none = { 0 };

	courier = (struct courier){ .parts = &parts, .errand = &message, .onward = &onward };
	onward = (struct onward){ 0 };
	lease = true;
	noted = 0;
	said[0] = '\0';
	ck_assert_int_eq(envelope_begin(&text, none, none, smtp_span_of("s@a.example"), none), 0);
	ck_assert_int_eq(envelope_add(&text, smtp_span_of("k@b.example"), none), 0);
	ck_assert_int_eq(envelope_add(&text, smtp_span_of("l@b.example"), none), 0);
	ck_assert_int_eq(envelope_read(&courier.envelope, text.at, text.len), 0);
	ck_assert_int_eq(fates_begin(&courier.fates, courier.envelope.recipients, none), 0);
	courier.rest = courier.envelope.rest;
	courier.mail.body = (struct content_bytes){ (const uint8_t *)".x\r\n", 4 };
	smtp_reply_begin(&courier.reader, courier.buffer, sizeof courier.buffer);
	courier_dialogue_begin(&courier);
}

static void teardown(void)
{
	fates_free(&courier.fates);
	envelope_free(&text);
}

static bool has_said(const char *line)
{
	const bool is = strcmp(said, line) == 0;

	said[0] = '\0';
	return is;
}

/* Both recipients are accepted. */
static void name_all(void)
{
	ck_assert(has_said("MAIL FROM:<s@a.example>\r\n"));
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_GOES_ON);
	ck_assert(has_said("RCPT TO:<k@b.example>\r\n"));
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_GOES_ON);
	ck_assert(has_said("RCPT TO:<l@b.example>\r\n"));
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_GOES_ON);
}

START_TEST(a_message_is_said_one_command_at_a_time)
{
	name_all();
	ck_assert(has_said("DATA\r\n"));
	ck_assert_int_eq(HEAR("354 Go\r\n"), COURIER_GOES_ON);
	ck_assert(has_said("..x\r\n.\r\n"));
	ck_assert_int_eq(courier.state, COURIER_DOT);
	ck_assert_int_eq(HEAR("250 Taken\r\n"), COURIER_IS_DONE);
}
END_TEST

START_TEST(without_the_lease_no_final_dot_is_said)
{
	name_all();
	lease = false;
	said[0] = '\0';
	ck_assert_int_eq(HEAR("354 Go\r\n"), COURIER_MAY_NOT);
	ck_assert(has_said("..x\r\n"));
	ck_assert_int_eq(courier.state, COURIER_CONTENT);
}
END_TEST

START_TEST(a_probe_ends_before_data)
{
	courier.errand = &probe;
	name_all();
	ck_assert(has_said("RSET\r\n"));
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_IS_DONE);
}
END_TEST

START_TEST(without_an_accepted_recipient_there_is_no_data)
{
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_GOES_ON);
	ck_assert_int_eq(HEAR("550 No\r\n"), COURIER_GOES_ON);
	said[0] = '\0';
	ck_assert_int_eq(HEAR("550 No\r\n"), COURIER_GOES_ON);
	ck_assert(has_said("RSET\r\n"));
}
END_TEST

START_TEST(recipients_that_are_too_many_wait_for_the_next_transaction)
{
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_GOES_ON);
	ck_assert_int_eq(HEAR("250 OK\r\n"), COURIER_GOES_ON);
	said[0] = '\0';
	ck_assert_int_eq(HEAR("452 4.5.3 Too many\r\n"), COURIER_GOES_ON);
	ck_assert(has_said("DATA\r\n"));
	ck_assert_int_eq(courier.fates.at[1].fate, FATE_OPEN);
	ck_assert_int_eq(HEAR("354 Go\r\n"), COURIER_GOES_ON);
	ck_assert_int_eq(HEAR("250 Taken\r\n"), COURIER_IS_DONE);
	ck_assert_int_eq(courier.left, COURIER_REST_NEXT);
}
END_TEST

START_TEST(a_421_breaks_off_and_counts_for_its_command)
{
	ck_assert_int_eq(HEAR("421 Bye\r\n"), COURIER_BREAKS_OFF);
	ck_assert_uint_eq(noted, 1);
	ck_assert_uint_eq(onward.refusals, 1);
}
END_TEST

START_TEST(a_second_reply_breaks_off_but_the_first_one_counts_behind_the_dot)
{
	name_all();
	ck_assert_int_eq(HEAR("354 Go\r\n"), COURIER_GOES_ON);
	noted = 0;
	ck_assert_int_eq(HEAR("250 Taken\r\n250 Taken\r\n"), COURIER_BREAKS_OFF);
	ck_assert_uint_eq(noted, 1);
}
END_TEST

START_TEST(only_a_message_with_its_final_dot_is_in_doubt)
{
	courier.naming = COURIER_NAMED;
	courier_dialogue_doubt(&courier, "a test");
	ck_assert_uint_eq(counters.in_doubt, 0);
	courier.state = COURIER_DOT;
	courier_dialogue_doubt(&courier, "a test");
	ck_assert_uint_eq(counters.in_doubt, 1);
	ck_assert_int_eq(courier.naming, COURIER_ASKS_FIRST);
}
END_TEST

UNIT(courier_dialogue)
{
	const TTest *facts[] = {
		a_message_is_said_one_command_at_a_time,
		without_the_lease_no_final_dot_is_said,
		a_probe_ends_before_data,
		without_an_accepted_recipient_there_is_no_data,
		recipients_that_are_too_many_wait_for_the_next_transaction,
		a_421_breaks_off_and_counts_for_its_command,
		a_second_reply_breaks_off_but_the_first_one_counts_behind_the_dot,
		only_a_message_with_its_final_dot_is_in_doubt,
	};
	TCase *all = tcase_create("courier_dialogue");

	tcase_add_checked_fixture(all, setup, teardown);
	return suite_run_case("courier_dialogue", all, facts, SUITE_LEN(facts));
}
