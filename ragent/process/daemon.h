/* daemon.h: how the process tells those who started it that it is ready: the process in the foreground that waits for
 * it, and a service manager.
 */
#ifndef CSSL_RAGENT_DAEMON_H
#define CSSL_RAGENT_DAEMON_H

/* Before any thread: the caller goes on as a process of its own, a child of init. The one that was started waits for
 * background_settle() and exits with what that says, or with EXIT_FAILURE when this one ends before. 0 or -1. */
int background_begin(void);
/* @status: EXIT_SUCCESS or EXIT_FAILURE. Once; later calls, and those without background_begin(), do nothing. */
void background_settle(int status);

/* Tell the service manager behind $NOTIFY_SOCKET (sd_notify(3), protocol only) that this process is ready, and is the
 * service's main process now. Does nothing where that is not set; a manager that does not listen is logged. */
void service_notify_ready(void);

#endif
