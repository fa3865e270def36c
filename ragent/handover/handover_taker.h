/* handover_taker.h: a new RAgent process that takes everything from the running one. Before it takes anything, it has
 * read its cluster file and keys, and has made its workers, parked.
 */
#pragma once

#include "ragent/worker/ragent_worker.h"

struct handover_taker;

enum taker_result {
	TAKER_HAS_ALL,
	TAKER_HAS_SOME,    /* the other process goes on with the rest, and with the listening sockets */
	TAKER_HAS_NOTHING, /* the other process goes on as before */
	TAKER_IS_ALONE     /* the other process died; workers that were not taken begin without connections */
};

struct handover_taker_params {
	struct worker *main;
	struct worker *const *threads;
	struct ragent_worker *const *workers;
	unsigned worker_count;
	void (*on_end)(void *ctx, enum taker_result result, const char *cause);
	void *ctx;
};

/* Ask the process that listens at @path for its offer, and check it against @shared. @shared gets the boot id of that
 * process. Waits for the answer. NULL with @error: no answer, or this process cannot replace it. */
struct handover_taker *handover_taker_create(
	const char *path, struct ragent_shared *shared, char *error, size_t error_cap);
/* The listening sockets of the old process, for the caller to take out. */
struct passed_sockets *handover_taker_sockets(struct handover_taker *t);
/* Check that every socket was taken out, because none may be dropped. 0, or CSSL_E_MISMATCH with @error. */
int handover_taker_check_sockets(struct handover_taker *t, char *error, size_t error_cap);

/* Take worker after worker; @p->on_end comes once, from the main loop. The workers' threads run. */
void handover_taker_begin(struct handover_taker *t, const struct handover_taker_params *p);

/* After the death of such a process, where no other follows it: may the old process still serve the worker that is
 * shared by the notes? From now on it surely does, unless it had given it away already; then the notes say that nothing
 * is shared. */
void handover_taker_died(struct notes *n);

/* Call it before handover_taker_begin() or after on_end. May be NULL. @why: a sentence for the other process, or
 * NULL. */
void handover_taker_destroy(struct handover_taker *t, const char *why);
