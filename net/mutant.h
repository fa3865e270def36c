/* mutant.h: test builds hold mistakes that break a law on purpose, so that a test run can see whether the audit
 * notices. A process makes the one that $CSSL_MUTANT names, and otherwise none. tests/lib/mutants.py has the table of
 * all: name, law, and the scenario that must fail. Other builds hold nothing of this. */
#ifndef CSSL_NET_MUTANT_H
#define CSSL_NET_MUTANT_H

#ifdef CSSL_TEST_POINTS
/* Does this process make the mistake @name? 1 or 0. */
int mutant(const char *name);
#else
#define mutant(name) 0
#endif

#endif
