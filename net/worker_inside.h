/* worker_inside.h: the part of a worker that only net/ uses. */
#ifndef CSSL_NET_WORKER_INSIDE_H
#define CSSL_NET_WORKER_INSIDE_H

#include "net/worker.h"

/* Count a handle that was initialised on the loop; uncount it in its close callback. The worker ends when none is left.
 */
void worker_hold(struct worker *w);
void worker_release(struct worker *w);

/* WORKER_READ_BUFFER_LEN bytes, good until the callback that reads into them returns. */
uint8_t *worker_read_buffer(struct worker *w);

/* After a deadline was set: let the loop wake in time. */
struct wheel *worker_wheel(struct worker *w);
void worker_wheel_changed(struct worker *w);

#endif
