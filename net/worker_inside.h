/* worker_inside.h: what the other files of net/ use of a worker. */
#ifndef CSSL_NET_WORKER_INSIDE_H
#define CSSL_NET_WORKER_INSIDE_H

#include "net/buffers.h"
#include "net/worker.h"

/* A handle was initialised on the loop; its close callback ran. The worker ends at none. */
void worker_hold(struct worker *w);
void worker_release(struct worker *w);

/* WORKER_READ_BUFFER_LEN bytes, good until the callback that reads into them returns. */
uint8_t *worker_read_buffer(struct worker *w);

struct buffers *worker_buffers(struct worker *w);

/* A deadline was set: let the loop wake in time. */
struct wheel *worker_wheel(struct worker *w);
void worker_wheel_changed(struct worker *w);

#endif
