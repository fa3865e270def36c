/* ragent.c: makes the parts of the process in this order: shared parts, bound sockets, then the change to an
 * ordinary user, then threads. The main loop has only the control socket, the handover and the signals
 * (ragent_handover.c).
 */
#include "ragent/process/ragent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "conf/memory.h"
#include "net/limits/admission.h"
#include "net/loop/signals.h"
#include "net/loop/timer.h"
#include "net/points/fault.h"
#include "net/process/daemon.h"
#include "net/process/descriptors.h"
#include "net/process/scheduling.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/connection/connection_home.h"
#include "ragent/control/control.h"
#include "ragent/handover/handover_giver.h"
#include "ragent/handover/handover_taker.h"
#include "ragent/keeper/keeper.h"
#include "ragent/process/privileges.h"
#include "ragent/process/ragent_internal.h"

/* --- stop --- */

static void on_worker_closed_here(struct worker *w, void *arg)
{
	struct ragent *r = arg;

	if (--r->running > 0)
		return;
	timer_stop(r->heartbeat);
	r->heartbeat = NULL;
	control_destroy(r->control);
	r->control = NULL;
	handover_giver_destroy(r->giver);
	r->giver = NULL;
	signals_destroy(r->signals);
	r->signals = NULL;
	worker_stop(r->main);
}

static void on_worker_closed(struct ragent_worker *rw)
{
	struct ragent *r = rw->owner;

	worker_stop(rw->home.worker);
	worker_post(r->main, on_worker_closed_here, r);
}

static void stop_worker(struct worker *w, void *arg)
{
	ragent_worker_stop(arg, RAGENT_STOP_LIMIT_MS, on_worker_closed);
}

void ragent_stop(struct ragent *r)
{
	if (r->operations.state == OPERATIONS_RUNNING)
		log_event(LOG_INFO, NULL, "stopping", "connections=%u", admission_total(r->shared.admission));
	r->operations.state = OPERATIONS_STOPPING;
	notes_set_stage(r->shared.notes, NOTES_ENDING);
	for (unsigned i = 0; i < r->worker_count; i++)
		worker_post(r->threads[i], stop_worker, r->workers[i]);
}

static int ragent_reload(void *owner, char *error, size_t error_cap)
{
	struct ragent *r = owner;
	const char *tokens = r->shared.self->control_tokens;
	int result = tokens ? control_reload_tokens(r->control, tokens, error, error_cap) : 0;
	const int of_logs = log_reopen();

	if (of_logs == 0)
		return result;
	snprintf(error, error_cap, "a log cannot be opened again: %s", strerror(-of_logs));
	return CSSL_E_SYSTEM;
}

static void ragent_on_signal(void *ctx, int signum)
{
	if (signum != SIGHUP) {
		ragent_stop(ctx);
		return;
	}
	char error[256] = "";
	int r = ragent_reload(ctx, error, sizeof error);
	if (r < 0)
		log_event(LOG_ERROR, NULL, "not reloaded", "cause=%s effect=\"what was read before stays\"", error);
	else
		log_event(LOG_INFO, NULL, "reloaded", NULL);
}

/* --- start --- */

static int make_shared(struct ragent *r, const struct ragent_params *p)
{
	const struct conf *conf = p->conf;
	const struct conf_ragent *self = p->self;
	struct ragent_shared *s = &r->shared;
	int result = 0;

	s->conf = conf;
	s->self = self;
	s->link_key = p->link_key;
	s->notes = p->notes;
	s->blocked = p->notes ? &p->notes->shared->blocked : calloc(1, sizeof *s->blocked);
	randombytes_buf(&s->boot_id, sizeof s->boot_id);
	s->agents = agents_create(conf);
	s->admission = admission_create(self->limits.connections, self->limits.connections_per_source);
	s->fronts = calloc(conf->listener_count + 1, sizeof *s->fronts);
	if (!s->agents || !s->admission || !s->fronts || !s->blocked)
		return CSSL_E_NO_MEMORY;
	for (; result == 0 && s->front_count < conf->listener_count; s->front_count++)
		result = front_init(&s->fronts[s->front_count], s->front_count, conf);
	return result;
}

