/* proxy.h: the root object: listeners, sessions, destinations, signals, and their end. */
#pragma once

#include <stddef.h>

#include "conf/smtpproxy.h"

struct proxy;

enum proxy_start {
	PROXY_STARTS,
	PROXY_REPLACES, /* it takes over the listening sockets of the process that runs */
	PROXY_CHECKS,   /* it reads all files that it would need, and neither binds nor connects; then destroy it */
};

/* Read all files, bind everything, and become the configured user. NULL with @error. @conf lives longer. */
struct proxy *proxy_create(const struct conf_smtpproxy *conf, enum proxy_start start, char *error, size_t error_cap);

/* Runs until SIGTERM or SIGINT. Then it accepts no more connections, and sessions end between transactions. A second
 * signal ends them at once. SIGHUP reads the file again, and opens the logs again. deliver: queue: it ends in the same
 * way when another gateway takes the queue over. 0, or then CSSL_E_STATE. */
int proxy_run(struct proxy *p);

void proxy_destroy(struct proxy *p); /* NULL is legal */
