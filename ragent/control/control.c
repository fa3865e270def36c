/* control.c: the sockets, and what joins the parts: a client's claim goes to access, its request to the route. */
#include "ragent/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "ragent/control/access/control_access.h"
#include "ragent/control/http/control_arrival.h"
#include "ragent/control/http/control_clients.h"
#include "ragent/control/operations/operations.h"
#include "ragent/control/routes/control_routes.h"

#define BACKLOG     1024 /* a full queue refuses operators, too */
#define SOCKET_MODE 0600u
#define FRONT_MODE  0660u /* agents connect, maybe as another user */

struct control {
	struct operations *operations;
	struct listener *listener; /* of the UNIX socket */
	struct listener *front;    /* of the control address; NULL: none */
	unsigned listeners;        /* listeners that are not closed yet */
	enum conf_switch front_proxied;
	struct control_clients clients;
	struct control_arrivals arrivals;
	struct control_access access;
	char *path;
	struct listener_file file;
};

static const struct control_limits default_limits = { .client_ms = 10000,
	.answer_ms = 35000,
	.arrival_ms = 250,
	.local = 16,
	.remote = 64,
	.of_source = 16,
	.arrivals = 64 };

/* Requests */

static const char *header_of(const struct exchange *e, const char *name)
{
	return MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name);
}

static struct access_claim claim_of(const struct exchange *e)
{
	return (struct access_claim){
		.source = (const struct sockaddr *)&e->client->address,
		.common_name = e->client->common_name,
		.method = e->method,
		.path = e->path,
		.need = control_routes_role(e->method, e->path),
		.authorization = header_of(e, MHD_HTTP_HEADER_AUTHORIZATION),
		.host = header_of(e, MHD_HTTP_HEADER_HOST),
		.origin = header_of(e, MHD_HTTP_HEADER_ORIGIN),
		.fetch_site = header_of(e, "Sec-Fetch-Site"),
		.content_type = header_of(e, MHD_HTTP_HEADER_CONTENT_TYPE),
	};
}

static bool control_may_ask(void *owner, struct exchange *e)
{
	struct control *c = owner;
	const struct access_claim claim = claim_of(e);
	const uint64_t now_ms = worker_now_ms(c->clients.exchanges.worker);
	struct access_refusal refusal;
	const enum access_verdict verdict = access_judge(&c->access, &claim, now_ms, &refusal);

	if (verdict == ACCESS_PROVEN)
		newcomer_proven(&e->client->place, now_ms);
	if (verdict != ACCESS_REFUSED)
		return true;
	if (refusal.header_name)
		exchange_header(e, refusal.header_name, refusal.header_value);
	exchange_fail(e, refusal.status, "%s", refusal.reason);
	return false;
}

static void control_follow(void *owner, struct exchange *e)
{
	struct control *c = owner;
	const struct access_claim claim = claim_of(e);

	if (strcmp(e->method, MHD_HTTP_METHOD_GET) != 0)
		log_event(LOG_INFO, NULL, "control", "who=%s method=%s path=%s", access_name(&c->access, &claim),
			e->method, e->path);
	control_routes_follow(c->operations, e);
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct control *c = ctx;
	control_clients_admit(&c->clients, fd, peer, "");
}

static void on_front_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct control *c = ctx;
	if (c->front_proxied == CONF_OFF)
		control_clients_admit(&c->clients, fd, peer, "");
	else
		control_arrivals_await(&c->arrivals, fd, peer);
}

/* Opening and closing */

static void control_free(struct control *c)
{
	free(c->access.tokens);
	free(c->path);
	free(c);
}

static void on_listener_closed(void *ctx)
{
	struct control *c = ctx;
	if (--c->listeners == 0)
		control_free(c);
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };
static const struct listener_ops front_ops = { .on_accept = on_front_accept, .on_closed = on_listener_closed };

/* @fd > 0: it listens already. NULL: *uv_error is set. */
static struct listener *control_listen(struct control *c, const struct sockaddr *address, int fd, unsigned mode,
	const struct listener_ops *ops, int *uv_error)
{
	struct worker *w = c->clients.exchanges.worker;
	struct listener *l = fd > 0 ? listener_create_fd(w, fd, ops, c, uv_error)
				    : listener_create(w, address, BACKLOG, mode, ops, c, uv_error);
	c->listeners += l != NULL;
	return l;
}

