/* suite.h: runs the facts of one test file. Check gives each fact its own process unless CK_FORK=no. */
#pragma once

#include <check.h>
#include <stdlib.h>

#define SUITE_LEN(facts) (sizeof(facts) / sizeof((facts)[0]))

/* The exit status of the test program. */
static inline int suite_run_case(const char *name, TCase *all, const TTest *const *facts, size_t count)
{
	Suite *suite = suite_create(name);
	suite_add_tcase(suite, all);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(all, facts[i]);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(const char *name, const TTest *const *facts, size_t count)
{
	return suite_run_case(name, tcase_create(name), facts, count);
}

/* @before runs before each fact. */
static inline int suite_run_with(const char *name, void (*before)(void), const TTest *const *facts, size_t count)
{
	TCase *all = tcase_create(name);
	tcase_add_checked_fixture(all, before, NULL);
	return suite_run_case(name, all, facts, count);
}

/* A fact may take so long. */
static inline int suite_run_within(unsigned seconds, const char *name, const TTest *const *facts, size_t count)
{
	TCase *all = tcase_create(name);
	tcase_set_timeout(all, seconds);
	return suite_run_case(name, all, facts, count);
}
