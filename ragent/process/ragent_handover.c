/* ragent_handover.c: lets another process replace this one, and lets this one replace another, or follow one that died.
 * The handover socket is beside the control socket, and has the same owner and mode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/loop/listener.h"
#include "net/loop/timer.h"
#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "net/process/daemon.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/connection/revival/revival.h"
#include "ragent/control/control.h"
#include "ragent/handover/handover_giver.h"
#include "ragent/handover/handover_offer.h"
#include "ragent/handover/handover_taker.h"
#include "ragent/process/ragent_internal.h"

#define HANDOVER_PATH_MAX 128u /* longer than the path of any socket */
#define HEARTBEAT_MS      200u

static const char *handover_path(const struct ragent *r, char out[static HANDOVER_PATH_MAX])
{
	snprintf(out, HANDOVER_PATH_MAX, "%s.handover", r->shared.self->control);
	return out;
}

/* --- being replaced --- */

static int put_sockets(void *ctx, struct handover_message *m)
{
	struct ragent *r = ctx;
	const struct conf_ragent *self = r->shared.self;
	char key[NOTES_KEY_MAX];
	int result =
		handover_socket_pack(m, passed_key_of_path(key, "control", self->control), 0, control_fd(r->control));

	if (result < 0 || control_address_fd(r->control) < 0)
		return result;
	passed_key_of_listener(key, "control", (const struct sockaddr *)&self->control_address);
	return handover_socket_pack(m, key, 0, control_address_fd(r->control));
}

static const char *ragent_why_not(void *ctx)
{
	const struct ragent *r = ctx;

	return r->operations.state == OPERATIONS_RUNNING ? NULL : "it is stopping";
}

static void on_replaced(void *ctx)
{
	struct ragent *r = ctx;

	control_pause(r->control); /* for good: the socket file belongs to the other process now */
	ragent_stop(r);
}

static int bind_handover(struct ragent *r, struct passed_sockets *passed, char *error, size_t cap)
{
	char path[HANDOVER_PATH_MAX], key[NOTES_KEY_MAX];
	const struct handover_giver_params p = {
		.main = r->main,
		.shared = &r->shared,
		.threads = r->threads,
		.workers = r->workers,
		.worker_count = r->worker_count,
		.put_sockets = put_sockets,
		.why_not = ragent_why_not,
		.on_replaced = on_replaced,
		.ctx = r,
	};

	handover_path(r, path);
	int fd = passed_sockets_take(passed, passed_key_of_path(key, "handover", path), 0);
	r->giver = handover_giver_create(&p, path, fd, error, cap);
	if (!r->giver)
		return CSSL_E_SYSTEM;
	if (r->taker || r->leftovers)
		handover_giver_pause(r->giver);
	return 0;
}

static int bind_address(struct ragent *r, struct passed_sockets *passed, char *error, size_t cap)
{
	const struct conf_ragent *self = r->shared.self;
	const struct sockaddr *address = (const struct sockaddr *)&self->control_address;
	char key[NOTES_KEY_MAX];

	if (address->sa_family == AF_UNSPEC)
		return 0;
	const struct control_front front = { .address = address,
		.proxy_protocol = self->control_proxy_protocol,
		.tokens = self->control_tokens,
		.fd = passed_sockets_take(passed, passed_key_of_listener(key, "control", address), 0) };
	if (control_serve_address(r->control, &front, error, cap) == 0)
		return 0;
	if (!r->leftovers)
		return CSSL_E_CONFIG;
	log_event(LOG_ERROR, NULL, "control address not served", "cause=%s effect=\"the UNIX socket still serves\"",
		error);
	return 0; /* after a death, clients are served first */
}

int ragent_bind_control(struct ragent *r, struct passed_sockets *passed, char *error, size_t error_cap)
{
	const char *path = r->shared.self->control;
	char key[NOTES_KEY_MAX];

	if (!path)
		return 0;
	int fd = passed_sockets_take(passed, passed_key_of_path(key, "control", path), 0);
	r->control = control_create(r->main, fd, path, &r->operations, NULL, error, error_cap);
	int result = r->control ? bind_address(r, passed, error, error_cap) : CSSL_E_SYSTEM;
	if (result == 0 && (r->taker || r->leftovers))
		control_pause(r->control);
	return result == 0 ? bind_handover(r, passed, error, error_cap) : result;
}

