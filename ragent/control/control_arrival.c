/* control_arrival.c: the header is looked at where it lies in the socket and taken out when it is whole, so that
 * nothing behind it has to be given back.
 */
#include "ragent/control/control_arrival.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/log.h"
#include "proto/proxy_header.h"
#include "ragent/control/control_inside.h"
#include "net/endpoints.h"

struct arrival {
	struct control *control;
	struct arrival *next, **prev;
	struct watch *watch;
	struct deadline due;
	struct sockaddr_storage peer;
	int fd;
};

static void leave(struct arrival *a)
{
	watch_stop(a->watch);
	deadline_cancel(&a->due);
	*a->prev = a->next;
	if (a->next)
		a->next->prev = a->prev;
	free(a);
}

static void drop(struct arrival *a, const char *why)
{
	char text[ADDRESS_TEXT_MAX];

	log_event(LOG_INFO, NULL, "control access refused", "source=%s cause=%s",
		address_format((struct sockaddr *)&a->peer, text), why);
	close(a->fd);
	leave(a);
}

/* LOCAL, or a family that is not carried: the connection's own address counts. */
static void source_of(const struct proxy_header *h, struct sockaddr_storage *address)
{
	struct endpoints e = { 0 };

	if (h->command == PROXY_PROXIED && (h->family == PROXY_TCP4 || h->family == PROXY_TCP6) &&
		endpoints_from_proxy(&e, h) == 0)
		endpoint_sockaddr(&e.client, e.client_port, address);
	endpoints_clear(&e);
}

/* The socket is readable again when more than @len bytes are there. */
static void want_more_than(int fd, size_t len)
{
	const int more = (int)len + 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
}

static void on_readable(void *ctx)
{
	struct arrival *a = ctx;
	struct control *c = a->control;
	uint8_t bytes[PROXY_V2_MAX];
	struct proxy_header h;
	size_t taken;
	const ssize_t len = recv(a->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	const int r = len > 0 ? proxy_header_parse(bytes, (size_t)len, &h, &taken) : -1;
	if (r == PROXY_INCOMPLETE) {
		want_more_than(a->fd, (size_t)len);
		return;
	}
	if (r < 0 || recv(a->fd, bytes, taken, MSG_DONTWAIT) != (ssize_t)taken) {
		drop(a, len > 0 ? "no PROXY header" : "closed");
		return;
	}
	struct sockaddr_storage address = a->peer;
	const int fd = a->fd;
	source_of(&h, &address);
	want_more_than(fd, 0);
	leave(a);
	control_admit(c, fd, &address);
}

static void on_late(struct deadline *d)
{
	drop((struct arrival *)((char *)d - offsetof(struct arrival, due)), "no PROXY header in time");
}

void arrival_await(struct control *c, int fd, const struct sockaddr_storage *peer)
{
	struct arrival *a = calloc(1, sizeof *a);

	if (!a || !(a->watch = watch_start(c->worker, fd, on_readable, a))) {
		free(a);
		close(fd);
		return;
	}
	a->control = c;
	a->fd = fd;
	a->peer = *peer;
	a->due.fn = on_late;
	deadline_set(c->worker, &a->due, c->limits.client_ms);
	a->next = c->arrivals;
	a->prev = &c->arrivals;
	if (a->next)
		a->next->prev = &a->next;
	c->arrivals = a;
}

void arrivals_end(struct control *c)
{
	while (c->arrivals)
		drop(c->arrivals, "stopping");
}
