/* mutant.h: mistakes that break a law on purpose, in test builds only, to see whether the audit notices them. A process
 * makes the mistake that $CSSL_MUTANT names. tests/lib/mutants.py has the table of all: name, law, and the scenario
 * that must fail. */
#pragma once

#include <stdbool.h>

#ifdef CSSL_TEST_POINTS
/* Does this process make the mistake @name? */
bool mutant(const char *name);
#else
#define mutant(name) false
#endif
