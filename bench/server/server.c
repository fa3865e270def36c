/* server.c: accepts clients into a list of connections. Ended connections wait in a free list. So no request
 * allocates memory, and after the first ones no connection does.
 */
#include "bench/server/server.h"

#include <stdlib.h>
#include <unistd.h>

#include "net/address.h"
#include "net/container_of.h"
#include "net/listener.h"
#include "net/log.h"

#define BACKLOG     4096
#define SOCKET_MODE 0666u /* a UNIX socket of the backend: its folder decides who may connect */

struct server {
	struct http_host host; /* first: on_gone computes the server's address from it */
	enum { SERVER_OPEN, SERVER_DRAINING, SERVER_CLOSED } state;
	uint64_t grace_ms;
	struct deadline grace;
	unsigned listener_count, listeners_open;
	struct listener *listeners[SERVER_LISTEN_MAX];
	struct http_connection *open, *free;
	uint64_t accepted;
	void (*on_stopped)(void *ctx);
	void *ctx;
};

static void unlink_connection(struct http_connection *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
}

static void stop_when_empty(struct server *s)
{
	if (s->state == SERVER_OPEN || s->open || s->listeners_open > 0)
		return;
	deadline_cancel(&s->grace);
	worker_stop(s->host.worker);
	if (s->on_stopped)
		s->on_stopped(s->ctx);
}

static void on_gone(struct http_host *host, struct http_connection *c)
{
	struct server *s = (struct server *)host;
	unlink_connection(c);
	c->next = s->free;
	s->free = c;
	stop_when_empty(s);
}

static struct http_connection *take_connection(struct server *s)
{
	struct http_connection *c = s->free;
	if (!c)
		return calloc(1, sizeof *c);
	s->free = c->next;
	return c;
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct server *s = ctx;
	struct http_connection *c = take_connection(s);
	if (!c) {
		log_event(LOG_WARNING, NULL, "connection refused", "cause=memory");
		close(fd);
		return;
	}
	int r = http_connection_open(c, &s->host, fd, (const struct sockaddr *)peer);
	if (r) {
		log_event(LOG_WARNING, NULL, "connection refused", "cause=%s", uv_strerror(r));
		c->next = s->free;
		s->free = c;
		return;
	}
	s->accepted++;
	c->next = s->open;
	c->prev = &s->open;
	if (c->next)
		c->next->prev = &c->next;
	s->open = c;
}

static void on_listener_closed(void *ctx)
{
	struct server *s = ctx;
	s->listeners_open--;
	stop_when_empty(s);
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };

static int listen_on(struct server *s, const struct sockaddr *address)
{
	char text[ADDRESS_TEXT_MAX];
	int r = 0;
	struct listener *l = listener_create(s->host.worker, address, BACKLOG, SOCKET_MODE, &listener_ops, s, &r);
	if (!l) {
		log_event(LOG_ERROR, NULL, "cannot listen", "address=%s cause=%s", address_format(address, text),
			uv_strerror(r));
		return -1;
	}
	s->listeners[s->listener_count++] = l;
	s->listeners_open++;
	return 0;
}

static void close_connections(struct server *s)
{
	for (struct http_connection *c = s->open, *next; c; c = next) {
		next = c->next;
		http_connection_close(c);
	}
}

static void on_grace_over(struct deadline *d)
{
	struct server *s = container_of(d, struct server, grace);
	s->state = SERVER_CLOSED;
	close_connections(s);
}

struct server *server_create(struct worker *w, const struct server_options *o, void (*on_stopped)(void *ctx), void *ctx)
{
	struct server *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->host.worker = w;
	s->host.agents = o->agents;
	s->host.proxy = o->proxy;
	s->host.idle_ms = o->idle_ms;
	s->host.persistence = HTTP_KEEP_ALIVE;
	s->host.on_gone = on_gone;
	s->grace_ms = o->grace_ms;
	s->grace.fn = on_grace_over;
	s->host.resources = resources_create();
	s->host.sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!s->host.resources || !s->host.sha256)
		goto failed;
	for (unsigned i = 0; i < o->listen_count; i++) {
		if (listen_on(s, (const struct sockaddr *)&o->listen[i]))
			goto failed;
	}
	s->on_stopped = on_stopped;
	s->ctx = ctx;
	return s;
failed:
	/* The worker has to turn until the listeners are closed. */
	server_stop(s);
	worker_run(w);
	server_destroy(s);
	return NULL;
}

int server_address(const struct server *s, unsigned index, struct sockaddr_storage *out)
{
	return listener_address(s->listeners[index], out);
}

static void drain(struct server *s)
{
	s->host.persistence = HTTP_CLOSE;
	for (unsigned i = 0; i < s->listener_count; i++)
		listener_close(s->listeners[i]);
	for (struct http_connection *c = s->open, *next; c; c = next) {
		next = c->next;
		http_connection_drain(c);
	}
	deadline_set(s->host.worker, &s->grace, s->grace_ms);
}

void server_stop(struct server *s)
{
	if (s->state == SERVER_OPEN) {
		s->state = SERVER_DRAINING;
		log_event(LOG_INFO, NULL, "stopping", "connections=%llu requests=%llu", (unsigned long long)s->accepted,
			(unsigned long long)s->host.requests);
		drain(s);
	} else {
		s->state = SERVER_CLOSED;
		close_connections(s);
	}
	/* Closing is never done at once, except when there was nothing to close. */
	if (s->listener_count == 0)
		stop_when_empty(s);
}

void server_destroy(struct server *s)
{
	if (!s)
		return;
	for (struct http_connection *c = s->free, *next; c; c = next) {
		next = c->next;
		http_connection_wipe(c);
		free(c);
	}
	EVP_MD_free(s->host.sha256);
	resources_destroy(s->host.resources);
	free(s);
}
