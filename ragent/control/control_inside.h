/* control_inside.h: shared by the files of the control socket. */
#ifndef CSSL_RAGENT_CONTROL_INSIDE_H
#define CSSL_RAGENT_CONTROL_INSIDE_H

#include <microhttpd.h>

#include "net/http_loop.h"
#include "net/listener.h"
#include "net/newcomers.h"
#include "ragent/control/control.h"
#include "ragent/control/control_exchange.h"
#include "ragent/control/control_guard.h"
#include "ragent/control/control_tokens.h"

struct control {
	struct worker *worker;
	struct operations *operations;
	struct control_limits limits;
	enum { CONTROL_SERVING, CONTROL_STOPPING } state;
	struct MHD_Daemon *daemon;
	struct listener *listener; /* of the UNIX socket */
	struct listener *front;    /* of the control address; NULL: none */
	unsigned listeners;        /* listeners that are not closed yet */
	enum conf_switch front_proxied;
	enum control_names front_names; /* whether a PROXY header there may name a certificate */
	int arriving_fd;                /* of the client that libmicrohttpd gets now; -1: none */
	const char *arriving_cn;        /* its verified certificate's common name; "": none */
	struct newcomers local, remote; /* clients of the UNIX socket, and of the TCP address */
	struct newcomers arrivals;      /* that wait for their PROXY header */
	struct control_tokens *tokens;
	struct control_guard guard;
	struct http_loop loop;
	struct turn_end soon;            /* an answer came: libmicrohttpd does not notice it by itself */
	LIST_HEAD(, exchange) exchanges; /* that wait for an operation */
	char *path;
	struct listener_file file;
};

/* control.c: a client whose address is known. @cn: the common name of its verified certificate, "": none. */
void control_admit(struct control *c, int fd, const struct sockaddr_storage *address, const char *cn);
/* Count and log a client for which there was no room. @key: the key of the cluster file that has the address to which
 * the client connected. */
void control_no_room(const struct control *c, const char *key);

#endif
