/* unit.h: one program for the test files of a folder. Its argument names the unit that it runs; without one it runs all
 *of them.
 *
 *	UNIT(kept)
 *	{
 *		...
 *		return suite_run("kept", facts, SUITE_LEN(facts));
 *	}
 *
 * stands at the end of test_kept.c, and returns an exit status. */
#pragma once

struct unit {
	const char *name;
	int (*run)(void);
	struct unit *next;
};

void unit_add(struct unit *unit);

#define UNIT(which)                                                                                                    \
	static int which##_unit(void);                                                                                 \
	__attribute__((constructor)) static void which##_unit_add(void)                                                \
	{                                                                                                              \
		static struct unit unit = { #which, which##_unit, 0 };                                                 \
		unit_add(&unit);                                                                                       \
	}                                                                                                              \
	static int which##_unit(void)
