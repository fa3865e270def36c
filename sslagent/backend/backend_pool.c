/* backend_pool.c: idle backend connections, one list for each backend and service. An idle connection that sends data
 * or ends is closed. */
#include <stdlib.h>
#include <sys/queue.h>

#include "net/loop/wheel.h"
#include "net/memory/container_of.h"
#include "sslagent/backend/backend.h"
#include "sslagent/backend/backend_pool.h"
#include "sslagent/counters.h"

struct idle {
	LIST_ENTRY(idle) next;
	struct idle_list *list;
	struct backend *backend;
	uint32_t quiet_in; /* the last turn of the loop in which the kernel had nothing from it */
	struct deadline deadline;
};

struct idle_list {
	struct backend_pool *pool;
	LIST_HEAD(, idle) idle;
	unsigned count;
	uint32_t turn;                /* of the loop, to which `taken` belongs */
	unsigned taken, taken_before; /* connections taken in that turn, and in the turn before it */
};

struct backend_pool {
	struct worker *worker;
	const struct conf *conf;
	LIST_HEAD(, idle) spare; /* for reuse: each request needs one */
	size_t list_count;
	struct idle_list lists[];
};

struct backend_pool *backend_pool_create(struct worker *w, const struct conf *conf)
{
	const size_t list_count = conf->backend_count * CONF_SERVICE_COUNT;
	struct backend_pool *p = calloc(1, sizeof *p + list_count * sizeof *p->lists);

	if (!p)
		return NULL;
	p->worker = w;
	p->conf = conf;
	p->list_count = list_count;
	for (size_t i = 0; i < list_count; i++)
		p->lists[i].pool = p;
	return p;
}

static struct idle_list *list_of(struct backend_pool *p, const struct conf_backend *conf, enum conf_service service)
{
	return &p->lists[(size_t)(conf - p->conf->backends) * CONF_SERVICE_COUNT + service];
}

/* Take @i out of its list. The backend connection belongs to the caller. */
static struct backend *idle_remove(struct idle *i)
{
	struct backend *b = i->backend;

	LIST_REMOVE(i, next);
	i->list->count--;
	deadline_cancel(&i->deadline);
	LIST_INSERT_HEAD(&i->list->pool->spare, i, next);
	return b;
}

static size_t idle_on_data(void *user, uint8_t *data, size_t len)
{
	backend_reset(idle_remove(user));
	return len;
}

static void idle_on_written(void *user, size_t len)
{
}

static void idle_on_end(void *user, enum stream_end end, int uv_error)
{
	backend_close(idle_remove(user));
}

static const struct backend_user_ops idle_ops = {
	.on_data = idle_on_data, .on_written = idle_on_written, .on_end = idle_on_end
};

static void on_idle_too_long(struct deadline *d)
{
	struct idle *i = container_of(d, struct idle, deadline);

	backend_close(idle_remove(i));
}

static void idle_begin_turn(struct idle_list *list, uint32_t turn)
{
	if (list->turn == turn)
		return;
	list->taken_before = list->turn + 1 == turn ? list->taken : 0;
	list->taken = 0;
	list->turn = turn;
}

/* Guess how many connections this turn of the loop will still take: as many as the turn before took in all, or as many
 * again as this turn took already. */
static unsigned idle_wanted(const struct idle_list *list)
{
	const unsigned n = list->taken_before > list->taken ? list->taken_before - list->taken : list->taken + 1;

	return n < BACKENDS_ASKED_MAX ? n : BACKENDS_ASKED_MAX;
}

/* Ask the kernel whether the first connection, and a few behind it, are quiet. A backend may have closed a connection
 * or sent bytes that nobody asked for, and the loop may not have reported it yet: such a connection is closed. One call
 * asks for all that a turn takes, because a call for each costs 2 % of a small request. */
static void idle_ask(struct idle_list *list)
{
	struct idle *asked[BACKENDS_ASKED_MAX];
	struct backend *backends[BACKENDS_ASKED_MAX];
	const unsigned most = idle_wanted(list);
	uint64_t quiet;
	unsigned n = 1;

	asked[0] = LIST_FIRST(&list->idle);
	for (struct idle *i = LIST_NEXT(asked[0], next); i && n < most; i = LIST_NEXT(i, next))
		if (i->quiet_in != list->turn)
			asked[n++] = i;
	backends[0] = asked[0]->backend;
	for (unsigned k = 1; k < n; k++)
		backends[k] = asked[k]->backend;
	backends_are_quiet(backends, n, &quiet);
	for (unsigned k = 0; k < n; k++) {
		if ((quiet >> k) & 1) {
			asked[k]->quiet_in = list->turn;
			continue;
		}
		count(COUNT_BACKEND_NOT_QUIET);
		backend_reset(idle_remove(asked[k]));
	}
}

struct backend *backend_pool_get(struct backend_pool *p, const struct conf_backend *conf, enum conf_service service)
{
	struct idle_list *list = list_of(p, conf, service);

	idle_begin_turn(list, worker_turn(p->worker));
	while (!LIST_EMPTY(&list->idle) && LIST_FIRST(&list->idle)->quiet_in != list->turn)
		idle_ask(list);
	if (LIST_EMPTY(&list->idle))
		return NULL;
	list->taken++;
	return idle_remove(LIST_FIRST(&list->idle));
}

static struct idle *idle_take(struct backend_pool *p)
{
	struct idle *i = LIST_FIRST(&p->spare);

	if (!i)
		return calloc(1, sizeof *i);
	LIST_REMOVE(i, next);
	*i = (struct idle){ 0 };
	return i;
}

void backend_pool_put(struct backend_pool *p, struct backend *b, enum conf_service service)
{
	struct idle_list *list = list_of(p, backend_conf(b), service);
	struct idle *i = list->count < BACKEND_POOL_IDLE_MAX ? idle_take(p) : NULL;

	if (!i) {
		backend_close(b);
		return;
	}
	i->backend = b;
	i->quiet_in = worker_turn(p->worker) - 1; /* ask in any turn */
	i->list = list;
	LIST_INSERT_HEAD(&list->idle, i, next);
	list->count++;
	i->deadline.fn = on_idle_too_long;
	deadline_set(p->worker, &i->deadline, BACKEND_POOL_IDLE_MS);
	backend_bind(b, &idle_ops, i);
}

void backend_pool_destroy(struct backend_pool *p)
{
	if (!p)
		return;
	for (size_t l = 0; l < p->list_count; l++)
		while (!LIST_EMPTY(&p->lists[l].idle))
			backend_close(idle_remove(LIST_FIRST(&p->lists[l].idle)));
	for (struct idle *i; (i = LIST_FIRST(&p->spare)) != NULL;) {
		LIST_REMOVE(i, next);
		free(i);
	}
	free(p);
}
