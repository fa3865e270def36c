/* test_params.c: facts of the parameters of MAIL and RCPT. */
#include "smtp/params.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtp_params params;

static enum smtp_own read_for(enum smtp_verb verb, const char *text)
{
	return smtp_params_read(verb, smtp_span_of(text), &params);
}

START_TEST(every_parameter_of_mail_is_read)
{
	const char *all =
		"SIZE=1000 body=8BITMIME SMTPUTF8 RET=HDRS ENVID=QQ314159 AUTH=<> REQUIRETLS MT-PRIORITY=3 BY=120;R "
		"XCSSLTX=0a1b/7";
	ck_assert_int_eq(read_for(SMTP_VERB_MAIL, all), SMTP_OWN_NONE);
	ck_assert_uint_eq(params.size, 1000);
	ck_assert(smtp_span_is(params.value[SMTP_PARAM_BODY], "8BITMIME"));
	ck_assert(smtp_params_has(&params, SMTP_PARAM_REQUIRETLS));
	ck_assert(!smtp_params_has(&params, SMTP_PARAM_NOTIFY));
}
END_TEST

START_TEST(every_parameter_of_rcpt_is_read)
{
	ck_assert_int_eq(
		read_for(SMTP_VERB_RCPT, "NOTIFY=SUCCESS,DELAY ORCPT=rfc822;a+2Bb@c RRVS=2014-04-03T23:01:00Z"),
		SMTP_OWN_NONE);
	ck_assert(smtp_params_has(&params, SMTP_PARAM_RRVS));
	ck_assert_int_eq(read_for(SMTP_VERB_RCPT, "NOTIFY=NEVER"), SMTP_OWN_NONE);
	ck_assert_int_eq(read_for(SMTP_VERB_RCPT, ""), SMTP_OWN_NONE);
}
END_TEST

START_TEST(a_bad_value_is_refused)
{
	const char *mail[] = { "SIZE=", "SIZE", "SIZE=x", "SIZE=-1", "SIZE=99999999999999999999999", "BODY=9BIT",
		"SMTPUTF8=1", "RET=ALL", "ENVID=a=b", "AUTH=a+2", "REQUIRETLS=yes", "SIZE=1 SIZE=1", "=1", "-X=1",
		"S IZE=", "XCSSLTX=1", "XCSSLTX=a/0", "XCSSLTX=a-b/1" };
	const char *rcpt[] = { "NOTIFY=NEVER,DELAY", "NOTIFY=", "NOTIFY=,", "NOTIFY=DELAY,", "ORCPT=rfc822", "ORCPT=;a",
		"ORCPT=rfc822;a+zz" };
	for (size_t i = 0; i < sizeof mail / sizeof mail[0]; i++)
		ck_assert_msg(read_for(SMTP_VERB_MAIL, mail[i]) != SMTP_OWN_NONE, "%s", mail[i]);
	for (size_t i = 0; i < sizeof rcpt / sizeof rcpt[0]; i++)
		ck_assert_msg(read_for(SMTP_VERB_RCPT, rcpt[i]) == SMTP_OWN_BAD_PARAMETER, "%s", rcpt[i]);
}
END_TEST

START_TEST(an_unknown_parameter_has_its_own_reply)
{
	ck_assert_int_eq(read_for(SMTP_VERB_MAIL, "X-ODD=1"), SMTP_OWN_UNKNOWN_PARAMETER);
	ck_assert_int_eq(read_for(SMTP_VERB_RCPT, "SIZE=1"), SMTP_OWN_UNKNOWN_PARAMETER);
	ck_assert_int_eq(read_for(SMTP_VERB_MAIL, "RET=FOO"), SMTP_OWN_UNKNOWN_PARAMETER);
	ck_assert_int_eq(read_for(SMTP_VERB_MAIL, "BODY=FOO"), SMTP_OWN_UNKNOWN_PARAMETER);
}
END_TEST

static uint32_t extensions(const char *line)
{
	struct smtp_command c;
	ck_assert_int_eq(smtp_command_parse(smtp_span_of(line), 0, &c), SMTP_OWN_NONE);
	return smtp_params_extensions(&c);
}

START_TEST(a_parameter_belongs_to_an_extension)
{
	ck_assert_uint_eq(extensions("MAIL FROM:<a@b>"), 0);
	ck_assert_uint_eq(extensions("MAIL FROM:<a@b> X-ODD=1 BODY=7BIT"), 0);
	ck_assert_uint_eq(extensions("MAIL FROM:<a@b> size=1 = RET=FULL"),
		SMTP_CAP_BIT(SMTP_CAP_SIZE) | SMTP_CAP_BIT(SMTP_CAP_DSN));
	ck_assert_uint_eq(extensions("MAIL FROM:<a@b> BODY=8bitmime"), SMTP_CAP_BIT(SMTP_CAP_8BITMIME));
	ck_assert_uint_eq(extensions("MAIL FROM:<a@b> BODY=BINARYMIME"), SMTP_CAP_BIT(SMTP_CAP_BINARYMIME));
	ck_assert_uint_eq(extensions("MAIL FROM:<a@b> prdr"), SMTP_CAP_BIT(SMTP_CAP_FOREIGN));
	ck_assert_uint_eq(extensions("RCPT TO:<a@b> NOTIFY=NEVER"), SMTP_CAP_BIT(SMTP_CAP_DSN));
	ck_assert_uint_eq(extensions("NOOP SIZE=1"), 0);
}
END_TEST

START_TEST(parameters_can_be_read_one_by_one)
{
	struct smtp_span rest = smtp_span_of(" A=b  C ");
	struct smtp_param param;
	ck_assert_int_eq(smtp_param_next(&rest, &param), 0);
	ck_assert(smtp_span_is(param.keyword, "A") && smtp_span_is(param.value, "b"));
	ck_assert_int_eq(smtp_param_next(&rest, &param), 0);
	ck_assert(smtp_span_is(param.keyword, "C"));
	ck_assert_ptr_null(param.value.at);
	ck_assert_int_eq(smtp_param_next(&rest, &param), SMTP_PARAMS_END);
}
END_TEST

UNIT(params)
{
	const TTest *facts[] = {
		every_parameter_of_mail_is_read,
		every_parameter_of_rcpt_is_read,
		a_bad_value_is_refused,
		an_unknown_parameter_has_its_own_reply,
		a_parameter_belongs_to_an_extension,
		parameters_can_be_read_one_by_one,
	};
	return suite_run("params", facts, SUITE_LEN(facts));
}
