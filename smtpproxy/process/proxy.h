/* proxy.h: the root object: listeners, sessions, destinations, signals, and their end. */
#ifndef CSSL_SMTPPROXY_PROXY_H
#define CSSL_SMTPPROXY_PROXY_H

#include <stddef.h>

#include "conf/smtpproxy.h"

struct proxy;

enum proxy_start {
	PROXY_STARTS,
	PROXY_REPLACES, /* it takes over the listening sockets of the process that runs */
};

/* Bind everything, and become the configured user. NULL with @error. @conf lives longer. */
struct proxy *proxy_create(const struct conf_smtpproxy *conf, enum proxy_start start, char *error, size_t error_cap);

/* SIGHUP: the file is read again, and logs are opened anew. Until SIGTERM or SIGINT: then no more is accepted, sessions
 * end between transactions, and a second signal ends them at once. */
void proxy_run(struct proxy *p);

void proxy_destroy(struct proxy *p); /* NULL is legal */

#endif