/* If this process dies before it uses what a worker has read, the next one finds that. */
static void read_where_it_outlives(struct ragent *r, unsigned worker)
{
	uint8_t *buffers = r->shared.notes ? r->shared.notes->outliving.read_buffers : NULL;

	if (buffers && r->threads[worker])
		worker_read_into(r->threads[worker], buffers + (size_t)worker * WORKER_READ_BUFFER_LEN);
}

static int make_workers(struct ragent *r)
{
	unsigned count = r->shared.self->workers;
	char name[32];

	r->threads = calloc(count, sizeof *r->threads);
	r->workers = calloc(count, sizeof *r->workers);
	if (!r->threads || !r->workers)
		return CSSL_E_NO_MEMORY;
	for (; r->worker_count < count; r->worker_count++) {
		unsigned i = r->worker_count;
		snprintf(name, sizeof name, "ragent-%u", i);
		r->threads[i] = worker_create(i, name);
		read_where_it_outlives(r, i);
		r->workers[i] = r->threads[i] ? ragent_worker_create(&r->shared, r->threads[i]) : NULL;
		if (!r->workers[i]) {
			worker_destroy(r->threads[i]);
			return CSSL_E_NO_MEMORY;
		}
		r->workers[i]->owner = r;
	}
	return 0;
}

/* Do all that needs privileges, and then give them up. */
static int bind_and_drop(struct ragent *r, struct passed_sockets *passed, char *error, size_t cap)
{
	const struct conf_ragent *self = r->shared.self;
	int result = 0;

	for (unsigned i = 0; result == 0 && i < r->worker_count; i++)
		result = ragent_worker_listen(r->workers[i], passed, error, cap);
	if (result == 0)
		result = ragent_bind_control(r, passed, error, cap);
	if (result == 0 && r->taker)
		result = handover_taker_check_sockets(r->taker, error, cap);
	if (result < 0)
		return result;
	result = ragent_note_sockets(r);
	if (result < 0) {
		snprintf(error, cap, "the listening sockets: %s", cssl_strerror(result));
		return result;
	}
	return privileges_settle(r->shared.conf, self, error, cap);
}

static int start_in_thread(struct worker *w, void *arg)
{
	struct ragent_worker *rw = arg;

	notes_enter_thread(rw->home.shared->notes, 1 + worker_index(w));
	return ragent_worker_start(rw);
}

static int start_again_in_thread(struct worker *w, void *arg)
{
	struct ragent_worker *rw = arg;
	int result = start_in_thread(w, arg);

	if (result == 0)
		result = ragent_begin_restoring(rw->owner, rw);
	if (result == 0)
		ragent_welcome_fresh(rw->owner, worker_index(w));
	return result;
}

static int start_parked_in_thread(struct worker *w, void *arg)
{
	struct ragent_worker *rw = arg;

	notes_enter_thread(rw->home.shared->notes, 1 + worker_index(w));
	int result = ragent_worker_start(rw);
	if (result == 0)
		ragent_worker_park(rw);
	return result;
}

static int start_one_by_one(struct ragent *r)
{
	for (unsigned i = 0; i < r->worker_count; i++) {
		int result =
			worker_start(r->threads[i], r->taker ? start_parked_in_thread : start_in_thread, r->workers[i]);
		if (result < 0)
			return result;
		r->running++;
	}
	return 0;
}

/* After a death, clients wait. If a worker fails, the process ends at once. */
static int start_all_together(struct ragent *r)
{
	int result = 0;

	while (result == 0 && r->running < r->worker_count) {
		result = worker_begin(r->threads[r->running], start_again_in_thread, r->workers[r->running]);
		r->running += result == 0;
	}
	for (unsigned i = 0; i < r->running; i++) {
		int of_one = worker_await(r->threads[i]);
		result = result < 0 ? result : of_one;
	}
	return result;
}

static int ragent_start_workers(struct ragent *r)
{
	static const int signums[] = { SIGTERM, SIGINT, SIGHUP };

	r->operations = (struct operations){
		.main = r->main,
		.shared = &r->shared,
		.workers = r->workers,
		.worker_count = r->worker_count,
		.started_ms = worker_now_ms(r->main),
		.reload = ragent_reload,
		.owner = r,
	};
	r->signals = signals_create(r->main, signums, 3, ragent_on_signal, r);
	if (!r->signals || ragent_begin_heartbeat(r) < 0)
		return CSSL_E_NO_MEMORY;
	if (r->shared.notes)
		keeper_take_signals();
	notes_enter_thread(r->shared.notes, 0);
	return r->leftovers ? start_all_together(r) : start_one_by_one(r);
}

