/* options.c: the table of options as an array. */
#include "csslctl/options.h"

#include <string.h>

static const struct option_row rows[OPTION_COUNT] = {
#define X(NAME, name, value, scope, meaning) [OPTION_##NAME] = { name, value, OPTION_##scope, meaning },
	OPTIONS(X)
#undef X
};

const struct option_row *option_row(enum option option)
{
	return &rows[option];
}

enum option option_find(const char *name, unsigned long len)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (strlen(rows[o].name) == len && strncmp(rows[o].name, name, len) == 0)
			return o;
	return OPTION_NONE;
}
