/* control.c: the socket, libmicrohttpd (net/http_loop.h runs it), and their end. net/listener accepts. */
#include "ragent/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/container_of.h"
#include "net/log_pace.h"
#include "ragent/control/control_inside.h"
#include "ragent/control/operations.h"

#define BACKLOG           1024 /* a full queue refuses operators, too */
#define SOCKET_MODE       0600u
#define FRONT_MODE        0660u         /* agents connect, maybe as another user */
#define CONNECTION_MEMORY (32u * 1024u) /* headers of a request and libmicrohttpd's buffers */

#define CLIENTS_CLOSING 64u /* shut down to make room; libmicrohttpd has not noticed yet */

static const struct control_limits default_limits = { .client_ms = 10000,
	.answer_ms = 35000,
	.arrival_ms = 250,
	.local = 16,
	.remote = 64,
	.of_source = 16,
	.arrivals = 64 };

/* Running libmicrohttpd */

static void on_soon(struct turn_end *t)
{
	http_loop_run(&container_of(t, struct control, soon)->loop);
}

static void on_log(void *ctx, const char *format, va_list args)
{
	char text[256];
	vsnprintf(text, sizeof text, format, args);
	text[strcspn(text, "\n")] = '\0';
	log_event(LOG_DEBUG, NULL, "control socket", "cause=%s", text);
}

/* Connections of clients */

/* The length of an address for libmicrohttpd: UNIX clients have no name. */
static socklen_t said_len(const struct sockaddr *a)
{
	return a->sa_family == AF_UNIX ? sizeof a->sa_family : address_len(a);
}

/* Shut the socket down: libmicrohttpd then sees the end of the connection and closes it. */
static void on_client_late(struct deadline *d)
{
	struct control_client *client = container_of(d, struct control_client, due);
	shutdown(client->fd, SHUT_RDWR);
}

/* Each socket has places of its own: the UNIX socket answers even when strangers fill the places of the address. */
static void client_enter(struct control_client *client)
{
	struct control *c = client->control;
	const struct sockaddr *from = (const struct sockaddr *)&client->address;

	client->among = from->sa_family == AF_UNIX ? &c->local : &c->remote;
	newcomers_add(client->among, &client->place, newcomers_source(client->among, client->fd, from),
		worker_now_ms(c->worker), worker_turn(c->worker));
	control_client_hurry(client);
}

static void on_client(
	void *ctx, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	struct control *c = ctx;
	struct control_client *client = *socket_context;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (client) {
			deadline_cancel(&client->due);
			newcomers_remove(client->among, &client->place);
		}
		free(client);
		return;
	}
	client = calloc(1, sizeof *client); /* NULL: its first request is refused */
	*socket_context = client;
	if (!client)
		return;
	client->control = c;
	client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	const struct sockaddr *from =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	memcpy(&client->address, from, said_len(from));
	if (client->fd == c->arriving_fd)
		snprintf(client->common_name, sizeof client->common_name, "%s", c->arriving_cn);
	client->due.fn = on_client_late;
	client_enter(client);
}

void control_no_room(const struct control *c, const char *key)
{
	counter_add(&c->operations->counters.control_no_room, 1);
	log_paced(LOG_INFO, NULL, "no room for a control connection",
		"cause=\"too many connections without a valid request\" remedy=\"let only operators connect to %s\"",
		key);
}

/* The key of the cluster file for these clients' address. */
static const char *key_of(const struct control *c, const struct newcomers *among)
{
	return among == &c->local ? "control" : "control_address";
}

/* 1, or 0: no newcomer gives way. */
static bool make_room(struct control *c, struct newcomers *among, uint8_t source)
{
	struct newcomer *victim = newcomers_victim(among, source, worker_now_ms(c->worker), worker_turn(c->worker));

	if (victim) {
		struct control_client *client = container_of(victim, struct control_client, place);
		control_no_room(c, key_of(c, among));
		newcomers_remove(among, victim);
		shutdown(client->fd, SHUT_RDWR);
		http_loop_run(&c->loop); /* this also frees its place in libmicrohttpd */
	}
	return !newcomers_full(among, source);
}

void control_admit(struct control *c, int fd, const struct sockaddr_storage *address, const char *cn)
{
	const struct sockaddr *a = (const struct sockaddr *)address;
	struct newcomers *among = a->sa_family == AF_UNIX ? &c->local : &c->remote;

	if (!make_room(c, among, newcomers_source(among, fd, a))) {
		control_no_room(c, key_of(c, among));
		close(fd);
		return;
	}
	/* At its limit libmicrohttpd refuses, and has closed @fd. */
	c->arriving_fd = fd;
	c->arriving_cn = cn;
	MHD_add_connection(c->daemon, fd, a, said_len(a));
	http_loop_run(&c->loop); /* on_client() */
	c->arriving_fd = -1;
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	control_admit(ctx, fd, peer, "");
}

