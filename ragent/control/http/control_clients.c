/* control_clients.c: see control_clients.h. net/loop/http_loop.h runs libmicrohttpd. */
#include "ragent/control/http/control_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/memory/container_of.h"
#include "net/report/log_pace.h"
#include "net/socket/address.h"

#define CONNECTION_MEMORY (32u * 1024u) /* headers of a request and libmicrohttpd's buffers */
#define CLIENTS_CLOSING   64u           /* shut down to make room; libmicrohttpd has not noticed yet */

/* Running libmicrohttpd */

static void on_soon(struct turn_end *t)
{
	http_loop_run(&container_of(t, struct control_clients, exchanges.soon)->loop);
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

static void client_enter(struct control_clients *c, struct control_client *client)
{
	const struct sockaddr *from = (const struct sockaddr *)&client->address;

	client->among = from->sa_family == AF_UNIX ? &c->local : &c->remote;
	newcomers_add(client->among, &client->place, newcomers_source(client->among, client->fd, from),
		worker_now_ms(c->exchanges.worker), worker_turn(c->exchanges.worker));
	deadline_set(c->exchanges.worker, &client->due, c->exchanges.limits.client_ms);
}

static void on_client(
	void *ctx, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	struct control_clients *c = ctx;
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
	client->exchanges = &c->exchanges;
	client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	const struct sockaddr *from =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	memcpy(&client->address, from, said_len(from));
	if (client->fd == c->arriving_fd)
		snprintf(client->common_name, sizeof client->common_name, "%s", c->arriving_cn);
	client->due.fn = on_client_late;
	client_enter(c, client);
}

void control_clients_no_room(const struct control_clients *c, const char *key)
{
	counter_add(&c->counters->control_no_room, 1);
	log_paced(LOG_INFO, NULL, "no room for a control connection",
		"cause=\"too many connections without a valid request\" remedy=\"let only operators connect to %s\"",
		key);
}

/* The key of the cluster file for these clients' address. */
static const char *clients_key_of(const struct control_clients *c, const struct newcomers *among)
{
	return among == &c->local ? "control" : "control_address";
}

/* False: no newcomer gives way. */
static bool clients_make_room(struct control_clients *c, struct newcomers *among, uint8_t source)
{
	struct newcomer *victim =
		newcomers_victim(among, source, worker_now_ms(c->exchanges.worker), worker_turn(c->exchanges.worker));

	if (victim) {
		struct control_client *client = container_of(victim, struct control_client, place);
		control_clients_no_room(c, clients_key_of(c, among));
		newcomers_remove(among, victim);
		shutdown(client->fd, SHUT_RDWR);
		http_loop_run(&c->loop); /* this also frees its place in libmicrohttpd */
	}
	return !newcomers_full(among, source);
}

void control_clients_admit(struct control_clients *c, int fd, const struct sockaddr_storage *address, const char *cn)
{
	const struct sockaddr *a = (const struct sockaddr *)address;
	struct newcomers *among = a->sa_family == AF_UNIX ? &c->local : &c->remote;

	if (!clients_make_room(c, among, newcomers_source(among, fd, a))) {
		control_clients_no_room(c, clients_key_of(c, among));
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

/* Opening and closing */

/* A NUL would cut the path or the value off. So it becomes SUB, which no name contains. */
static size_t on_unescape(void *ctx, struct MHD_Connection *connection, char *text)
{
	const size_t len = MHD_http_unescape(text);

	for (char *nul; (nul = memchr(text, '\0', len));)
		*nul = '\x1a';
	return len;
}

int control_clients_begin(struct control_clients *c)
{
	const struct control_limits *l = &c->exchanges.limits;
	newcomers_init(&c->local, &(struct newcomers_limits){ l->local, l->local, NEWCOMERS_NO_END });
	newcomers_init(&c->remote, &(struct newcomers_limits){ l->remote, l->of_source, NEWCOMERS_NO_END });
	c->arriving_fd = -1;
	c->exchanges.soon.fn = on_soon;
	c->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		exchange_on_request, NULL, MHD_OPTION_EXTERNAL_LOGGER, on_log, c, MHD_OPTION_NOTIFY_COMPLETED,
		exchange_on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_client, c, MHD_OPTION_CONNECTION_LIMIT,
		l->local + l->remote + CLIENTS_CLOSING, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_END);
	return c->daemon ? http_loop_start(&c->loop, c->exchanges.worker, c->daemon) : -1;
}

void control_clients_end(struct control_clients *c)
{
	http_loop_stop(&c->loop);
	if (c->daemon) {
		exchanges_end(&c->exchanges);
		MHD_run(c->daemon); /* waiting clients get their answer */
		MHD_stop_daemon(c->daemon);
	}
	turn_end_cancel(&c->exchanges.soon);
}
