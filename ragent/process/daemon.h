/* daemon.h: how the process tells those who started it that it is ready: the process in the foreground that waits for
 * it, and a service manager.
 */
#ifndef CSSL_RAGENT_DAEMON_H
#define CSSL_RAGENT_DAEMON_H

#include <sys/types.h>

/* Before any thread: the caller goes on as a process of its own, a child of init. The one that was started waits for
 * background_settle() and exits with what that says, or with EXIT_FAILURE when this one ends before. 0 or -1. */
int background_begin(void);
/* @status: EXIT_SUCCESS or EXIT_FAILURE. Once; later calls, and those without background_begin(), do nothing. */
void background_settle(int status);
/* In a process that shares its descriptors with one that has settled: the number is something else's now. */
void background_forget(void);

/* Tell the service manager behind $NOTIFY_SOCKET (sd_notify(3), protocol only) that the service is ready, and that
 * @main is its main process now. Does nothing where that is not set; a manager that does not listen is logged. */
void service_notify_ready(pid_t main);
/* Where the manager wants a sign of life ($WATCHDOG_USEC): send one when a third of that time is over. */
void service_notify_alive(void);

#endif
