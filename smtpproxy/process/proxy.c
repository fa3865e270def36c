/* proxy.c: everything is created here and ends here, in the reverse order. */
#include "smtpproxy/process/proxy.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/address.h"
#include "net/container_of.h"
#include "net/error_text.h"
#include "net/listener.h"
#include "net/log.h"
#include "net/signals.h"
#include "net/user.h"
#include "proto/error.h"
#include "smtpproxy/control/control.h"
#include "smtpproxy/process/captured_listener.h"
#include "smtpproxy/sender/session.h"

#define BACKLOG 1024

/* RUNS -> DRAINS -> CLOSES -> OVER */
enum proxy_state { PROXY_RUNS, PROXY_DRAINS, PROXY_CLOSES, PROXY_OVER };

struct door {
	struct proxy *proxy;
	const struct smtpproxy_listener *conf;
	struct listener *listener;
};

struct proxy {
	const struct conf_smtpproxy *conf;
	struct worker *worker;
	struct signals *signals;
	struct smtpproxy_counters counters;
	struct outward_home outward_home;
	struct sender_home home;
	struct control_view view;
	struct control *control; /* NULL: none */
	struct door *doors;
	unsigned doors_open;
	enum proxy_state state;
	struct deadline stop; /* for the sessions that are left */
};

/* The end */

static void on_outward_stopped(void *ctx)
{
	struct proxy *p = ctx;
	p->state = PROXY_OVER;
	signals_destroy(p->signals);
	p->signals = NULL;
	control_destroy(p->control);
	p->control = NULL;
	worker_stop(p->worker);
}

static void close_when_empty(struct proxy *p)
{
	if (p->state != PROXY_DRAINS || p->doors_open > 0 || p->home.count > 0)
		return;
	p->state = PROXY_CLOSES;
	deadline_cancel(&p->stop);
	outward_stop(p->home.outward, on_outward_stopped, p);
}

static void on_gone(struct sender_home *home)
{
	close_when_empty(container_of(home, struct proxy, home));
}

static void each_session(struct proxy *p, void (*fn)(struct session *s))
{
	struct session *s, *next;
	for (s = LIST_FIRST(&p->home.sessions); s; s = next) {
		next = LIST_NEXT(s, next);
		fn(s);
	}
}

static void on_stop_deadline(struct deadline *d)
{
	struct proxy *p = container_of(d, struct proxy, stop);
	log_event(LOG_WARNING, NULL, "cut at the stop", "sessions=%u", p->home.count);
	each_session(p, session_cut);
}

static void drain(struct proxy *p)
{
	p->state = PROXY_DRAINS;
	deadline_set(p->worker, &p->stop, p->conf->limits.stop_ms);
	log_event(LOG_INFO, NULL, "stopping", "sessions=%u", p->home.count);
	for (size_t i = 0; i < p->conf->listener_count; i++)
		listener_close(p->doors[i].listener);
	each_session(p, session_drain);
	close_when_empty(p);
}

static void reopen_logs(struct proxy *p)
{
	log_reopen();
	const int r = event_log_open(p->home.events);
	if (r < 0)
		log_event(LOG_WARNING, NULL, "event log not opened again", "cause=%s", error_text(r));
}

static void on_signal(void *ctx, int signum)
{
	struct proxy *p = ctx;
	if (signum == SIGHUP)
		reopen_logs(p);
	else if (p->state == PROXY_RUNS)
		drain(p);
	else
		each_session(p, session_cut);
}

/* Listeners */

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct door *d = ctx;
	session_open(&d->proxy->home, d->conf, fd, peer);
}

static void on_listener_closed(void *ctx)
{
	struct door *d = ctx;
	d->proxy->doors_open--;
	close_when_empty(d->proxy);
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };

static int open_door(struct proxy *p, struct door *d, const struct smtpproxy_listener *l, char *error, size_t cap)
{
	char text[ADDRESS_TEXT_MAX];
	const struct sockaddr *address = (const struct sockaddr *)&l->address;
	int r = 0;
	d->proxy = p;
	d->conf = l;
	d->listener = l->capture == SMTPPROXY_CAPTURE_TPROXY
			      ? captured_listener_create(p->worker, address, BACKLOG, &listener_ops, d, &r)
			      : listener_create(p->worker, address, BACKLOG, 0, &listener_ops, d, &r);
	address_format(address, text);
	if (!d->listener) {
		snprintf(error, cap, "%s: %s", text, error_text(r));
		return CSSL_E_SYSTEM;
	}
	p->doors_open++;
	log_event(LOG_INFO, NULL, "listening", "address=%s", text);
	return 0;
}

