/* doors.c: a list of listeners. Two are the same when address and way of capture are. */
#include "smtpproxy/process/doors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop/listener.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "smtpproxy/process/handover.h"

#define BACKLOG 1024

/* OPEN: follows the file. NEW: opened for a file that does not count yet. CLOSED: its socket is about to close. */
enum door_state { DOOR_NEW, DOOR_OPEN, DOOR_CLOSED };

struct door {
	LIST_ENTRY(door) next;
	struct doors *doors;
	const struct smtpproxy_listener *conf;
	struct listener *listener;
	enum door_state state;
};

struct doors {
	struct sender_home *home;
	void (*on_closed)(void *ctx);
	void *ctx;
	unsigned left;
	enum { DOORS_LISTEN, DOORS_REFUSE } mode;
	LIST_HEAD(, door) all;
};

struct doors *doors_create(struct sender_home *home, void (*on_closed)(void *ctx), void *ctx)
{
	struct doors *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->home = home;
	d->on_closed = on_closed;
	d->ctx = ctx;
	LIST_INIT(&d->all);
	return d;
}

unsigned doors_left(const struct doors *d)
{
	return d->left;
}

static void on_door_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct door *d = ctx;
	session_open(d->doors->home, d->conf, fd, peer);
}

static void on_door_listener_closed(void *ctx)
{
	struct door *d = ctx;
	struct doors *doors = d->doors;
	LIST_REMOVE(d, next);
	free(d);
	doors->left--;
	doors->on_closed(doors->ctx);
}

static const struct listener_ops listener_ops = { .on_accept = on_door_accept, .on_closed = on_door_listener_closed };

static bool listener_is_same(const struct smtpproxy_listener *a, const struct smtpproxy_listener *b)
{
	return a->capture == b->capture && a->address.ss_family == b->address.ss_family &&
	       address_is_same((const struct sockaddr *)&a->address, (const struct sockaddr *)&b->address);
}

static struct door *doors_find(const struct doors *doors, const struct smtpproxy_listener *l)
{
	struct door *d;
	LIST_FOREACH(d, &doors->all, next)
	{
		if (d->state != DOOR_CLOSED && listener_is_same(d->conf, l))
			return d;
	}
	return NULL;
}

static void close_door(struct door *d)
{
	if (d->state == DOOR_CLOSED)
		return;
	d->state = DOOR_CLOSED;
	listener_close(d->listener);
}

static struct listener *door_listen_on(
	struct door *d, const struct smtpproxy_listener *l, struct inheritance *in, int *r)
{
	const struct sockaddr *address = (const struct sockaddr *)&l->address;
	struct worker *w = d->doors->home->worker;
	const int fd = inheritance_find(in, INHERITANCE_LISTENER, l->capture, address);
	if (fd >= 0)
		return listener_create_fd(w, fd, &listener_ops, d, r);
	return listener_create(w, address, BACKLOG, 0, &listener_ops, d, r);
}

static void door_refuse(struct door *d)
{
	const int r = d->state == DOOR_CLOSED ? 0 : listener_refuse(d->listener);
	if (r < 0)
		log_event(LOG_ERROR, NULL, "listener not closed", "cause=%s", error_text(r));
}

void doors_refuse(struct doors *doors)
{
	struct door *d;
	if (doors->mode == DOORS_REFUSE)
		return;
	doors->mode = DOORS_REFUSE;
	LIST_FOREACH(d, &doors->all, next)
	door_refuse(d);
}

void doors_listen(struct doors *doors)
{
	struct door *d;
	if (doors->mode == DOORS_LISTEN)
		return;
	doors->mode = DOORS_LISTEN;
	LIST_FOREACH(d, &doors->all, next)
	{
		const int r = d->state == DOOR_CLOSED ? 0 : listener_listen(d->listener, BACKLOG);
		if (r < 0)
			log_event(LOG_ERROR, NULL, "listener not opened again", "cause=%s", error_text(r));
	}
}

static int open_one(
	struct doors *doors, const struct smtpproxy_listener *l, struct inheritance *in, char *error, size_t cap)
{
	char text[ADDRESS_TEXT_MAX];
	struct door *d = calloc(1, sizeof *d);
	int r = UV_ENOMEM;
	address_format((const struct sockaddr *)&l->address, text);
	if (d) {
		d->doors = doors;
		d->conf = l;
		d->listener = door_listen_on(d, l, in, &r);
	}
	if (!d || !d->listener) {
		snprintf(error, cap, "%s: %s", text, error_text(r));
		free(d);
		return CSSL_E_SYSTEM;
	}
	LIST_INSERT_HEAD(&doors->all, d, next);
	doors->left++;
	r = capture_prepare(listener_fd(d->listener), l->capture);
	if (r < 0) {
		snprintf(error, cap,
			"%s: original_destination: tproxy needs CAP_NET_ADMIN (%s); start smtpproxy as root, or with "
			"this capability",
			text, error_text(r));
		return CSSL_E_SYSTEM;
	}
	if (doors->mode == DOORS_REFUSE)
		door_refuse(d);
	log_event(LOG_INFO, NULL, "listening", "address=%s", text);
	return 0;
}

void doors_give(const struct doors *doors, struct handover *to)
{
	const struct door *d;
	LIST_FOREACH(d, &doors->all, next)
	{
		if (d->state == DOOR_OPEN)
			handover_give(to, INHERITANCE_LISTENER, d->conf->capture, listener_fd(d->listener));
	}
}

int doors_open(struct doors *doors, const struct conf_smtpproxy *conf, struct inheritance *in, char *error, size_t cap)
{
	struct door *d;
	int r = 0;
	for (size_t i = 0; r == 0 && i < conf->listener_count; i++)
		if (!doors_find(doors, &conf->listeners[i]))
			r = open_one(doors, &conf->listeners[i], in, error, cap);
	LIST_FOREACH(d, &doors->all, next)
	{
		if (r < 0 && d->state == DOOR_NEW)
			close_door(d);
	}
	return r;
}

void doors_follow(struct doors *doors, const struct conf_smtpproxy *conf)
{
	struct door *d;
	LIST_FOREACH(d, &doors->all, next)
	{
		const struct smtpproxy_listener *l = NULL;
		for (size_t i = 0; d->state != DOOR_CLOSED && !l && i < conf->listener_count; i++)
			l = listener_is_same(d->conf, &conf->listeners[i]) ? &conf->listeners[i] : NULL;
		if (!l) {
			close_door(d);
			continue;
		}
		d->conf = l;
		d->state = DOOR_OPEN;
	}
}

void doors_close(struct doors *doors)
{
	struct door *d;
	LIST_FOREACH(d, &doors->all, next)
	close_door(d);
}
