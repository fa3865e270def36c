/* control_arrival.c: peeks at the header in the socket and reads it when it is whole, so that no byte behind it is read
 * too early.
 */
#include "ragent/control/http/control_arrival.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/loop/watch.h"
#include "net/memory/container_of.h"
#include "net/report/log_pace.h"
#include "net/socket/address.h"
#include "net/socket/endpoints.h"
#include "proto/proxy_header.h"

struct arrival {
	struct control_arrivals *among;
	struct newcomer place;
	struct watch *watch;
	struct deadline due;
	struct sockaddr_storage peer;
	int fd;
};

static void arrival_leave(struct arrival *a)
{
	watch_stop(a->watch);
	deadline_cancel(&a->due);
	newcomers_remove(&a->among->waiting, &a->place);
	free(a);
}

static void arrival_drop(struct arrival *a, const char *why)
{
	char text[ADDRESS_TEXT_MAX];

	log_paced(LOG_INFO, NULL, "control access refused", "source=%s cause=%s",
		address_format((struct sockaddr *)&a->peer, text), why);
	close(a->fd);
	arrival_leave(a);
}

static void arrival_drop_headless(struct arrival *a, const char *why)
{
	counter_add(&a->among->clients->counters->control_no_header, 1);
	arrival_drop(a, why);
}

/* For LOCAL, or a header without an address, the connection's own address counts. */
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

/* The common name of the client's certificate, if the agent has verified one; a name longer than CONTROL_CN_MAX counts
 * as none. */
static void verified_name(const struct proxy_header *h, char cn[static CONTROL_CN_MAX + 1])
{
	if (!(h->ssl_flags & PROXY_CERT_SESS) || h->ssl_verify != 0 || h->ssl_cn_len > CONTROL_CN_MAX)
		return;
	if (h->ssl_cn_len && !memchr(h->ssl_cn, '\0', h->ssl_cn_len))
		snprintf(cn, CONTROL_CN_MAX + 1, "%.*s", (int)h->ssl_cn_len, h->ssl_cn);
}

/* The whole header was read. */
static void arrival_admit(struct arrival *a, const struct proxy_header *h)
{
	struct sockaddr_storage address = a->peer;
	struct control_arrivals *among = a->among;
	const int fd = a->fd;
	char cn[CONTROL_CN_MAX + 1] = "";

	source_of(h, &address);
	if (address.ss_family == AF_UNIX) { /* such an address would mean the owner of the control socket */
		arrival_drop_headless(a, "the PROXY header names no client");
		return;
	}
	if (among->names == CONTROL_NAMES_BELIEVED)
		verified_name(h, cn);
	want_more_than(fd, 0);
	arrival_leave(a);
	control_clients_admit(among->clients, fd, &address, cn);
}

enum look { LOOK_AGAIN, LOOK_OVER };

/* LOOK_OVER: @a is gone. */
static enum look arrival_look(struct arrival *a)
{
	uint8_t bytes[PROXY_V2_MAX];
	struct proxy_header h;
	size_t taken;
	const ssize_t len = recv(a->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return LOOK_AGAIN;
	const int r = len > 0 ? proxy_header_parse(bytes, (size_t)len, &h, &taken) : -1;
	if (r == PROXY_INCOMPLETE) {
		want_more_than(a->fd, (size_t)len);
		return LOOK_AGAIN;
	}
	if (r < 0 || recv(a->fd, bytes, taken, MSG_DONTWAIT) != (ssize_t)taken)
		arrival_drop_headless(a, len > 0 ? "no PROXY header" : "closed");
	else
		arrival_admit(a, &h);
	return LOOK_OVER;
}

static void on_readable(void *ctx)
{
	arrival_look(ctx);
}

/* Data that came while this loop was busy came in time. */
static void on_late(struct deadline *d)
{
	struct arrival *a = container_of(d, struct arrival, due);

	if (arrival_look(a) == LOOK_AGAIN)
		arrival_drop_headless(a, "no PROXY header in time");
}

static struct arrival *arrival_at(struct newcomer *place)
{
	return container_of(place, struct arrival, place);
}

void control_arrivals_begin(struct control_arrivals *a)
{
	const unsigned most = a->clients->exchanges.limits.arrivals;

	newcomers_init(&a->waiting, &(struct newcomers_limits){ most, most, NEWCOMERS_NO_END });
}

void control_arrivals_await(struct control_arrivals *among, int fd, const struct sockaddr_storage *peer)
{
	struct worker *w = among->clients->exchanges.worker;
	const uint64_t now_ms = worker_now_ms(w), turn = worker_turn(w);
	const uint8_t source = newcomers_source(&among->waiting, fd, (const struct sockaddr *)peer);
	struct newcomer *victim = newcomers_victim(&among->waiting, source, now_ms, turn);

	if (victim) {
		counter_add(&among->clients->counters->control_no_room, 1);
		arrival_drop(arrival_at(victim), "no PROXY header yet, and others came");
	}
	struct arrival *a = newcomers_full(&among->waiting, source) ? NULL : calloc(1, sizeof *a);
	if (!a || !(a->watch = watch_start(w, fd, on_readable, a))) {
		control_clients_no_room(among->clients, "control_address");
		free(a);
		close(fd);
		return;
	}
	a->among = among;
	a->fd = fd;
	a->peer = *peer;
	a->due.fn = on_late;
	deadline_set(w, &a->due, among->clients->exchanges.limits.arrival_ms);
	newcomers_add(&among->waiting, &a->place, source, now_ms, turn);
}

void control_arrivals_end(struct control_arrivals *among)
{
	while (among->waiting.count) {
		struct arrival *a = arrival_at(among->waiting.ring.next);
		close(a->fd);
		arrival_leave(a);
	}
}
