/* handover_worker.h: everything one worker of RAgent has, as messages, and a parked worker of the new process that
 * takes them. No sockets of its own and no waiting: where the messages go is the caller's business.
 */
#ifndef CSSL_RAGENT_HANDOVER_WORKER_H
#define CSSL_RAGENT_HANDOVER_WORKER_H

#include "ragent/connection/connection_handover.h"
#include "ragent/handover/handover_message.h"
#include "ragent/worker/ragent_worker.h"

/* Returns 0 when the other side has taken @m; negative ends the handover. */
typedef int handover_send(void *ctx, const struct handover_message *m);

/* In @format. On the worker's thread, while no callback of its connections and links runs. Whatever the result, the
 * worker stands still afterwards and the loop must not turn before one of the three below was called. 0: the other side
 * has taken everything. Negative: @send's result, CSSL_E_NO_MEMORY, or a link that is broken. */
int handover_worker_pack(struct ragent_worker *rw, unsigned format, handover_send *send, void *ctx);

/* It did not work out: the worker goes on. */
void handover_worker_resume(struct ragent_worker *rw);
/* All is another process's now, or what was unpacked stays with the other process after all: forget it without a word;
 * the worker is parked. */
void handover_worker_let_go(struct ragent_worker *rw);

/* One message, in the order in which they were sent, to a parked worker; descriptors are taken out. 0, or negative:
 * handover_worker_let_go() is due. */
int handover_worker_unpack(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m);
/* All of it is ours: the worker runs. */
void handover_worker_go_on(struct ragent_worker *rw);

#endif
