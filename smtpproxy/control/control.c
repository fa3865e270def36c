/* control.c: the control socket of smtpproxy, answered by libmicrohttpd on the worker's loop (net/loop/http_loop.h). */
#include "smtpproxy/control/control.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/http_loop.h"
#include "net/loop/listener.h"
#include "proto/error.h"

#define BACKLOG           64
#define SOCKET_MODE       0600u
#define CLIENTS_MAX       32u
#define CLIENT_S          10u
#define CONNECTION_MEMORY (32u * 1024u)

struct control_socket {
	struct worker *worker;
	const struct control_view *view;
	struct MHD_Daemon *daemon;
	struct http_loop loop;
	struct listener *listener;
};

/* Requests */

/* Takes over @text. */
static enum MHD_Result control_reply(struct MHD_Connection *connection, unsigned status, const char *type, char *text)
{
	if (!text)
		return MHD_NO;
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	MHD_add_response_header(r, "Content-Type", type);
	const enum MHD_Result result = MHD_queue_response(connection, status, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result control_refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
	json_t *body = json_pack("{s:s}", "error", why);
	char *text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	return control_reply(connection, status, "application/json", text);
}

static uint64_t number_after(struct MHD_Connection *connection)
{
	const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "after");
	uint64_t n = 0;
	return text && smtp_span_number(smtp_span_of(text), UINT64_MAX, &n) == 0 ? n : 0;
}

static enum MHD_Result control_answer(struct control_socket *c, struct MHD_Connection *connection, const char *path)
{
	if (strcmp(path, "/metrics") == 0)
		return control_reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4", answers_metrics(c->view));
	json_t *body = answers_find(c->view, path, number_after(connection));
	if (!body)
		return control_refuse(connection, MHD_HTTP_NOT_FOUND, "no such path; GET /v1 lists them");
	char *text = json_dumps(body, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(body);
	return control_reply(connection, MHD_HTTP_OK, "application/json", text);
}

static enum MHD_Result control_act(struct control_socket *c, struct MHD_Connection *connection, const char *path)
{
	json_t *question;
	switch (answers_queue_act(c->view, path)) {
	case ACT_DONE: return control_reply(connection, MHD_HTTP_OK, "application/json", strdup("{}"));
	case ACT_REFUSED:
		return control_refuse(
			connection, MHD_HTTP_CONFLICT, "the state of the message or of the queue does not allow it");
	default: break;
	}
	question = answers_find(c->view, path, 0);
	json_decref(question);
	return question ? control_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET")
			: control_refuse(connection, MHD_HTTP_NOT_FOUND, "no such message, destination or action");
}

/* libmicrohttpd calls once for the head, and again behind it. */
static enum MHD_Result on_control_request(void *ctx, struct MHD_Connection *connection, const char *path,
	const char *method, const char *version, const char *data, size_t *len, void **seen)
{
	static char behind_head;
	if (!*seen) {
		*seen = &behind_head;
		return MHD_YES;
	}
	if (*len > 0) { /* a body has no effect */
		*len = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_POST) == 0)
		return control_act(ctx, connection, path);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return control_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and POST");
	return control_answer(ctx, connection, path);
}

static void on_control_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct control_socket *c = ctx;
	const struct sockaddr *a = (const struct sockaddr *)peer;
	MHD_add_connection(c->daemon, fd, a, sizeof a->sa_family); /* refused: it has closed @fd */
	http_loop_run(&c->loop);
}

/* Opening and closing */

static void on_control_listener_closed(void *ctx)
{
	free(ctx);
}

static const struct listener_ops listener_ops = { .on_accept = on_control_accept,
	.on_closed = on_control_listener_closed };

static int start_daemon(struct control_socket *c)
{
	c->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_control_request, c,
		MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, CLIENT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_END);
	return c->daemon ? http_loop_start(&c->loop, c->worker, c->daemon) : CSSL_E_NO_MEMORY;
}

static int control_open_socket(struct control_socket *c, const char *path, int fd, char *error, size_t error_cap)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r = 0;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path); /* the schema has checked its length */
	c->listener = fd >= 0 ? listener_create_fd(c->worker, fd, &listener_ops, c, &r)
			      : listener_create(c->worker, (const struct sockaddr *)&address, BACKLOG, SOCKET_MODE,
					&listener_ops, c, &r);
	if (c->listener)
		return 0;
	snprintf(error, error_cap, "control socket '%s': %s", path, uv_strerror(r));
	return -1;
}

int control_socket_fd(const struct control_socket *c)
{
	return listener_fd(c->listener);
}

struct control_socket *control_socket_create(
	struct worker *w, const char *path, int fd, const struct control_view *view, char *error, size_t error_cap)
{
	struct control_socket *c = calloc(1, sizeof *c);
	snprintf(error, error_cap, "control socket '%s': libmicrohttpd does not start", path);
	if (!c)
		return NULL;
	c->worker = w;
	c->view = view;
	if (start_daemon(c) == 0 && control_open_socket(c, path, fd, error, error_cap) == 0)
		return c;
	control_socket_destroy(c);
	return NULL;
}

void control_socket_destroy(struct control_socket *c)
{
	if (!c)
		return;
	http_loop_stop(&c->loop);
	if (c->daemon)
		MHD_stop_daemon(c->daemon);
	if (c->listener)
		listener_close(c->listener); /* on_control_listener_closed() frees */
	else
		free(c);
}
