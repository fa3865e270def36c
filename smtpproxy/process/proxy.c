/* proxy.c: everything is created here and ends here, in the reverse order. */
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/loop/signals.h"
#include "net/memory/container_of.h"
#include "net/process/user.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "smtpproxy/control/control.h"
#include "smtpproxy/events/event_log.h"
#include "smtpproxy/ledger/tx_before.h"
#include "smtpproxy/policy/destination_rules.h"
#include "smtpproxy/process/doors.h"
#include "smtpproxy/process/proxy_inside.h"
#include "smtpproxy/process/queue_side.h"
#include "smtpproxy/queue/queue.h"
#include "smtpproxy/tls/onward_tls.h"

/* The end */

/* Of operators; the paths stay, another process may have the sockets. */
static void close_sockets(struct proxy *p)
{
	control_socket_destroy(p->control);
	p->control = NULL;
	status_socket_destroy(p->status);
	p->status = NULL;
	handover_destroy(p->handover);
	p->handover = NULL;
	predecessor_close(&p->predecessor);
}

/* The process that has replaced this one can be asked about the transactions that were named here. */
static void give_ledger(struct proxy *p)
{
	const struct remote_channel *c = p->handover ? handover_channel(p->handover) : NULL;
	session_tx_forget_remote(&p->home);
	if (c)
		tx_before_give(p->home.before, p->home.ledger, c->send, c->ctx);
}

static void on_outward_stopped(void *ctx)
{
	struct proxy *p = ctx;
	p->state = PROXY_OVER;
	signals_destroy(p->signals);
	p->signals = NULL;
	give_ledger(p);
	close_sockets(p);
	resolver_destroy(p->outward_home.resolver);
	worker_stop(p->worker);
}

static void on_queue_stopped(void *ctx)
{
	struct proxy *p = ctx;
	p->home.queue = NULL; /* it was freed, and the control socket still answers */
	if (p->state == PROXY_CLOSES)
		outward_stop(p->home.outward, on_outward_stopped, p);
}

static void close_when_empty(struct proxy *p)
{
	if ((p->state != PROXY_DRAINS && p->state != PROXY_CUTS) || doors_left(p->doors) > 0 || p->home.count > 0)
		return;
	p->state = PROXY_CLOSES;
	deadline_cancel(&p->stop);
	if (p->queue_side)
		queue_side_stop(p->queue_side, p->conf->limits.stop_ms);
	else
		outward_stop(p->home.outward, on_outward_stopped, p);
}

static void each_session(struct proxy *p, void (*fn)(struct session *s))
{
	struct session *s, *next;
	for (s = LIST_FIRST(&p->home.sessions); s; s = next) {
		next = LIST_NEXT(s, next);
		fn(s);
	}
}

static void proxy_drain(struct proxy *p)
{
	p->state = PROXY_DRAINS;
	deadline_set(p->worker, &p->stop, p->conf->limits.stop_ms);
	log_event(LOG_INFO, NULL, "stopping", "sessions=%u", p->home.count);
	doors_close(p->doors);
	each_session(p, session_drain);
	close_when_empty(p);
}

static void on_proxy_session_gone(struct sender_home *home)
{
	struct proxy *p = container_of(home, struct proxy, home);
	if (p->state == PROXY_LINGERS && home->count == 0)
		proxy_drain(p);
	else
		close_when_empty(p);
}

static void on_door_closed(void *ctx)
{
	close_when_empty(ctx);
}

/* Messages that the receiver has get their replies, or they would come twice. */
static void cut_open(struct proxy *p)
{
	log_event(LOG_WARNING, NULL, "sessions cut at the stop", "sessions=%u", p->home.count);
	p->state = PROXY_CUTS;
	deadline_set(p->worker, &p->stop, p->conf->limits.stop_ms);
	each_session(p, session_cut_open);
}

static void cut_decided(struct proxy *p)
{
	log_event(LOG_WARNING, NULL, "messages without a reply at the stop", "sessions=%u", p->home.count);
	each_session(p, session_cut_decided);
}

/* To the next step of a stop. */
static void stop_more(struct proxy *p)
{
	if (p->state <= PROXY_LINGERS)
		proxy_drain(p);
	else if (p->state == PROXY_DRAINS)
		cut_open(p);
	else if (p->state == PROXY_CUTS)
		cut_decided(p);
}

static void on_stop_deadline(struct deadline *d)
{
	stop_more(container_of(d, struct proxy, stop));
}

static void on_proxy_signal(void *ctx, int signum)
{
	struct proxy *p = ctx;
	if (signum == SIGHUP)
		proxy_reload(p);
	else
		stop_more(p);
}

