/* descriptors.c: RLIMIT_NOFILE. */
#include "bench/command/descriptors.h"

#include <sys/resource.h>

void descriptors_raise_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
