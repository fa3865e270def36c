/* rules.c: see rules.h. */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "net/points/fault.h"
#include "rules.h"

void rules_write(const char *text)
{
	char path[256], fresh[256];

	snprintf(path, sizeof path, "%s/faults", temp_dir());
	snprintf(fresh, sizeof fresh, "%s/faults.new", temp_dir());
	FILE *f = fopen(fresh, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(rename(fresh, path), 0);
	setenv("CSSL_FAULTS", path, 1);
}

void rules_set(const char *node, const char *text)
{
	fault_stop();
	rules_write(text);
	fault_start(node);
}
