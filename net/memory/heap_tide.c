/* heap_tide.c: detects the end of a burst; malloc_trim() also gives back free pages between blocks in use. What a
 * process has in RAM is the second number of /proc/self/statm, in pages. */
#include "net/memory/heap_tide.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

bool heap_tide_is_over(struct heap_tide *t, uint32_t peak, uint32_t now, uint64_t now_ms)
{
	if (peak > t->high)
		t->high = peak;
	if (t->high < HEAP_TIDE_HIGH || now > t->high / 4 || now_ms < t->not_before_ms)
		return false;
	t->high = now;
	t->not_before_ms = now_ms + HEAP_TIDE_EVERY_MS;
	return true;
}

uint64_t resident_bytes(void)
{
	char text[128];
	unsigned long all, resident = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	if (sscanf(text, "%lu %lu", &all, &resident) != 2)
		return 0;
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t heap_give_back(void)
{
	uint64_t before = resident_bytes();

	malloc_trim(0);
	uint64_t after = resident_bytes();
	return before > after ? before - after : 0;
}