void ragent_serve(struct ragent *r)
{
	const struct notes *n = r->shared.notes;

	notes_set_stage(r->shared.notes, NOTES_SERVING);
	/* in each life: the one before may have ended first */
	service_notify_ready(n ? (pid_t)atomic_load(&n->shared->keeper) : getpid());
	if (r->leftovers)
		ragent_say_running_again(r);
}

static int ragent_prepare(struct ragent *r, const struct ragent_params *p, char *error, size_t cap)
{
	struct passed_sockets noted = { 0 };
	int result = 0;

	if (p->start == RAGENT_REPLACES)
		result = ragent_ask_running(r, error, cap);
	if (p->start == RAGENT_STARTS_AGAIN)
		result = ragent_take_noted(p->notes, &noted);
	if (result == 0)
		result = bind_and_drop(r, r->taker ? handover_taker_sockets(r->taker) : &noted, error, cap);
	if (result < 0)
		return result; /* the next attempt needs the notes */
	passed_sockets_clear(&noted);
	if (ragent_start_workers(r) == 0)
		return 0;
	snprintf(error, cap, "cannot start the workers");
	return CSSL_E_SYSTEM;
}

struct ragent *ragent_create(const struct ragent_params *p, char *error, size_t error_cap)
{
	struct ragent *r = calloc(1, sizeof *r);

	snprintf(error, error_cap, "%s", cssl_strerror(CSSL_E_NO_MEMORY));
	if (!r)
		return NULL;
	r->leftovers = p->leftovers;
	descriptors_raise(memory_descriptors_of_ragent(p->conf, p->self, p->self->limits.connections));
	scheduling_take_turns();
	r->main = worker_create(0, "main");
	if (!r->main || make_shared(r, p) < 0 || make_workers(r) < 0)
		goto failed;
	fault_start(p->self->name);
	if (ragent_prepare(r, p, error, error_cap) < 0)
		goto failed;
	log_event(LOG_INFO, NULL, "running", "workers=%u agents=%u listeners=%u", r->worker_count,
		agents_count(r->shared.agents), (unsigned)r->shared.front_count);
	if (r->taker) {
		ragent_take_over(r);
	} else if (r->leftovers) {
		notes_set_stage(r->shared.notes, NOTES_RESTORING);
	} else {
		ragent_open_control(r);
		ragent_serve(r);
	}
	return r;
failed:
	handover_taker_destroy(r->taker, error);
	r->taker = NULL;
	if (p->start != RAGENT_STARTS_AGAIN)
		ragent_destroy(r);
	return NULL;
}

int ragent_run(struct ragent *r)
{
	int result = worker_run(r->main);

	log_event(LOG_INFO, NULL, "stopped", NULL);
	return result < 0 ? result : r->result;
}

/* Threads that still run, after a start that failed half-way, are stopped first. */
static void stop_at_once(struct ragent *r)
{
	if (r->running == 0)
		return;
	for (unsigned i = 0; i < r->running; i++)
		worker_post(r->threads[i], stop_worker, r->workers[i]);
	worker_run(r->main);
}

void ragent_destroy(struct ragent *r)
{
	if (!r)
		return;
	stop_at_once(r);
	timer_stop(r->heartbeat);
	control_destroy(r->control);
	handover_giver_destroy(r->giver);
	signals_destroy(r->signals);
	for (unsigned i = 0; i < r->worker_count; i++) {
		ragent_worker_unlisten(r->workers[i]);
		worker_destroy(r->threads[i]);
		ragent_worker_destroy(r->workers[i]);
	}
	worker_destroy(r->main);
	handover_taker_destroy(r->taker, NULL);
	free(r->threads);
	free(r->workers);
	for (size_t i = 0; i < r->shared.front_count; i++)
		front_clear(&r->shared.fronts[i]);
	free(r->shared.fronts);
	admission_destroy(r->shared.admission);
	agents_destroy(r->shared.agents);
	if (!r->shared.notes)
		free(r->shared.blocked);
	fault_stop();
	free(r);
}
