/* handover_taker.h: a new RAgent process that takes everything from the running one. It has read its cluster file and
 * keys and has made its workers, parked, before it takes anything.
 */
#ifndef CSSL_RAGENT_HANDOVER_TAKER_H
#define CSSL_RAGENT_HANDOVER_TAKER_H

#include "ragent/connection/connection_handover.h"
#include "ragent/worker/ragent_worker.h"

struct handover_taker;

enum taker_result {
	TAKER_HAS_ALL,
	TAKER_HAS_SOME,    /* the other process goes on with the rest, and with the listening sockets */
	TAKER_HAS_NOTHING, /* the other process goes on as before */
	TAKER_IS_ALONE     /* the other process died; the workers that were not taken begin anew */
};

struct handover_taker_params {
	struct worker *main;
	struct worker *const *threads;
	struct ragent_worker *const *workers;
	unsigned worker_count;
	void (*on_end)(void *ctx, enum taker_result result, const char *cause);
	void *ctx;
};

/* Ask the process that listens at @path what it has, and check that against @shared, whose boot id becomes that one's.
 * Waits for the answer. NULL with @error: there is none, or it cannot be replaced by this one. */
struct handover_taker *handover_taker_create(
	const char *path, struct ragent_shared *shared, char *error, size_t error_cap);
/* Its listening sockets; to be taken out. */
struct passed_sockets *handover_taker_sockets(struct handover_taker *t);
/* Sockets that nobody took out cannot be given up: 0, or CSSL_E_MISMATCH with @error. */
int handover_taker_check_sockets(struct handover_taker *t, char *error, size_t error_cap);

/* Take worker after worker; @p->on_end comes once, from the main loop. The workers' threads run. */
void handover_taker_begin(struct handover_taker *t, const struct handover_taker_params *p);

/* Before the beginning or after the end. May be NULL. @why: the other process is told, unless NULL. */
void handover_taker_destroy(struct handover_taker *t, const char *why);

#endif