static int open_socket(struct control *c, int fd, char *error, size_t error_cap)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r = 0;
	if (strlen(c->path) >= sizeof address.sun_path) {
		snprintf(error, error_cap, "control socket '%s': path longer than %zu bytes", c->path,
			sizeof address.sun_path - 1);
		return -1;
	}
	strcpy(address.sun_path, c->path);
	c->listener = control_listen(c, (const struct sockaddr *)&address, fd, SOCKET_MODE, &listener_ops, &r);
	if (!c->listener) {
		snprintf(error, error_cap, "control socket '%s': %s", c->path, uv_strerror(r));
		return -1;
	}
	if (fd <= 0) /* else the file belongs to the other process until control_resume() */
		listener_note_file(&c->file, c->path);
	return 0;
}

static struct control *control_make(
	struct worker *w, const char *path, struct operations *operations, const struct control_limits *limits)
{
	struct control *c = calloc(1, sizeof *c);
	if (!c || !(c->path = strdup(path))) {
		free(c);
		return NULL;
	}
	c->operations = operations;
	c->clients.counters = &operations->counters;
	c->clients.exchanges = (struct exchanges){ .worker = w,
		.limits = limits ? *limits : default_limits,
		.may_ask = control_may_ask,
		.follow = control_follow,
		.owner = c };
	c->arrivals.clients = &c->clients;
	control_arrivals_begin(&c->arrivals);
	return c;
}

struct control *control_create(struct worker *w, int fd, const char *path, struct operations *operations,
	const struct control_limits *limits, char *error, size_t error_cap)
{
	struct control *c = control_make(w, path, operations, limits);
	if (!c)
		snprintf(error, error_cap, "control socket '%s': out of memory", path);
	else if (control_clients_begin(&c->clients) == 0)
		return open_socket(c, fd, error, error_cap) == 0 ? c : (control_destroy(c), NULL);
	else
		snprintf(error, error_cap, "control socket '%s': libmicrohttpd does not start: %s", path,
			strerror(errno));
	if (fd > 0)
		close(fd);
	control_destroy(c);
	return NULL;
}

int control_fd(const struct control *c)
{
	return c && c->listener ? listener_fd(c->listener) : -1;
}

int control_address_fd(const struct control *c)
{
	return c && c->front ? listener_fd(c->front) : -1;
}

void control_pause(struct control *c)
{
	if (!c)
		return;
	c->file = (struct listener_file){ 0 };
	listener_pause(c->listener);
	if (c->front)
		listener_pause(c->front);
}

void control_resume(struct control *c)
{
	if (!c)
		return;
	listener_note_file(&c->file, c->path);
	listener_resume(c->listener);
	if (c->front)
		listener_resume(c->front);
}

int control_reload_tokens(struct control *c, const char *path, char *error, size_t error_cap)
{
	return access_load(&c->access, path, error, error_cap);
}

int control_serve_address(struct control *c, const struct control_front *f, char *error, size_t error_cap)
{
	char text[ADDRESS_TEXT_MAX];
	int r = 0;
	const bool is_path = f->address->sa_family == AF_UNIX;
	c->front_proxied = is_path ? CONF_ON : f->proxy_protocol;
	c->access.names = c->arrivals.names = control_names_of(f->address);
	if (access_load(&c->access, f->tokens, error, error_cap) < 0)
		return -1;
	c->front = control_listen(c, f->address, f->fd, is_path ? FRONT_MODE : 0, &front_ops, &r);
	if (!c->front) {
		snprintf(error, error_cap, "control address %s: %s", address_format(f->address, text), uv_strerror(r));
		return -1;
	}
	/* Agents send their PROXY header at once. So accept a connection only when it has data: a silent stranger
	 * then takes no place. */
	r = f->fd > 0 || is_path ? 0 : listener_await_data(c->front);
	if (r < 0)
		log_event(LOG_WARNING, NULL, "control address accepts silent clients",
			"cause=%s effect=\"clients that send nothing can use up its connections\"", uv_strerror(r));
	return 0;
}

/* The file stays if this process has another user now, or if the file is a successor's socket. */
static void remove_socket(const struct control *c)
{
	const int r = listener_remove_file(&c->file, c->path);
	if (r < 0)
		log_event(LOG_INFO, NULL, "control socket stays", "path=%s cause=%s", c->path, strerror(-r));
}

void control_destroy(struct control *c)
{
	if (!c)
		return;
	if (c->listener)
		remove_socket(c);
	control_clients_end(&c->clients);
	control_arrivals_end(&c->arrivals);
	struct listener *const socket = c->listener, *const front = c->front;
	if (c->listeners == 0)
		control_free(c);
	listener_close(front);
	listener_close(socket); /* closing the last one frees @c */
}