/* deliver: queue: while no copy can be stored, or memory is used up, nobody can connect, so that a balancer
 * in front takes us out. In another state than RUNS, the sockets may be another process's. */

static void follow_queue(void *ctx)
{
	struct proxy *p = ctx;
	if (p->state != PROXY_RUNS)
		return;
	if (!queue_room(p->home.queue) && p->home.room.state == BODY_ROOM_FREE)
		doors_listen(p->doors);
	else
		doors_refuse(p->doors);
}

/* Without the queue it is of no use. Started again, it can be a standby; deliveries behind their final dot get their
 * reply first. */
static void on_queue_deposed(void *ctx)
{
	struct proxy *p = ctx;
	if (p->state != PROXY_RUNS)
		return;
	log_event(LOG_ERROR, NULL, "process ends", "cause=%s", "another gateway owns the queue");
	p->result = CSSL_E_STATE;
	proxy_drain(p);
}

static const struct queue_side_ops queue_side_ops = {
	.on_change = follow_queue,
	.on_deposed = on_queue_deposed,
	.on_stopped = on_queue_stopped,
};

static int read_queue_files(struct proxy *p, char *error, size_t cap)
{
	if (p->conf->deliver != SMTPPROXY_QUEUE)
		return 0;
	p->queue_side = queue_side_create(&p->conf->queue, error, cap);
	return p->queue_side ? 0 : CSSL_E_CONFIG;
}

static int open_queue(struct proxy *p, char *error, size_t cap)
{
	struct delivery_parts parts = { .worker = p->worker,
		.conf = p->conf,
		.counters = &p->counters,
		.outward = p->home.outward,
		.rules = p->home.rules,
		.resolver = p->outward_home.resolver };
	const int r = p->queue_side ? queue_side_open(p->queue_side, &parts, &queue_side_ops, p, error, cap) : 0;
	if (!p->queue_side || r < 0)
		return r;
	p->home.queue = parts.queue;
	p->home.probes = parts.probes;
	body_room_begin(&p->home.room, p->conf->queue.memory, follow_queue, p);
	return 0;
}

/* Handover */

static void on_asked(void *ctx)
{
	struct proxy *p = ctx;
	doors_give(p->doors, p->handover);
	if (p->control)
		handover_give(p->handover, INHERITANCE_CONTROL, 0, control_socket_fd(p->control));
	if (p->status)
		handover_give(p->handover, INHERITANCE_CONTROL, 0, status_socket_fd(p->status));
	handover_give(p->handover, INHERITANCE_HANDOVER, 0, handover_fd(p->handover));
}

/* The sessions go on here. */
static void on_proxy_taken(void *ctx)
{
	struct proxy *p = ctx;
	if (p->state != PROXY_RUNS)
		return;
	log_event(LOG_INFO, NULL, "replaced", "sessions=%u", p->home.count);
	p->state = PROXY_LINGERS;
	control_socket_destroy(p->control);
	p->control = NULL;
	status_socket_destroy(p->status);
	p->status = NULL;
	doors_close(p->doors);
	deadline_set(p->worker, &p->stop, p->conf->limits.replaced_ms);
	if (p->home.count == 0)
		proxy_drain(p);
}

static void on_question(void *ctx, const struct tx_message *m)
{
	struct proxy *p = ctx;
	session_tx_ask_remote(&p->home, handover_channel(p->handover), m);
}

static void on_left(void *ctx)
{
	struct proxy *p = ctx;
	session_tx_forget_remote(&p->home);
}

static const struct handover_ops handover_ops = {
	.on_asked = on_asked, .on_taken = on_proxy_taken, .on_question = on_question, .on_left = on_left
};

/* The start */

static int open_doors(struct proxy *p, char *error, size_t cap)
{
	if (p->conf->deliver == SMTPPROXY_QUEUE)
		doors_refuse(p->doors); /* until the queue is ready */
	const int r = doors_open(p->doors, p->conf, p->inherits, error, cap);
	if (r == 0)
		doors_follow(p->doors, p->conf);
	return r;
}

static int open_resolver(struct proxy *p, char *error, size_t cap)
{
	p->outward_home.resolver = resolver_create(p->worker, &p->conf->dns, error, cap);
	return p->outward_home.resolver ? 0 : CSSL_E_CONFIG;
}

static int open_events(struct proxy *p, char *error, size_t cap)
{
	const int r = event_log_open(p->home.events);
	if (r < 0)
		snprintf(error, cap, "events: %s: %s", p->conf->events, error_text(r));
	return r;
}