static void on_front_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct control *c = ctx;
	if (c->front_proxied == CONF_OFF)
		control_admit(c, fd, peer, "");
	else
		arrival_await(c, fd, peer);
}

/* Opening and closing */

static void control_free(struct control *c)
{
	free(c->tokens);
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
	c->listener = fd > 0 ? listener_create_fd(c->worker, fd, &listener_ops, c, &r)
			     : listener_create(c->worker, (const struct sockaddr *)&address, BACKLOG, SOCKET_MODE,
				       &listener_ops, c, &r);
	if (!c->listener) {
		snprintf(error, error_cap, "control socket '%s': %s", c->path, uv_strerror(r));
		return -1;
	}
	c->listeners++;
	if (fd <= 0) /* else the file belongs to the other process until control_resume() */
		listener_note_file(&c->file, c->path);
	return 0;
}

/* A NUL would cut the path or the value off. So it becomes SUB, which no name contains.
 */
static size_t on_unescape(void *ctx, struct MHD_Connection *connection, char *text)
{
	const size_t len = MHD_http_unescape(text);

	for (char *nul; (nul = memchr(text, '\0', len));)
		*nul = '\x1a';
	return len;
}

static int start_daemon(struct control *c, char *error, size_t error_cap)
{
	c->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		exchange_on_request, c, MHD_OPTION_EXTERNAL_LOGGER, on_log, c, MHD_OPTION_NOTIFY_COMPLETED,
		exchange_on_completed, c, MHD_OPTION_NOTIFY_CONNECTION, on_client, c, MHD_OPTION_CONNECTION_LIMIT,
		c->limits.local + c->limits.remote + CLIENTS_CLOSING, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape,
		NULL, MHD_OPTION_END);
	if (c->daemon && http_loop_start(&c->loop, c->worker, c->daemon) == 0)
		return 0;
	snprintf(error, error_cap, "control socket '%s': libmicrohttpd does not start: %s", c->path, strerror(errno));
	return -1;
}

static void init_places(struct control *c)
{
	const struct control_limits *l = &c->limits;

	newcomers_init(&c->local, &(struct newcomers_limits){ l->local, l->local, NEWCOMERS_NO_END });
	newcomers_init(&c->remote, &(struct newcomers_limits){ l->remote, l->of_source, NEWCOMERS_NO_END });
	newcomers_init(&c->arrivals, &(struct newcomers_limits){ l->arrivals, l->arrivals, NEWCOMERS_NO_END });
}

static struct control *make(
	struct worker *w, const char *path, struct operations *operations, const struct control_limits *limits)
{
	struct control *c = calloc(1, sizeof *c);
	if (!c || !(c->path = strdup(path))) {
		free(c);
		return NULL;
	}
	c->worker = w;
	c->operations = operations;
	c->limits = limits ? *limits : default_limits;
	init_places(c);
	c->arriving_fd = -1;
	c->soon.fn = on_soon;
	return c;
}

struct control *control_create(struct worker *w, int fd, const char *path, struct operations *operations,
	const struct control_limits *limits, char *error, size_t error_cap)
{
	struct control *c = make(w, path, operations, limits);
	if (!c)
		snprintf(error, error_cap, "control socket '%s': out of memory", path);
	if (c && start_daemon(c, error, error_cap) == 0)
		return open_socket(c, fd, error, error_cap) == 0 ? c : (control_destroy(c), NULL);
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
	struct control_tokens *tokens = control_tokens_load(path, c->front_names, error, error_cap);
	if (!tokens)
		return -1;
	free(c->tokens);
	c->tokens = tokens;
	return 0;
}

int control_serve_address(struct control *c, const struct control_front *f, char *error, size_t error_cap)
{
	char text[ADDRESS_TEXT_MAX];
	int r = 0;
	const bool is_path = f->address->sa_family == AF_UNIX;
	c->front_proxied = is_path ? CONF_ON : f->proxy_protocol;
	c->front_names = control_names_of(f->address);
	if (control_reload_tokens(c, f->tokens, error, error_cap) < 0)
		return -1;
	c->front = f->fd > 0 ? listener_create_fd(c->worker, f->fd, &front_ops, c, &r)
			     : listener_create(
				       c->worker, f->address, BACKLOG, is_path ? FRONT_MODE : 0, &front_ops, c, &r);
	if (!c->front) {
		snprintf(error, error_cap, "control address %s: %s", address_format(f->address, text), uv_strerror(r));
		return -1;
	}
	c->listeners++;
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
	c->state = CONTROL_STOPPING;
	if (c->listener)
		remove_socket(c);
	http_loop_stop(&c->loop);
	if (c->daemon) {
		exchanges_end(c);
		MHD_run(c->daemon); /* waiting clients get their answer */
		MHD_stop_daemon(c->daemon);
	}
	turn_end_cancel(&c->soon);
	arrivals_end(c);
	struct listener *const socket = c->listener, *const front = c->front;
	if (c->listeners == 0)
		control_free(c);
	listener_close(front);
	listener_close(socket); /* closing the last one frees @c */
}
