/* control_inside.h: shared by the files of the control socket. */
#ifndef CSSL_RAGENT_CONTROL_INSIDE_H
#define CSSL_RAGENT_CONTROL_INSIDE_H

#include <microhttpd.h>

#include "net/http_loop.h"
#include "net/listener.h"
#include "net/newcomers.h"
#include "ragent/control/control.h"
#include "ragent/control/control_exchange.h"
#include "ragent/control/control_tokens.h"

/* --- control_access.c: decides whether a client may make a request. On the UNIX socket the file's permission has
 * decided already. Over the network a token or a client certificate decides (control_tokens.h): role read for GET,
 * operate for the rest. A certificate alone changes nothing for a page of another site.
 *
 * A source that failed too often has to wait before its unknown tokens are called that again: this slows down the
 * guessing, and its log lines. Known tokens are not asked to wait. Bounded memory: the source with the oldest failure
 * makes room. A source is an IPv4 address or an IPv6 /64, and each /48 has ADMISSION_OF_SITE times as many failures
 * (net/admission.h). --- */

#define GUARD_FAILURES_MAX 10u    /* within one period */
#define GUARD_PERIOD_MS    60000u /* failures count for so long; then a source waits for so long */
#define GUARD_SOURCES_MAX  1024u

struct guarded_source {
	uint8_t bytes[16], len;
	uint32_t failures;
	uint64_t since_ms; /* time of the first failure that counts */
};

/* Embedded; zero: empty. */
struct control_guard {
	unsigned count;
	struct guarded_source sources[GUARD_SOURCES_MAX];
};

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

/* Seconds that this source has to wait; 0: it may try. */
unsigned control_guard_wait_s(const struct control_guard *g, const struct sockaddr *source, uint64_t now_ms);
void control_guard_failed(struct control_guard *g, const struct sockaddr *source, uint64_t now_ms);

/* 1, or 0 and the exchange is answered: 401, 403, or 429 to a source that failed too often. */
bool access_granted(struct exchange *e);

/* The name of the client, for the log. */
const char *access_name(const struct exchange *e);

/* --- control_arrival.c: connections to the control address that begin with a PROXY header. The header names the
 * client, and is removed before libmicrohttpd sees the rest --- */

/* @fd is owned from now on. When the header is whole it goes to control_admit(); when no header comes in time it is
 * closed.
 */
void arrival_await(struct control *c, int fd, const struct sockaddr_storage *peer);

/* Close all connections that still wait for their header. */
void arrivals_end(struct control *c);

/* --- control_routes.c: one table of routes, which is also the index (GET /v1) --- */

extern const char openapi_text[]; /* openapi.yaml, which describes the control API */

/* Find the route of @e and follow it: when this returns, @e was answered, or the provider holds its request. */
void routes_dispatch(struct exchange *e);

/* The role that a request needs. A method that the path does not have needs only the role read, because it changes
 * nothing. */
enum control_role routes_role(const char *method, const char *path);

#endif
