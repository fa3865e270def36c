/* control_clients.h: the clients of the control socket: libmicrohttpd on the main worker's loop, without threads of its
 * own, and who has a place. It is a part of its own because a full socket is a question of places, whatever is asked.
 * control.c gives it the connections of the UNIX socket, control_arrival.c those of the address.
 *
 * Each socket has places of its own: the UNIX socket answers even when strangers fill the places of the address. At the
 * limit a client without a token makes room for a new one: the oldest client of the source that has most. If all have
 * shown a token, the new client is closed.
 */
#pragma once

#include "net/loop/http_loop.h"
#include "ragent/control/http/control_exchange.h"
#include "ragent/counters.h"

/* Embedded. Its owner sets @exchanges and @counters, and may read @exchanges. */
struct control_clients {
	struct exchanges exchanges;
	struct ragent_counters *counters;
	struct MHD_Daemon *daemon;
	struct http_loop loop;
	struct newcomers local, remote; /* clients of the UNIX socket, and of the TCP address */
	int arriving_fd;                /* of the client that libmicrohttpd gets now; -1: none */
	const char *arriving_cn;        /* its verified certificate's common name; "": none */
};

/* 0, or negative: libmicrohttpd does not start, and errno says why. control_clients_end() follows in any case. */
int control_clients_begin(struct control_clients *c);

/* A client whose address is known; owns @fd. @cn: the common name of its verified certificate, "": none. */
void control_clients_admit(struct control_clients *c, int fd, const struct sockaddr_storage *address, const char *cn);

/* Count and log a client for which there was no room. @key: the key of the cluster file that has the address to which
 * the client connected. */
void control_clients_no_room(const struct control_clients *c, const char *key);

/* Those that wait get an error, and all are closed. */
void control_clients_end(struct control_clients *c);
