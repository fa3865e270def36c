/* backend_pool.c: idle backend connections, one list for each backend and service. An idle connection that sends data
 * or ends is closed. */
#include <stdlib.h>

#include "net/container_of.h"
#include "net/timer.h"
#include "sslagent/counters.h"
#include "sslagent/backend/backend_pool.h"

struct idle {
	struct idle *next;
	struct idle_list *list;
	struct backend *backend;
	struct deadline deadline;
};

struct idle_list {
	struct backend_pool *pool;
	struct idle *first;
	unsigned count;
};

struct backend_pool {
	struct worker *worker;
	const struct conf *conf;
	struct idle *spare; /* for reuse: each request needs one */
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

	for (struct idle **at = &i->list->first; *at; at = &(*at)->next) {
		if (*at == i) {
			*at = i->next;
			break;
		}
	}
	i->list->count--;
	deadline_cancel(&i->deadline);
	i->next = i->list->pool->spare;
	i->list->pool->spare = i;
	return b;
}

static size_t on_data(void *user, uint8_t *data, size_t len)
{
	backend_reset(idle_remove(user));
	return len;
}

static void on_written(void *user, size_t len)
{
}

static void on_end(void *user, enum stream_end end, int uv_error)
{
	backend_close(idle_remove(user));
}

static const struct backend_user_ops idle_ops = { .on_data = on_data, .on_written = on_written, .on_end = on_end };

static void on_idle_too_long(struct deadline *d)
{
	struct idle *i = container_of(d, struct idle, deadline);

	backend_close(idle_remove(i));
}

struct backend *backend_pool_get(struct backend_pool *p, const struct conf_backend *conf, enum conf_service service)
{
	struct idle_list *list = list_of(p, conf, service);

	while (list->first) {
		struct backend *b = idle_remove(list->first);
		if (backend_is_quiet(b))
			return b;
		/* the loop has not reported it yet: the backend ended, or sent an answer that nobody asked for */
		count(COUNT_BACKEND_NOT_QUIET);
		backend_reset(b);
	}
	return NULL;
}

static struct idle *idle_take(struct backend_pool *p)
{
	struct idle *i = p->spare;

	if (!i)
		return calloc(1, sizeof *i);
	p->spare = i->next;
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
	i->list = list;
	i->next = list->first;
	list->first = i;
	list->count++;
	i->deadline.fn = on_idle_too_long;
	deadline_set(p->worker, &i->deadline, BACKEND_POOL_IDLE_MS);
	backend_bind(b, &idle_ops, i);
}

void backend_pool_destroy(struct backend_pool *p)
{
	if (!p)
		return;
	for (size_t l = 0; l < p->list_count; l++) {
		while (p->lists[l].first)
			backend_close(idle_remove(p->lists[l].first));
	}
	while (p->spare) {
		struct idle *i = p->spare;
		p->spare = i->next;
		free(i);
	}
	free(p);
}
