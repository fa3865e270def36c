/* test_fallback.c: facts of mail in clear to receivers whose TLS has failed. */
#include "smtpproxy/outward/fallback.h"

#include "tests/unit/proto/suite.h"

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

int main(void)
{
	const TTest *facts[] = {
		a_reply_demands_tls_by_its_code_or_by_its_words,
		other_refusals_do_not_demand_tls,
		only_a_connection_whose_tls_had_failed_is_refused_for_lack_of_tls,
		a_fallback_concerns_only_connections_that_may_do_without_tls,
	};
	return suite_run("fallback", facts, SUITE_LEN(facts));
}
