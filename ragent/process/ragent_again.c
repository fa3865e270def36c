/* ragent_again.c: the process after one that died. It notes its listening sockets for the next process, and takes
 * those that the one before noted. Both share the descriptors, so a number in the notes is a descriptor here, too.
 */
#include <unistd.h>

#include "net/container_of.h"
#include "net/log.h"
#include "proto/error.h"
#include "ragent/connection/connection_home.h"
#include "ragent/process/ragent_internal.h"

#define HEARTBEAT_MS 200u

/* --- for the next one --- */

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
		result = notes_add_socket(r->shared.notes,
			passed_key_of_path(key, "handover", ragent_handover_path(r, path)), 0,
			handover_giver_fd(r->giver));
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

static void beat(void *ctx)
{
	struct ragent *r = ctx;

	notes_beat(r->shared.notes, 0);
	look_for_keeper(r);
}

int ragent_begin_heartbeat(struct ragent *r)
{
	r->heartbeat = timer_start(r->main, beat, r, HEARTBEAT_MS, HEARTBEAT_MS);
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
