/* test_fallback.c: facts of mail in clear to receivers whose TLS has failed. */
#include "smtpproxy/outward/fallback.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static int demands_tls(const char *text)
{
	struct smtp_reply_line line;
	ck_assert_int_eq(smtp_reply_line_parse(smtp_span_of(text), &line), 0);
	return fallback_demands_tls(&line);
}

static int is_refused(const struct onward *o, const char *text)
{
	struct smtp_reply_line line;
	ck_assert_int_eq(smtp_reply_line_parse(smtp_span_of(text), &line), 0);
	return fallback_is_refused(o, &line);
}

START_TEST(a_reply_demands_tls_by_its_code_or_by_its_words)
{
	ck_assert(demands_tls("530 5.7.0 Must issue a STARTTLS command first"));
	ck_assert(demands_tls("530-Must issue"));
	ck_assert(demands_tls("530"));
	ck_assert(demands_tls("550 5.7.10 Encryption needed"));
	ck_assert(demands_tls("554 5.7.0 Use Tls"));
	ck_assert(demands_tls("550-5.7.1 STARTTLS is required here"));
}
END_TEST

START_TEST(other_refusals_do_not_demand_tls)
{
	ck_assert(!demands_tls("550 5.7.0 Not authorized"));
	ck_assert(!demands_tls("550 5.1.8 No mail from tls.example"));
	ck_assert(!demands_tls("550 TLS"));
	ck_assert(!demands_tls("450 4.7.0 TLS is required"));
	ck_assert(!demands_tls("250 2.7.0 TLS"));
	ck_assert(!demands_tls("550 5.7.1 TL"));
}
END_TEST

START_TEST(only_a_connection_whose_tls_had_failed_is_refused_for_lack_of_tls)
{
	static const char reply[] = "530 5.7.0 Must issue a STARTTLS command first";
	struct onward o = { .demand.tls = SMTPPROXY_TLS_NONE };
	ck_assert(!is_refused(&o, reply)); /* the file says so */
	o.demand.clear = ONWARD_CLEAR_BY_FALLBACK;
	ck_assert(is_refused(&o, reply));
	ck_assert(!is_refused(&o, "550 5.1.1 No such user"));
	o.demand = (struct onward_demand){ .tls = SMTPPROXY_TLS_MAY };
	ck_assert(!is_refused(&o, reply)); /* it offers no TLS */
	o.greeting.has = SMTP_CAP_BIT(SMTP_CAP_STARTTLS);
	ck_assert(is_refused(&o, reply)); /* it offers STARTTLS, and has refused it */
	o.tls = (struct onward_tls *)&o;
	ck_assert(!is_refused(&o, reply));
}
END_TEST

#define MINUTES(n) ((n)*60000u)

static struct smtpproxy_counters counters;

/* A handshake ends so. 1: mail goes in clear behind it. */
static int is_in_clear(struct fallback *f, enum onward_shake shake, uint64_t now_ms)
{
	const struct outward_home home = { .counters = &counters };
	const struct onward o = { .home = &home, .demand.tls = SMTPPROXY_TLS_MAY, .shake = (uint8_t)shake };
	struct onward_demand next = { .tls = SMTPPROXY_TLS_MAY };
	fallback_note(f, &o, "mail.example", now_ms);
	fallback_apply(f, &next, now_ms);
	return next.tls == SMTPPROXY_TLS_NONE;
}

START_TEST(a_failure_of_tls_itself_counts_at_once)
{
	struct fallback f = { 0 };
	ck_assert(is_in_clear(&f, ONWARD_SHAKE_FAILED, 1000));
	ck_assert_uint_eq(fallback_kept_ms(&f, 1000), MINUTES(30));
}
END_TEST

START_TEST(the_third_lost_handshake_in_a_row_counts_if_minutes_lie_behind_the_first)
{
	struct fallback f = { 0 };
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, 1000));
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, MINUTES(10)));
	ck_assert(is_in_clear(&f, ONWARD_SHAKE_LOST, MINUTES(11)));
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_NONE, MINUTES(41)));
	ck_assert(is_in_clear(&f, ONWARD_SHAKE_LOST, MINUTES(42))); /* none has worked since */
}
END_TEST

