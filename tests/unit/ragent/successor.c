/* successor.c: each successor has duplicates of the listening sockets of the one before. */
#include "tests/unit/ragent/successor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "net/limits/admission.h"
#include "net/loop/listener.h"
#include "proto/error.h"

/* Those of this test, and the worker with which it began. */
static struct successor *alive;
static struct ragent_worker *first;

static void on_closed(struct ragent_worker *rw)
{
}

static void make_map(struct successor *s)
{
	s->map.agent_count = agents_count(s->shared.agents);
	for (unsigned i = 0; i < s->map.agent_count; i++)
		s->map.agents[i] = (int)i;
	s->map.front_count = (unsigned)s->shared.front_count;
	s->map.fronts = calloc(s->map.front_count, sizeof(struct front *));
	for (unsigned i = 0; i < s->map.front_count; i++)
		s->map.fronts[i] = &s->shared.fronts[i];
}

static void destroy(struct successor *s)
{
	ragent_worker_stop(s->rw, 0, on_closed);
	ragent_worker_stop(s->rw, 0, on_closed);
	wait_until(s->rw->state == RAGENT_WORKER_CLOSED);
	ck_assert_uint_eq(admission_total(s->shared.admission), 0);
	for (size_t i = 0; i < s->shared.front_count; i++) {
		ck_assert_uint_eq(atomic_load(&s->shared.fronts[i].connections), 0);
		front_clear(&s->shared.fronts[i]);
	}
	ragent_worker_destroy(s->rw);
	free(s->shared.fronts);
	admission_destroy(s->shared.admission);
	agents_destroy(s->shared.agents);
	free(s->map.fronts);
	free(s);
}

static void destroy_all(void)
{
	while (alive) {
		struct successor *s = alive;
		alive = s->before;
		destroy(s);
	}
	d.rw = first;
}

static void listen_too(struct successor *s)
{
	struct passed_sockets passed = { 0 };
	char key[NOTES_KEY_MAX], error[256];

	for (size_t i = 0; i < d.rw->listening_count; i++) {
		const struct listening *at = &d.rw->listening[i];
		passed_key_of_listener(key, at->front->conf->name, at->configured);
		int fd = fcntl(listener_fd(at->listener), F_DUPFD_CLOEXEC, 3);
		ck_assert_int_eq(passed_sockets_add(&passed, key, 0, fd), 0);
	}
	ck_assert_msg(ragent_worker_listen(s->rw, &passed, error, sizeof error) == 0, "%s", error);
	ck_assert_ptr_null(passed_sockets_left(&passed));
	passed_sockets_clear(&passed);
}

struct successor *successor_create(void)
{
	struct successor *s = calloc(1, sizeof *s);

	if (!alive)
		first = d.rw;
	s->before = alive;
	alive = s;
	d.before_stop = destroy_all;
	s->shared = *d.rw->home.shared;
	s->shared.agents = agents_create(d.conf);
	s->shared.admission =
		admission_create(1, 1); /* limits of its own, which nobody that comes along is refused by */
	s->shared.fronts = calloc(d.conf->listener_count, sizeof *s->shared.fronts);
	for (size_t i = 0; i < s->shared.front_count; i++)
		ck_assert_int_eq(front_init(&s->shared.fronts[i], i, d.conf), 0);
	make_map(s);
	s->rw = ragent_worker_create(&s->shared, w);
	ck_assert_ptr_nonnull(s->rw);
	listen_too(s);
	ck_assert_int_eq(ragent_worker_start(s->rw), 0);
	ragent_worker_park(s->rw);
	return s;
}

int successor_hears(void *ctx, const struct handover_message *m)
{
	struct successor *s = ctx;
	struct handover_message copy = { .fds_are = HANDOVER_FDS_OWNED };

	if (++s->messages == s->refuse_at)
		return CSSL_E_SYSTEM;
	handover_message_begin(&copy, m->type);
	copy.fds_are = HANDOVER_FDS_OWNED;
	ck_assert_int_eq(handover_message_put(&copy, m->data, m->len), 0);
	for (unsigned i = 0; i < m->fd_count; i++)
		handover_message_put_fd(&copy, fcntl(m->fds[i], F_DUPFD_CLOEXEC, 3));
	int r = handover_worker_unpack(s->rw, &s->map, &copy);
	handover_message_clear(&copy);
	return r;
}

void successor_commit(struct successor *s)
{
	handover_worker_let_go(d.rw);
	handover_worker_go_on(s->rw);
}

void successor_takes_over(void)
{
	struct successor *s = successor_create();

	ck_assert_int_eq(handover_worker_pack(d.rw, successor_hears, s), 0);
	successor_commit(s);
	struct ragent_worker *old = d.rw;
	d.rw = s->rw;
	wait_until(!old->home.connections);
	ck_assert_uint_eq(counter_get(&old->home.counters.connections_open), 0);
	ck_assert_uint_eq(counter_get(&old->home.counters.links_up), 0);
}
