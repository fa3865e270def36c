/* resident.c: the second number of /proc/self/statm, in pages. */
#include "net/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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
