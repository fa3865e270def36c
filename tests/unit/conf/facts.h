/* facts.h: run one test case of Check as a program. */
#pragma once

#include <check.h>
#include <stdlib.h>

#define ROWS(table) ((int)(sizeof(table) / sizeof((table)[0])))

static inline int facts_run(TCase *facts)
{
	Suite *suite = suite_create("conf");
	suite_add_tcase(suite, facts);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