static int proxy_inherited_fd(struct proxy *p, enum inheritance_kind kind, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	return inheritance_find(p->inherits, kind, 0, (const struct sockaddr *)&address);
}

static int open_control(struct proxy *p, char *error, size_t cap)
{
	p->view = (struct control_view){ .conf = p->conf,
		.home = &p->home,
		.replies = &p->replies,
		.version = CSSL_VERSION,
		.started_ms = worker_wall_ms() };
	if (!p->conf->control)
		return 0;
	const int fd = proxy_inherited_fd(p, INHERITANCE_CONTROL, p->conf->control);
	p->control = control_socket_create(p->worker, p->conf->control, fd, &p->view, error, cap);
	return p->control ? 0 : CSSL_E_SYSTEM;
}

static int open_status(struct proxy *p, char *error, size_t cap)
{
	if (!p->conf->status)
		return 0;
	const int fd = proxy_inherited_fd(p, INHERITANCE_CONTROL, p->conf->status);
	p->status = status_socket_create(p->worker, p->conf->status, fd, &p->view, error, cap);
	return p->status ? 0 : CSSL_E_SYSTEM;
}

static int open_handover(struct proxy *p, char *error, size_t cap)
{
	if (!p->conf->handover)
		return 0;
	const int fd = proxy_inherited_fd(p, INHERITANCE_HANDOVER, p->conf->handover);
	p->handover = handover_create(p->worker, p->conf->handover, fd, &handover_ops, p, error, cap);
	return p->handover ? 0 : CSSL_E_SYSTEM;
}

/* The files are opened again as that user. At --check, a unit may have User= instead. */
static int become_user(struct proxy *p, char *error, size_t cap)
{
	const struct conf_smtpproxy *c = p->conf;
	const struct passwd *known = c->user ? getpwnam(c->user) : NULL;
	if (geteuid() != 0)
		return 0;
	if (!c->user) {
		snprintf(error, cap, "root started it: key 'user' is needed, to become that user");
		log_event(LOG_WARNING, NULL, "no user to become", "effect=\"root does not start it\"");
		return p->how == PROXY_CHECKS ? 0 : CSSL_E_CONFIG;
	}
	if (known)
		event_log_give(p->home.events, known->pw_uid, known->pw_gid);
	const int r = user_become(
		c->user, c->outward.as_sender == CONF_ON ? USER_KEEPS_NET_ADMIN : USER_KEEPS_GROUPS, error, cap);
	user_warn_of(c->log.path, W_OK, USER_SAME_LOG);
	user_warn_of(c->events, W_OK, USER_SAME_LOG);
	user_warn_of(c->file.path, R_OK, "SIGHUP cannot read it again, and changes nothing");
	user_warn_of(c->outward.ca, R_OK, "SIGHUP cannot read it again, and changes nothing");
	return r;
}

static int create_parts(struct proxy *p, char *error, size_t cap)
{
	static const int signums[] = { SIGTERM, SIGINT, SIGHUP };
	const struct smtpproxy_limits *limits = &p->conf->limits;
	p->worker = worker_create(0, "smtpproxy");
	if (!p->worker)
		return CSSL_E_NO_MEMORY;
	p->outward_home = (struct outward_home){ .worker = p->worker, .conf = p->conf, .counters = &p->counters };
	p->outward_home.replies = &p->replies;
	p->home = (struct sender_home){ .worker = p->worker, .conf = p->conf, .counters = &p->counters };
	p->home.on_gone = on_proxy_session_gone;
	LIST_INIT(&p->home.sessions);
	body_room_begin(&p->home.held, limits->held_total, NULL, NULL);
	hooks_init(&p->home.hooks, p->worker, &p->counters);
	p->doors = doors_create(&p->home, on_door_closed, p);
	p->signals = signals_create(p->worker, signums, sizeof signums / sizeof signums[0], on_proxy_signal, p);
	p->home.rules = destination_rules_create(p->conf);
	p->home.admission = admission_create(limits->sessions, limits->sessions_per_source);
	p->home.ledger = tx_ledger_create(limits->transactions);
	p->home.before = tx_before_create(limits->transactions);
	LIST_INIT(&p->home.askers);
	p->home.events = event_log_create(p->conf->events, &p->counters.events_dropped);
	p->home.outward = outward_create(&p->outward_home);
	/* All are made, and then looked at once: whoever unwinds takes a part that is NULL. */
	if (!p->doors || !p->signals || !p->home.rules || !p->home.admission || !p->home.ledger || !p->home.before ||
		!p->home.events || !p->home.outward || hooks_prepare(&p->home.hooks, p->conf) < 0)
		return CSSL_E_NO_MEMORY;
	p->outward_home.tls = onward_tls_context("outward.ca", p->conf->outward.ca, error, cap);
	if (!p->outward_home.tls)
		return CSSL_E_CONFIG;
	hooks_follow(&p->home.hooks, p->conf);
	return 0;
}

