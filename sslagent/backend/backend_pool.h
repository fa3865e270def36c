/* backend_pool.h: the idle backend connections of a worker, for each backend of the cluster file and each service.
 * Conversations at a checkpoint leave theirs here (listeners' backends with `reuse: on`), and later ones take them, the
 * most recently used first. An idle connection ends after a while, or when the backend ends it.
 */
#pragma once

#include "conf/conf.h"

struct backend;
struct worker;

/* For each backend, service and worker. With more requests under way than that, some connections are closed and
 * opened again all the time, so it is more than a worker usually has under way. They take 0.6 MB at most. */
#define BACKEND_POOL_IDLE_MAX 1024u
#define BACKEND_POOL_IDLE_MS  20000u

struct backend_pool;

struct backend_pool *backend_pool_create(struct worker *w, const struct conf *conf);
/* Closes the idle connections. The memory is freed when their handles are closed. */
void backend_pool_destroy(struct backend_pool *p);

/* An idle connection to that backend that had conversations of @service only, without a user. It has sent nothing and
 * has not ended. NULL: there is none. */
struct backend *backend_pool_get(struct backend_pool *p, const struct conf_backend *conf, enum conf_service service);
/* Takes over an open, quiet connection. Closes it if the pool is full. */
void backend_pool_put(struct backend_pool *p, struct backend *b, enum conf_service service);
