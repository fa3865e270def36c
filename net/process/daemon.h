/* daemon.h: reports that the process is ready: to the process in the foreground that waits for it, and to a service
 * manager.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Call it before any thread starts. The caller continues as a process of its own, a child of init. The process that
 * was started waits for background_settle() and exits with its status, or with EXIT_FAILURE if this one ends before.
 * 0 or -1. */
int background_begin(void);
/* @status: EXIT_SUCCESS or EXIT_FAILURE. Only the first call after background_begin() has an effect. */
void background_settle(int status);
/* For a process that shares its descriptors with one that has settled: the number may be another descriptor by now. */
void background_forget(void);

/* Open the socket for the two below now, and keep it open: for a process that shares its descriptors with others, one
 * of which may close what it does not know. Does nothing where $NOTIFY_SOCKET is not set. */
void service_keep_socket(void);
/* 1 when this descriptor is that socket, else 0. */
bool service_has(int fd);
/* Tell the service manager behind $NOTIFY_SOCKET (sd_notify(3), protocol only) that the service is ready, and that
 * @main is now its main process. Does nothing where the variable is not set. A failure is logged. */
void service_notify_ready(pid_t main);
/* If the manager wants signs of life ($WATCHDOG_USEC): send one each time a third of that time is over. */
void service_notify_alive(void);