static int open_doors(struct proxy *p, char *error, size_t cap)
{
	for (size_t i = 0; i < p->conf->listener_count; i++) {
		int r = open_door(p, &p->doors[i], &p->conf->listeners[i], error, cap);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The start */

static int open_tls(struct proxy *p, char *error, size_t cap)
{
	p->outward_home.tls = onward_tls_context(p->conf->outward.ca);
	if (p->outward_home.tls)
		return 0;
	snprintf(error, cap, "outward.ca: %s cannot be used",
		p->conf->outward.ca ? p->conf->outward.ca : "the system's authorities");
	return CSSL_E_CONFIG;
}

static int open_events(struct proxy *p, char *error, size_t cap)
{
	const int r = event_log_open(p->home.events);
	if (r < 0)
		snprintf(error, cap, "events: %s: %s", p->conf->events, error_text(r));
	return r;
}

static int open_control(struct proxy *p, char *error, size_t cap)
{
	p->view = (struct control_view){
		.conf = p->conf, .home = &p->home, .version = CSSL_VERSION, .started_ms = worker_wall_ms()
	};
	if (!p->conf->control)
		return 0;
	p->control = control_create(p->worker, p->conf->control, &p->view, error, cap);
	return p->control ? 0 : CSSL_E_SYSTEM;
}

/* The event log is opened again as that user. */
static int become_user(const struct proxy *p, char *error, size_t cap)
{
	const char *user = p->conf->user;
	const struct passwd *known = user ? getpwnam(user) : NULL;
	if (geteuid() != 0)
		return 0;
	if (known && event_log_give(p->home.events, known->pw_uid, known->pw_gid) < 0)
		log_event(LOG_WARNING, NULL, "event log not given away", "user=%s", user);
	if (user)
		return user_become(user, error, cap);
	snprintf(error, cap, "root started it: key 'user' is needed, to become that user");
	return CSSL_E_CONFIG;
}

static int create_parts(struct proxy *p, char *error, size_t cap)
{
	static const int signums[] = { SIGTERM, SIGINT, SIGHUP };
	const struct smtpproxy_limits *limits = &p->conf->limits;
	p->doors = calloc(p->conf->listener_count, sizeof *p->doors);
	p->worker = worker_create(0, "smtpproxy");
	if (!p->doors || !p->worker)
		return CSSL_E_NO_MEMORY;
	p->outward_home = (struct outward_home){ .worker = p->worker, .conf = p->conf, .counters = &p->counters };
	p->home = (struct sender_home){ .worker = p->worker, .conf = p->conf, .counters = &p->counters };
	p->home.on_gone = on_gone;
	LIST_INIT(&p->home.sessions);
	p->signals = signals_create(p->worker, signums, sizeof signums / sizeof signums[0], on_signal, p);
	p->home.rules = destination_rules_create(p->conf);
	p->home.admission = admission_create(limits->sessions, limits->sessions_per_source);
	p->home.ledger = tx_ledger_create(limits->transactions);
	p->home.events = event_log_create(p->conf->events, &p->counters.events_dropped);
	p->home.outward = outward_create(&p->outward_home);
	if (!p->signals || !p->home.rules || !p->home.admission || !p->home.ledger || !p->home.events ||
		!p->home.outward)
		return CSSL_E_NO_MEMORY;
	return open_tls(p, error, cap);
}

static int start(struct proxy *p, char *error, size_t cap)
{
	int r = create_parts(p, error, cap);
	if (r == CSSL_E_NO_MEMORY)
		snprintf(error, cap, "out of memory");
	if (r == 0)
		r = open_doors(p, error, cap);
	if (r == 0)
		r = open_events(p, error, cap);
	if (r == 0)
		r = open_control(p, error, cap);
	return r == 0 ? become_user(p, error, cap) : r;
}

struct proxy *proxy_create(const struct conf_smtpproxy *conf, char *error, size_t error_cap)
{
	struct proxy *p = calloc(1, sizeof *p);
	if (!p) {
		snprintf(error, error_cap, "out of memory");
		return NULL;
	}
	p->conf = conf;
	p->stop.fn = on_stop_deadline;
	if (start(p, error, error_cap) == 0)
		return p;
	proxy_destroy(p);
	return NULL;
}

void proxy_run(struct proxy *p)
{
	worker_run(p->worker);
}

/* It never ran: its handles have to be closed. */
static void unwind(struct proxy *p)
{
	p->state = PROXY_OVER;
	for (size_t i = 0; i < p->conf->listener_count; i++)
		listener_close(p->doors ? p->doors[i].listener : NULL);
	signals_destroy(p->signals);
	control_destroy(p->control);
	worker_stop(p->worker);
	worker_run(p->worker);
}

void proxy_destroy(struct proxy *p)
{
	if (!p)
		return;
	if (p->worker && p->state != PROXY_OVER)
		unwind(p);
	outward_destroy(p->home.outward);
	if (p->worker)
		worker_destroy(p->worker);
	admission_destroy(p->home.admission);
	destination_rules_destroy(p->home.rules);
	tx_ledger_destroy(p->home.ledger);
	event_log_destroy(p->home.events);
	SSL_CTX_free(p->outward_home.tls);
	free(p->doors);
	free(p);
}
