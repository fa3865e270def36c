/* test_probe.c: facts of what is known of a recipient when its receiver was asked. The test is the courier that asks.
 */
#include "smtpproxy/delivery/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/delivery/courier.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define LINE "ours.example"

static struct conf_smtpproxy conf = { .name = (char *)"mx.example" };
static struct delivery_parts parts = { .conf = &conf };
static struct probes *probes;
static struct courier *asking; /* the last one */
static unsigned asked;
static enum { RECEIVER_HAS_PLACE, RECEIVER_HAS_NONE } place;
static struct probe_wait wait;
static struct receiver_share share;
static struct destination receiver = { .share = &share };
static const char *reply;

static void is_over(struct courier *c)
{
	c->errand->on_over(c, COURIER_LINE_NOW);
	free(c->mail.memory);
	fates_free(&c->fates);
	free(c);
}

struct courier *courier_create(
	const struct delivery_parts *p, const struct courier_errand *errand, void *sender, struct queue_taken *mail)
{
	struct courier *c = calloc(1, sizeof *c);

	ck_assert_ptr_nonnull(c);
	c->errand = errand;
	c->sender = sender;
	c->mail = *mail;
	asking = c;
	return c;
}

void courier_start(struct courier *c, const char *name)
{
	asked++;
	c->state = COURIER_WAITS;
	if (place == RECEIVER_HAS_NONE)
		is_over(c);
}

void courier_end(struct courier *c, enum courier_end how)
{
}

static void on_known(struct probe_wait *w)
{
}

static void setup(void)
{
	parts.worker = worker_create(0, "probe");
	conf.limits.sessions = 10;
	place = RECEIVER_HAS_PLACE;
	asked = 0;
	share.in[DESTINATION_LEASED] = 0;
	wait = (struct probe_wait){ .on_known = on_known };
	probes = probes_create(&parts);
	ck_assert_ptr_nonnull(probes);
}

static void teardown(void)
{
	probes_destroy(probes);
}

static enum probe_answer ask(const char *mailbox)
{
	return probes_ask(probes, LINE, smtp_span_of(mailbox), &wait, &reply);
}

static enum probe_answer again; /* who waited asks again */

static void ask_again(struct probe_wait *w)
{
	again = ask("k@" LINE);
}

/* It has waited for its turn until the deadline. */
static void waits_too_long(const char *mailbox)
{
	wait.on_known = ask_again;
	ck_assert_int_eq(ask(mailbox), PROBE_ASKS);
	asking->destination = &receiver;
	is_over(asking);
}

START_TEST(a_recipient_is_put_off_while_others_have_the_connections_of_its_receiver)
{
	share.in[DESTINATION_LEASED] = 1;
	waits_too_long("k@" LINE);
	ck_assert_int_eq(again, PROBE_PUTS_OFF);
	ck_assert_int_eq(ask("k@" LINE), PROBE_ASKS); /* nothing is remembered */
	is_over(asking);
}
END_TEST

START_TEST(a_recipient_is_put_off_if_there_is_no_place_for_its_receiver)
{
	place = RECEIVER_HAS_NONE;
	ck_assert_int_eq(ask("k@" LINE), PROBE_PUTS_OFF);
	ck_assert_int_eq(ask("k@" LINE), PROBE_PUTS_OFF);
	ck_assert_uint_eq(asked, 2);
}
END_TEST

START_TEST(recipients_of_a_receiver_that_does_not_answer_are_taken)
{
	waits_too_long("k@" LINE);
	ck_assert_int_eq(again, PROBE_TAKES);
	ck_assert_int_eq(ask("other@" LINE), PROBE_TAKES);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

/* To RCPT. */
static void answers(enum fate fate, const char *text)
{
	ck_assert_int_eq(fates_begin(&asking->fates, 1, (struct smtp_span){ 0 }), 0);
	fates_set(&asking->fates, 0, fate, smtp_span_of(text));
	asking->destination = &receiver;
	asking->state = COURIER_RESET;
	asking->at = 1;
	is_over(asking);
}

static const struct {
	const char *text;
	enum probe_answer answer;
} replies[] = {
	{ "550 5.1.1 Nobody", PROBE_REFUSES },
	{ "550 5.1.2 No such host", PROBE_REFUSES },
	{ "550 5.1.3 Bad syntax", PROBE_REFUSES },
	{ "551 5.1.6 Moved", PROBE_REFUSES },
	{ "550 5.1.10 Not found", PROBE_REFUSES },
	{ "550 5.2.1 Disabled", PROBE_REFUSES },
	{ "550 5.4.1 Recipient address rejected: Access denied.", PROBE_REFUSES },
	{ "552 5.2.2 Full", PROBE_REFUSES },
	{ "550 No such user here", PROBE_REFUSES },
	{ "550 5.1.0 Address rejected", PROBE_TAKES },
	{ "550 5.1.7 Bad sender", PROBE_TAKES },
	{ "550 5.1.8 Sender has no MX", PROBE_TAKES },
	{ "550 5.7.1 Not authorized", PROBE_TAKES },
	{ "550 5.7.23 SPF", PROBE_TAKES },
	{ "554 5.3.2 Not now", PROBE_TAKES },
};

START_TEST(a_refusal_counts_if_it_is_about_the_recipient)
{
	char words[64];

	ck_assert_int_eq(ask("k@" LINE), PROBE_ASKS);
	answers(FATE_FAILED, replies[_i].text);
	ck_assert_int_eq(ask("k@" LINE), replies[_i].answer);
	if (replies[_i].answer != PROBE_REFUSES)
		return;
	snprintf(words, sizeof words, "%s\r\n", replies[_i].text);
	ck_assert_str_eq(reply, words);
}
END_TEST

START_TEST(names_that_differ_by_case_are_one_recipient)
{
	const char *const names[] = { "Jane.Doe@" LINE, "jane.doe@" LINE, "JANE.DOE@OURS.EXAMPLE",
		"jane.DOE@Ours.Example" };

	ck_assert_int_eq(ask(names[0]), PROBE_ASKS);
	answers(FATE_FAILED, "550 5.1.1 Nobody");
	for (size_t n = 0; n < SUITE_LEN(names); n++)
		ck_assert_int_eq(ask(names[n]), PROBE_REFUSES);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

UNIT(probe)
{
	const TTest *facts[] = {
		a_recipient_is_put_off_while_others_have_the_connections_of_its_receiver,
		a_recipient_is_put_off_if_there_is_no_place_for_its_receiver,
		recipients_of_a_receiver_that_does_not_answer_are_taken,
		names_that_differ_by_case_are_one_recipient,
	};
	TCase *all = tcase_create("probe");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_loop_test(all, a_refusal_counts_if_it_is_about_the_recipient, 0, SUITE_LEN(replies));
	return suite_run_case("probe", all, facts, SUITE_LEN(facts));
}