/* 0, or CSSL_E_CONFIG. */
static int proxy_inherit(struct proxy *p, char *error, size_t cap)
{
	if (p->how != PROXY_REPLACES)
		return 0;
	if (!p->conf->handover) {
		snprintf(error, cap, "--replace needs the key 'handover'");
		return CSSL_E_CONFIG;
	}
	p->inherits = inheritance_take(p->conf->handover, error, cap);
	return p->inherits ? 0 : CSSL_E_CONFIG;
}

/* TO_SERVE: not at --check, which else does what a start does. All that can fail for the sake of a file comes before
 * the running process is asked. */
static const struct {
	int (*take)(struct proxy *p, char *error, size_t cap);
	enum { ALWAYS, TO_SERVE } when;
} steps[] = {
	{ create_parts, ALWAYS },
	{ open_resolver, ALWAYS },
	{ read_queue_files, ALWAYS },
	{ proxy_inherit, TO_SERVE },
	{ open_doors, TO_SERVE },
	{ open_queue, TO_SERVE },
	{ open_events, TO_SERVE },
	{ open_control, TO_SERVE },
	{ open_status, TO_SERVE },
	{ open_handover, TO_SERVE },
	{ become_user, ALWAYS },
};

static int proxy_start_parts(struct proxy *p, char *error, size_t cap)
{
	int r = 0;
	snprintf(error, cap, "out of memory");
	for (size_t i = 0; r == 0 && i < sizeof steps / sizeof steps[0]; i++)
		if (p->how != PROXY_CHECKS || steps[i].when == ALWAYS)
			r = steps[i].take(p, error, cap);
	return r == 0 && p->how != PROXY_CHECKS ? proxy_check_as_sender(p->conf, error, cap) : r;
}

/* The process before goes on, or accepts no more. */
static void end_inheritance(struct proxy *p, int r)
{
	const int channel = p->inherits && r == 0 ? inheritance_confirm(p->inherits) : -1;
	if (channel >= 0)
		predecessor_open(&p->predecessor, p->worker, channel, p->home.before);
	inheritance_destroy(p->inherits);
	p->inherits = NULL;
}

struct proxy *proxy_create(const struct conf_smtpproxy *conf, enum proxy_start how, char *error, size_t error_cap)
{
	struct proxy *p = calloc(1, sizeof *p);
	if (!p) {
		snprintf(error, error_cap, "out of memory");
		return NULL;
	}
	p->conf = conf;
	SLIST_INIT(&p->files);
	p->stop.fn = on_stop_deadline;
	p->how = how;
	const int r = proxy_start_parts(p, error, error_cap);
	end_inheritance(p, r);
	if (r == 0)
		return p;
	proxy_destroy(p);
	return NULL;
}

int proxy_run(struct proxy *p)
{
	proxy_warn(p->conf);
	worker_run(p->worker);
	return p->result;
}

/* It never ran: its handles have to be closed. */
static void proxy_unwind(struct proxy *p)
{
	p->state = PROXY_OVER;
	if (p->doors)
		doors_close(p->doors);
	if (p->home.queue)
		queue_side_stop(p->queue_side, 0);
	signals_destroy(p->signals);
	close_sockets(p);
	resolver_destroy(p->outward_home.resolver);
	worker_stop(p->worker);
	worker_run(p->worker);
}

static void destroy_files(struct proxy *p)
{
	struct proxy_file *f;
	while ((f = SLIST_FIRST(&p->files))) {
		SLIST_REMOVE_HEAD(&p->files, next);
		conf_smtpproxy_destroy(f->conf);
		free(f);
	}
}

void proxy_destroy(struct proxy *p)
{
	if (!p)
		return;
	if (p->worker && p->state != PROXY_OVER)
		proxy_unwind(p);
	queue_side_destroy(p->queue_side);
	outward_destroy(p->home.outward);
	if (p->worker)
		worker_destroy(p->worker);
	admission_destroy(p->home.admission);
	destination_rules_destroy(p->home.rules);
	tx_ledger_destroy(p->home.ledger);
	tx_before_destroy(p->home.before);
	hooks_free(&p->home.hooks);
	event_log_destroy(p->home.events);
	SSL_CTX_free(p->outward_home.tls);
	free(p->doors);
	destroy_files(p);
	free(p);
}
