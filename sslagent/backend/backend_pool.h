/* backend_pool.h: a worker's idle backend connections, per backend of the cluster file, for conversations to come
 * (listeners' backends with `reuse: on`, at checkpoints). The most recently used goes first; idle ones
 * end after a while or when the backend ends them.
 */
#ifndef CSSL_SSLAGENT_BACKEND_POOL_H
#define CSSL_SSLAGENT_BACKEND_POOL_H

#include "sslagent/backend/backend.h"

#define BACKEND_POOL_IDLE_MAX 64u /* per backend and worker */
#define BACKEND_POOL_IDLE_MS  20000u

struct backend_pool;

struct backend_pool *backend_pool_create(struct worker *w, const struct conf *conf);
/* Closes the idle ones; their memory goes when their handles closed. */
void backend_pool_destroy(struct backend_pool *p);

/* An idle connection to that backend, unbound, that has said nothing and has not ended; NULL: none. */
struct backend *backend_pool_get(struct backend_pool *p, const struct conf_backend *conf);
/* Takes over an open, quiet connection; closes it when there are enough. */
void backend_pool_put(struct backend_pool *p, struct backend *b);

#endif
