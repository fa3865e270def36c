/* descriptors.c: RLIMIT_NOFILE. */
#include "net/process/descriptors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include "net/report/log.h"

void descriptors_raise(uint64_t needed)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		log_event(LOG_WARNING, NULL, "descriptor limit not raised", "cause=%s", strerror(errno));
	if (files.rlim_cur < needed)
		log_event(LOG_WARNING, NULL, "too few descriptors",
			"allowed=%llu needed=%llu remedy=\"LimitNOFILE= of the unit, or less of "
			"`connections` (smtpproxy: `sessions`) in `limits`\"",
			(unsigned long long)files.rlim_cur, (unsigned long long)needed);
}
