/* test_machine_memory.c: facts of the memory that a process may use, in made-up /proc and /sys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "net/memory/machine_memory.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define GIB (UINT64_C(1) << 30)

static char root[256];

static void start(void)
{
	static unsigned number;

	snprintf(root, sizeof root, "%s/machine%u", temp_dir(), number++);
	ck_assert_int_eq(mkdir(root, 0700), 0);
}

static void put(const char *path, const char *text)
{
	char whole[512];

	snprintf(whole, sizeof whole, "%s%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	FILE *f = fopen(whole, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void machine_of_8_gib(void)
{
	start();
	put("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\n");
}

START_TEST(without_groups_it_is_the_machines)
{
	machine_of_8_gib();
	ck_assert_uint_eq(machine_memory(root), 8 * GIB);
}
END_TEST

START_TEST(nothing_known_is_0)
{
	start();
	ck_assert_uint_eq(machine_memory(root), 0);
}
END_TEST

START_TEST(a_limit_of_version_2_counts)
{
	machine_of_8_gib();
	put("/proc/self/cgroup", "0::/system.slice/cssl.service\n");
	put("/sys/fs/cgroup/system.slice/cssl.service/memory.max", "1073741824\n");
	ck_assert_uint_eq(machine_memory(root), GIB);
}
END_TEST

START_TEST(no_limit_is_none)
{
	machine_of_8_gib();
	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/a/memory.max", "max\n");
	ck_assert_uint_eq(machine_memory(root), 8 * GIB);
}
END_TEST

START_TEST(the_smallest_of_the_groups_around_counts)
{
	machine_of_8_gib();
	put("/proc/self/cgroup", "0::/a/b/c\n");
	put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/c/memory.max", "4294967296\n");
	ck_assert_uint_eq(machine_memory(root), GIB);
}
END_TEST

START_TEST(a_container_sees_its_group_as_the_root)
{
	machine_of_8_gib();
	put("/proc/self/cgroup", "0::/\n");
	put("/sys/fs/cgroup/memory.max", "536870912\n");
	ck_assert_uint_eq(machine_memory(root), GIB / 2);
}
END_TEST

START_TEST(a_limit_of_version_1_counts)
{
	machine_of_8_gib();
	put("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n");
	put("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "2147483648\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	ck_assert_uint_eq(machine_memory(root), 2 * GIB);
}
END_TEST

START_TEST(a_limit_above_the_machine_is_none)
{
	machine_of_8_gib();
	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/a/memory.max", "1099511627776\n");
	ck_assert_uint_eq(machine_memory(root), 8 * GIB);
}
END_TEST

START_TEST(this_machine_has_some)
{
	ck_assert_uint_gt(machine_memory(""), 64u << 20);
}
END_TEST

UNIT(machine_memory)
{
	const TTest *facts[] = {
		without_groups_it_is_the_machines,
		nothing_known_is_0,
		a_limit_of_version_2_counts,
		no_limit_is_none,
		the_smallest_of_the_groups_around_counts,
		a_container_sees_its_group_as_the_root,
		a_limit_of_version_1_counts,
		a_limit_above_the_machine_is_none,
		this_machine_has_some,
	};

	return worker_suite_run("machine_memory", facts, FACTS_LEN(facts));
}
