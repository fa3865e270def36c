/* server.h: the embedded backend: listeners and connections on one worker, from options to a graceful end. */
#ifndef CSSL_BENCH_SERVER_SERVER_H
#define CSSL_BENCH_SERVER_SERVER_H

#include <stdint.h>
#include <sys/socket.h>

#include "bench/server/agent_identity.h"
#include "bench/server/http_connection.h"

#define SERVER_LISTEN_MAX 8u

struct server_options {
	struct sockaddr_storage listen[SERVER_LISTEN_MAX];
	unsigned listen_count;
	struct agent_map agents;
	unsigned proxy; /* enum proxy_expectation */
	uint64_t idle_ms;
	uint64_t grace_ms; /* for answers under way when the server is told to stop */
};

struct server;

/* Listen on everything; logs what failed: NULL then, and the worker has ended. @on_stopped: once, when a stopped server
 * has closed everything. */
struct server *server_create(
	struct worker *w, const struct server_options *o, void (*on_stopped)(void *ctx), void *ctx);

/* The address of a listener, a port 0 resolved. */
int server_address(const struct server *s, unsigned index, struct sockaddr_storage *out);

/* Take no more connections, finish the answers under way, within the grace time, then stop the worker. A second call
 * closes all at once. */
void server_stop(struct server *s);

/* After the worker ended. */
void server_destroy(struct server *s);

#endif