/* --- replacing --- */

int ragent_ask_running(struct ragent *r, char *error, size_t error_cap)
{
	char path[HANDOVER_PATH_MAX];

	if (!r->shared.self->control) {
		snprintf(error, error_cap, "cannot replace a process that has no control socket");
		return CSSL_E_CONFIG;
	}
	r->taker = handover_taker_create(handover_path(r, path), &r->shared, error, error_cap);
	if (!r->taker)
		return CSSL_E_SYSTEM;
	return fault_at("handover.offered", NULL, NULL) == FAULT_FAIL ? CSSL_E_SYSTEM : 0;
}

void ragent_open_control(struct ragent *r)
{
	control_resume(r->control);
	if (r->giver)
		handover_giver_resume(r->giver);
}

static void ragent_serve_taken(struct ragent *r)
{
	ragent_open_control(r);
	ragent_serve(r);
	background_settle(EXIT_SUCCESS);
}

static void ragent_unlisten(struct worker *w, void *arg)
{
	ragent_worker_unlisten(arg);
}

static void ragent_on_taker_end(void *ctx, enum taker_result result, const char *cause)
{
	struct ragent *r = ctx;

	if (r->operations.state != OPERATIONS_RUNNING)
		return;
	switch (result) {
	case TAKER_HAS_ALL:
		log_event(LOG_INFO, NULL, "took over", "connections=%u", admission_total(r->shared.admission));
		ragent_serve_taken(r);
		break;
	case TAKER_IS_ALONE:
		log_event(LOG_ERROR, NULL, "took over only a part of the connections",
			"cause=\"the old process died\" effect=\"the connections that it still had are lost\"");
		ragent_serve_taken(r);
		break;
	case TAKER_HAS_SOME:
		log_event(LOG_ERROR, NULL, "took over only a part of the connections",
			"cause=%s remedy=\"the old process goes on serving; stop this one when it has no connections "
			"left\"",
			cause);
		for (unsigned i = 0; i < r->worker_count; i++)
			worker_post(r->threads[i], ragent_unlisten, r->workers[i]);
		background_settle(EXIT_FAILURE);
		break;
	case TAKER_HAS_NOTHING:
		log_event(LOG_ERROR, NULL, "not taken over", "cause=%s", cause);
		fprintf(stderr, "ragent: not replaced: %s\n", cause);
		r->result = CSSL_E_STATE;
		ragent_stop(r);
		break;
	}
}

void ragent_take_over(struct ragent *r)
{
	const struct handover_taker_params p = {
		.main = r->main,
		.threads = r->threads,
		.workers = r->workers,
		.worker_count = r->worker_count,
		.on_end = ragent_on_taker_end,
		.ctx = r,
	};

	handover_taker_begin(r->taker, &p);
}

/* --- for the next one: the notes have the listening sockets. Both processes share the descriptors, so a number in the
 * notes is a descriptor in the next one, too --- */

static int note_listeners(struct ragent *r, unsigned worker)
{
	const struct ragent_worker *rw = r->workers[worker];
	char key[NOTES_KEY_MAX];
	int result = 0;

	for (size_t i = 0; result == 0 && i < rw->listening_count; i++) {
		const struct listening *at = &rw->listening[i];
		passed_key_of_listener(key, at->front->conf->name, at->configured);
		result = notes_add_socket(r->shared.notes, key, worker, listener_fd(at->listener));
	}
	return result;
}

static int note_control(struct ragent *r)
{
	const struct conf_ragent *self = r->shared.self;
	char key[NOTES_KEY_MAX], path[HANDOVER_PATH_MAX];

	if (!r->control)
		return 0;
	int result = notes_add_socket(
		r->shared.notes, passed_key_of_path(key, "control", self->control), 0, control_fd(r->control));
	if (result == 0)
		result = notes_add_socket(r->shared.notes, passed_key_of_path(key, "handover", handover_path(r, path)),
			0, handover_giver_fd(r->giver));
	if (result < 0 || control_address_fd(r->control) < 0)
		return result;
	passed_key_of_listener(key, "control", (const struct sockaddr *)&self->control_address);
	return notes_add_socket(r->shared.notes, key, 0, control_address_fd(r->control));
}

