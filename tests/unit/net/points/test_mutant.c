/* test_mutant.c: facts of planted mistakes. */
#include <stdlib.h>

#include "net/points/mutant.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

START_TEST(no_mistake_is_made_by_itself)
{
	unsetenv("CSSL_MUTANT");
	ck_assert(!mutant("epoch-dropped"));
	setenv("CSSL_MUTANT", "epoch-dropped", 1);
	ck_assert(!mutant("epoch-dropped")); /* a process does not change */
}
END_TEST

START_TEST(the_one_that_is_named_is_made_and_no_other)
{
	setenv("CSSL_MUTANT", "epoch-dropped", 1);
	ck_assert(mutant("epoch-dropped"));
	ck_assert(!mutant("epoch"));
	ck_assert(!mutant(""));
}
END_TEST

START_TEST(an_empty_name_names_none)
{
	setenv("CSSL_MUTANT", "", 1);
	ck_assert(!mutant(""));
}
END_TEST

UNIT(mutant)
{
	const TTest *facts[] = {
		no_mistake_is_made_by_itself,
		the_one_that_is_named_is_made_and_no_other,
		an_empty_name_names_none,
	};
	return worker_suite_run("mutant", facts, FACTS_LEN(facts));
}
