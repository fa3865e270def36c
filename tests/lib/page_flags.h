/* page_flags.h: what the kernel says of the pages at an address. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Does /proc/self/smaps show the flag for the mapping of @at? " dd" is MADV_DONTDUMP, " lo" is locked. */
static inline int page_has_flag(const void *at, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	int inside = 0, found = 0;

	while (f && fgets(line, sizeof line, f)) {
		unsigned long begin, end;
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			inside = (uintptr_t)at >= begin && (uintptr_t)at < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	if (f)
		fclose(f);
	return found;
}
