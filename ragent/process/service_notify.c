/* service_notify.c: one datagram. */
#include "ragent/process/service_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/log.h"

void service_notify_ready(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char state[64];

	if (!path || strlen(path) >= sizeof to.sun_path)
		return;
	strcpy(to.sun_path, path);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* an abstract name */
	int len = snprintf(state, sizeof state, "READY=1\nMAINPID=%d\n", (int)getpid());
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (fd < 0 || sendto(fd, state, (size_t)len, MSG_NOSIGNAL, (const struct sockaddr *)&to, to_len) < 0)
		log_event(LOG_WARNING, NULL, "service manager not told", "path=%s cause=%s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}