int ragent_note_sockets(struct ragent *r)
{
	if (!r->shared.notes || r->leftovers) /* else they are noted already */
		return 0;
	int result = note_control(r);
	for (unsigned i = 0; result == 0 && i < r->worker_count; i++)
		result = note_listeners(r, i);
	return result;
}

/* Without its keeper RAgent goes on serving, but nothing starts the next one. */
static void look_for_keeper(struct ragent *r)
{
	struct notes *n = r->shared.notes;
	uint32_t keeper = n ? atomic_load(&n->shared->keeper) : 0;

	if (keeper == 0 || (pid_t)keeper == getppid())
		return;
	atomic_store(&n->shared->keeper, 0);
	log_event(LOG_ERROR, NULL, "keeper died", "pid=%u remedy=\"replace this process: ragent --replace\"", keeper);
}

static void ragent_beat(void *ctx)
{
	struct ragent *r = ctx;

	notes_beat(r->shared.notes, 0);
	look_for_keeper(r);
}

int ragent_begin_heartbeat(struct ragent *r)
{
	r->heartbeat = timer_start(r->main, ragent_beat, r, HEARTBEAT_MS, HEARTBEAT_MS);
	return r->heartbeat ? 0 : CSSL_E_NO_MEMORY;
}

/* --- after one that died --- */

int ragent_take_noted(const struct notes *n, struct passed_sockets *out)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < notes_socket_count(n); i++) {
		const struct noted_socket *s = &n->sockets[i];
		if (notes_socket_listens(s))
			result = passed_sockets_add(out, s->key, s->worker, s->fd);
	}
	return result;
}

void ragent_welcome_fresh(struct ragent *r, unsigned worker)
{
	const struct leftovers *l = r->leftovers;

	for (size_t i = worker; l && i < l->fresh_count; i += r->worker_count)
		ragent_worker_welcome(r->workers[worker], l->fresh[i]);
}

static void on_worker_restored(struct worker *w, void *arg)
{
	struct ragent *r = arg;

	if (++r->restored < r->worker_count || r->operations.state != OPERATIONS_RUNNING)
		return;
	ragent_open_control(r);
	ragent_serve(r);
}

static void on_restored(struct connection_home *home)
{
	struct ragent_worker *rw = container_of(home, struct ragent_worker, home);
	struct ragent *r = rw->owner;

	worker_post(r->main, on_worker_restored, r);
}

int ragent_begin_restoring(struct ragent *r, struct ragent_worker *rw)
{
	rw->home.on_restored = on_restored;
	return connection_restore_begin(&rw->home);
}

/* When it has restored all: a process that died before has let no connection go on. */
static void count_fates(const struct ragent *r, uint64_t pause_us)
{
	struct fates *f = &r->shared.notes->shared->fates;

	for (unsigned i = 0; i < r->worker_count; i++)
		atomic_fetch_add(&f->went_on, r->workers[i]->home.went_on);
	atomic_fetch_add(&f->fresh, r->leftovers->fresh_count);
	atomic_fetch_add(&f->pause_us, pause_us);
	atomic_store(&f->last_pause_us, pause_us);
}

static unsigned long long in_us(uint64_t from_ns, uint64_t to_ns)
{
	return (to_ns - from_ns) / 1000;
}

/* The longest pause, and its parts: until the next process begins, until the descriptors are sorted, until the last
 * connection is restored. */
void ragent_say_running_again(const struct ragent *r)
{
	const struct notes *n = r->shared.notes;
	const struct leftovers *l = r->leftovers;
	const uint64_t now_ns = notes_now_ns(), died_ns = atomic_load(&n->shared->died_ns);

	count_fates(r, in_us(died_ns, now_ns));
	log_event(LOG_WARNING, NULL, "running again",
		"after_us=%llu begin_us=%llu sort_us=%llu restore_us=%llu deaths=%llu connections=%u "
		"connections_reset=%zu",
		in_us(died_ns, now_ns), in_us(died_ns, l->began_ns), in_us(l->began_ns, l->ended_ns),
		in_us(l->ended_ns, now_ns), (unsigned long long)notes_deaths(n), admission_total(r->shared.admission),
		l->reset);
}
