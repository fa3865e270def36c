/* test_untraced.c: facts of a process whose memory no other process reads. Each test has a process of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/memory/heap_tide.h"
#include "net/process/user.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define NOBODY 65534

static void become_ordinary(void)
{
	if (geteuid() == 0)
		ck_assert(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

START_TEST(leaves_no_core_file_and_is_not_dumpable)
{
	struct rlimit core;

	ck_assert_int_eq(untraced_begin(), 0);
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_CORE, &core), 0);
	ck_assert_int_eq(core.rlim_cur, 0);
	ck_assert_int_eq(core.rlim_max, 0);
}
END_TEST

START_TEST(its_children_are_untraced_too)
{
	int status = 0;

	ck_assert_int_eq(untraced_begin(), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(an_ordinary_users_process_still_reads_its_own_proc)
{
	become_ordinary();
	ck_assert_int_eq(untraced_begin(), 0);
	ck_assert_uint_gt(resident_bytes(), 0);
	/* as log.c opens the target of standard error */
	FILE *to = tmpfile();
	ck_assert_ptr_nonnull(to);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(to));
	ck_assert_int_ge(open(path, O_WRONLY | O_APPEND), 0);
	fclose(to);
}
END_TEST

#ifdef CSSL_TEST_POINTS
START_TEST(a_test_build_stays_traceable_when_it_is_asked_to)
{
	ck_assert_int_eq(setenv("CSSL_TRACEABLE", "1", 1), 0);
	ck_assert_int_eq(untraced_begin(), 0);
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
}
END_TEST
#endif

UNIT(untraced)
{
	const TTest *facts[] = {
		leaves_no_core_file_and_is_not_dumpable,
		its_children_are_untraced_too,
		an_ordinary_users_process_still_reads_its_own_proc,
#ifdef CSSL_TEST_POINTS
		a_test_build_stays_traceable_when_it_is_asked_to,
#endif
	};
	return suite_run("untraced", facts, SUITE_LEN(facts));
}
