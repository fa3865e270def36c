/* handover_worker.h: packs the whole state of one worker of RAgent into messages, and unpacks them to a parked worker
 * of the new process. It opens no socket and does not wait; the caller carries the messages.
 */
#pragma once

#include "ragent/connection/revival/revival.h"
#include "ragent/handover/handover_message.h"
#include "ragent/worker/ragent_worker.h"

/* Returns 0 when the other side has taken @m; negative ends the handover. */
typedef int handover_send(void *ctx, const struct handover_message *m);

/* Call it on the worker's thread, while no callback of its connections and links runs. After any
 * result the worker stands still, and the loop must not turn before the caller calls resume, let_go or go_on. 0: the
 * other side has taken everything. Negative: @send's result, CSSL_E_NO_MEMORY, or the error of a broken link. */
int handover_worker_pack(struct ragent_worker *rw, handover_send *send, void *ctx);

/* The handover failed: the worker goes on. */
void handover_worker_resume(struct ragent_worker *rw);
/* Another process has the worker's state: it took it, or it keeps what was unpacked here. Drop it without any message;
 * the worker is parked. */
void handover_worker_let_go(struct ragent_worker *rw);

/* Unpack one message to a parked worker, in the order of sending; takes the descriptors out. 0, or negative: call
 * handover_worker_let_go(). */
int handover_worker_unpack(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m);
/* This process has everything: the worker runs. */
void handover_worker_go_on(struct ragent_worker *rw);
