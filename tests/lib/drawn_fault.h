/* drawn_fault.h: which of the faults that drawn_faults.py planted happens in this process: that of $CSSL_DRAWN. */
#pragma once

#include <stdlib.h>

#define DRAWN(n) (drawn_fault() == (n))

static inline int drawn_fault(void)
{
	static int which = -1;

	if (which < 0) {
		const char *named = getenv("CSSL_DRAWN");
		which = named ? atoi(named) : 0;
	}
	return which;
}