START_TEST(lost_handshakes_within_minutes_are_one_event)
{
	struct fallback f = { 0 };
	for (unsigned i = 0; i < 9; i++)
		ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, 1000 + MINUTES(i) / 2));
	ck_assert(is_in_clear(&f, ONWARD_SHAKE_LOST, 1000 + MINUTES(5)));
}
END_TEST

START_TEST(a_handshake_that_works_begins_the_count_anew)
{
	struct fallback f = { 0 };
	for (unsigned i = 0; i < 50; i++)
		ck_assert(
			!is_in_clear(&f, i % 3 == 2 ? ONWARD_SHAKE_WORKED : ONWARD_SHAKE_LOST, 1000 + MINUTES(10 * i)));
}
END_TEST

START_TEST(our_own_lack_of_memory_is_not_counted)
{
	struct fallback f = { 0 };
	for (unsigned i = 0; i < 9; i++)
		ck_assert(!is_in_clear(&f, ONWARD_SHAKE_NONE, 1000 + MINUTES(10 * i)));
	ck_assert_uint_eq(fallback_kept_ms(&f, MINUTES(100)), 0);
}
END_TEST

START_TEST(lost_handshakes_are_remembered_for_hours)
{
	struct fallback f = { 0 };
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, 1000));
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, 1000));
	ck_assert_uint_eq(fallback_kept_ms(&f, 1000 + MINUTES(60)), MINUTES(5 * 60));
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, 1000 + MINUTES(6 * 60)));
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, 1000 + MINUTES(7 * 60)));
	ck_assert(is_in_clear(&f, ONWARD_SHAKE_LOST, 1000 + MINUTES(8 * 60)));
}
END_TEST

START_TEST(where_tls_is_demanded_no_handshake_counts)
{
	struct fallback f = { 0 };
	const struct onward o = { .demand.tls = SMTPPROXY_TLS_ENCRYPT, .shake = ONWARD_SHAKE_FAILED };
	fallback_note(&f, &o, "", 1000);
	ck_assert_uint_eq(f.till_ms, 0);
}
END_TEST

START_TEST(a_demand_for_tls_ends_the_fallback_and_the_count)
{
	struct fallback f = { 0 };
	for (unsigned i = 0; i < 3; i++)
		is_in_clear(&f, ONWARD_SHAKE_LOST, 1000 + MINUTES(10 * i));
	fallback_end(&f, "mail.example");
	ck_assert(!is_in_clear(&f, ONWARD_SHAKE_LOST, MINUTES(30)));
}
END_TEST

START_TEST(a_fallback_concerns_only_connections_that_may_do_without_tls)
{
	const struct fallback f = { .till_ms = 1000 };
	struct onward_demand may = { .tls = SMTPPROXY_TLS_MAY }, must = { .tls = SMTPPROXY_TLS_ENCRYPT };
	fallback_apply(&f, &must, 999);
	ck_assert_int_eq(must.tls, SMTPPROXY_TLS_ENCRYPT);
	fallback_apply(&f, &may, 1000);
	ck_assert_int_eq(may.tls, SMTPPROXY_TLS_MAY);
	fallback_apply(&f, &may, 999);
	ck_assert_int_eq(may.tls, SMTPPROXY_TLS_NONE);
	ck_assert_int_eq(may.clear, ONWARD_CLEAR_BY_FALLBACK);
}
END_TEST

UNIT(fallback)
{
	const TTest *facts[] = {
		a_reply_demands_tls_by_its_code_or_by_its_words,
		other_refusals_do_not_demand_tls,
		only_a_connection_whose_tls_had_failed_is_refused_for_lack_of_tls,
		a_failure_of_tls_itself_counts_at_once,
		the_third_lost_handshake_in_a_row_counts_if_minutes_lie_behind_the_first,
		lost_handshakes_within_minutes_are_one_event,
		a_handshake_that_works_begins_the_count_anew,
		our_own_lack_of_memory_is_not_counted,
		lost_handshakes_are_remembered_for_hours,
		where_tls_is_demanded_no_handshake_counts,
		a_demand_for_tls_ends_the_fallback_and_the_count,
		a_fallback_concerns_only_connections_that_may_do_without_tls,
	};
	return suite_run("fallback", facts, SUITE_LEN(facts));
}
