/* background.c: two forks and a pipe. The process between the two exits at once, so that the one that stays is a child
 * of init, or of the service manager, which can then watch it.
 */
#include "ragent/process/background.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int settled_fd = -1;

static void wait_and_exit(int fd, pid_t between)
{
	uint8_t status = EXIT_FAILURE;

	waitpid(between, NULL, 0);
	if (read(fd, &status, 1) != 1)
		status = EXIT_FAILURE;
	_exit(status);
}

int background_begin(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	pid_t between = fork();
	if (between < 0)
		return -1;
	if (between > 0) {
		close(fds[1]);
		wait_and_exit(fds[0], between);
	}
	close(fds[0]);
	setsid();
	pid_t stays = fork();
	if (stays != 0)
		_exit(stays < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	settled_fd = fds[1];
	return 0;
}

void background_settle(int status)
{
	uint8_t byte = (uint8_t)status;

	if (settled_fd < 0)
		return;
	if (write(settled_fd, &byte, 1) == 1) /* else nobody waits any more */
		close(settled_fd);
	settled_fd = -1;
}
