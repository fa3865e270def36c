/* test_form.c: facts of an argument that can be checked alone. */
#include <stddef.h>
#include <string.h>

#include "csslctl/form.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define HEX_32 "0123456789abcdefABCDEF0123456789"

static const struct {
	const char *placeholder, *right[3], *wrong[5];
} rows[] = {
	{ "AGENT", { "a1", "frankfurt-2.b_c" }, { "", "..", "a1/drain", "a b", "-x" } },
	{ "SESSION", { HEX_32 HEX_32 }, { "", "count", HEX_32, HEX_32 HEX_32 "0", HEX_32 "g" } },
	{ "FAMILY", { HEX_32 }, { "", "zz", HEX_32 "0" } },
	{ "NETWORK", { "192.0.2.7", "10.0.0.0/8", "::1/128" }, { "", "me", "10.0.0.0/33", "1.2.3" } },
	{ "VERSION", { "1.2", "1.3" }, { "", "1.1", "1.30" } },
	{ "SUITE", { "TLS_AES_128_GCM_SHA256" }, { "", "RC4", "TLS_AES_128" } },
	{ "LEVEL", { "debug", "error", "configured" }, { "", "loud", "DEBUG" } },
	{ "X", { "1", "0.01", "1e3" }, { "", "0", "nan", "inf", "2x" } },
};

START_TEST(a_form_takes_texts_that_fit_and_refuses_others)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct form *form = form_of(rows[i].placeholder);
		ck_assert_ptr_nonnull(form);
		for (unsigned j = 0; j < 3 && rows[i].right[j]; j++)
			ck_assert_msg(form->fits(rows[i].right[j]), "%s: %s", form->what, rows[i].right[j]);
		for (unsigned j = 0; j < 5 && rows[i].wrong[j]; j++)
			ck_assert_msg(!form->fits(rows[i].wrong[j]), "%s: %s", form->what, rows[i].wrong[j]);
	}
}
END_TEST

START_TEST(of_most_arguments_nothing_can_be_told)
{
	ck_assert_ptr_null(form_of("FILE"));
	ck_assert_ptr_null(form_of("PATTERN"));
}
END_TEST

UNIT(form)
{
	const TTest *facts[] = { a_form_takes_texts_that_fit_and_refuses_others,
		of_most_arguments_nothing_can_be_told };
	return suite_run("form", facts, SUITE_LEN(facts));
}
