/* untraced.c: the mark PR_SET_DUMPABLE (prctl(2)), and a limit of core files beside it. */
#include "net/untraced.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "proto/error.h"

int untraced_begin(void)
{
	const struct rlimit no_core = { 0, 0 };

#ifdef CSSL_TEST_POINTS
	if (getenv("CSSL_TRACEABLE"))
		return 0;
#endif
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || setrlimit(RLIMIT_CORE, &no_core) != 0)
		return CSSL_E_SYSTEM;
	return 0;
}
