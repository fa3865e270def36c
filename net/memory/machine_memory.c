/* machine_memory.c: /proc/meminfo, and the limits of each group from the process's own up to the root. A container
 * often sees its own group as the root, and the path in /proc/self/cgroup may not exist there: a file that cannot be
 * read sets no limit.
 */
#include "net/memory/machine_memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_LEN 4096u

static FILE *open_below(const char *root, const char *path)
{
	char whole[PATH_MAX];
	int n = snprintf(whole, sizeof whole, "%s%s", root, path);

	return n > 0 && (size_t)n < sizeof whole ? fopen(whole, "re") : NULL;
}

static uint64_t of_machine(const char *root)
{
	FILE *f = open_below(root, "/proc/meminfo");
	char line[LINE_MAX_LEN];
	unsigned long long kib = 0;

	while (f && kib == 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "MemTotal: %llu kB", &kib) != 1)
			kib = 0;
	if (f)
		fclose(f);
	return (uint64_t)kib * 1024;
}

/* 0: no limit. "max" means no limit, and so does a value larger than any machine's memory. */
static uint64_t read_limit(const char *root, const char *path)
{
	FILE *f = open_below(root, path);
	unsigned long long bytes = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%llu", &bytes) != 1 || bytes > UINT64_MAX / 4)
		bytes = 0;
	fclose(f);
	return bytes;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The lowest limit of @group (it begins with /) and of the groups around it, below the mount point. @group is
 * changed. */
static uint64_t of_groups(const char *root, const char *mount, char *group, const char *file)
{
	uint64_t least = 0;
	char path[PATH_MAX];

	for (;;) {
		if (snprintf(path, sizeof path, "%s%s/%s", mount, group, file) < (int)sizeof path)
			least = smaller(least, read_limit(root, path));
		char *slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* `0::/path` is version 2; `4:cpu,memory:/path` version 1. @controllers is changed. */
static bool has_memory(char *controllers)
{
	char *rest = NULL;

	for (char *word = strtok_r(controllers, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (strcmp(word, "memory") == 0)
			return true;
	return false;
}

static uint64_t of_line(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group)
		return 0;
	*group++ = '\0';
	controllers++;
	group[strcspn(group, "\n")] = '\0';
	if (strcmp(group, "/") == 0)
		*group = '\0';
	if (*controllers == '\0')
		return of_groups(root, "/sys/fs/cgroup", group, "memory.max");
	return has_memory(controllers) ? of_groups(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes") : 0;
}

uint64_t machine_memory(const char *root)
{
	FILE *f = open_below(root, "/proc/self/cgroup");
	uint64_t least = of_machine(root);
	char line[LINE_MAX_LEN];

	while (f && fgets(line, sizeof line, f))
		least = smaller(least, of_line(root, line));
	if (f)
		fclose(f);
	return least;
}
