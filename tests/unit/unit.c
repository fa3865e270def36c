/* unit.c: the main() of a program of unit tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct unit *units;

void unit_add(struct unit *unit)
{
	unit->next = units;
	units = unit;
}

int main(int argc, char **argv)
{
	int failed = 0, run = 0;

	for (struct unit *u = units; u; u = u->next) {
		if (argc > 1 && strcmp(u->name, argv[1]) != 0)
			continue;
		failed |= u->run();
		run++;
	}
	if (run == 0)
		fprintf(stderr, "%s: no unit '%s'\n", argv[0], argc > 1 ? argv[1] : "");
	return failed || run == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
