/* keeper.h: the process that stays when RAgent dies. It makes RAgent proper as its child, waits for the child's end,
 * and makes the next one at once. Both share one table of descriptors (clone(2), CLONE_FILES), so that no socket is
 * closed when the child dies: clients that connect meanwhile wait in the accept queue.
 *
 *     FIRST LIFE ---- it never served, and ended ---------------------> the keeper ends with its status
 *         |
 *         +-- it served, and died --> pause --> NEXT LIFE --+
 *         |                             ^                   |
 *         |                             +------ it died ----+
 *         +-- it ended in order ---------------------------------------> the keeper ends with its status
 *
 * The keeper has no event loop, and reads nothing from the network. It touches neither a descriptor of the child nor
 * the child's table of connections. If no child follows a death, the keeper starts a last child, which ends the
 * connections. Only if this last child fails, the keeper ends the connections itself, and does not look at their
 * table. The keeper learns of a death only by waitpid(2). It passes SIGTERM, SIGINT, SIGHUP and SIGCONT on to the
 * child; a signal that comes before the child has begun waits until then.
 */
#pragma once

#include "ragent/keeper/notes.h"

#define KEEPER_TICK_MS 50u

enum keeper_life {
	KEEPER_FIRST_LIFE,
	KEEPER_NEXT_LIFE /* the one before served and died; all its descriptors are still open */
};

struct keeper_params {
	struct notes *notes;
	uint32_t hang_ms; /* a thread of the child may make no progress for so long; then the child is killed */
	/* In the child: run RAgent. Returns the exit status. */
	int (*live)(void *ctx, enum keeper_life life);
	/* In the keeper, once the first child exists: give up privileges. 0 or negative: the keeper ends. */
	int (*settle)(void *ctx);
	/* In the keeper, at every tick. */
	void (*tick)(void *ctx);
	/* Ends the connections that the last child has left, except those that another process has (notes_share()).
	 * The keeper calls it in a process of its own, which shares the descriptors: when a signal ended the last
	 * child, or when the keeper was told to stop and has no child. The keeper kills that process if the numbers
	 * of its threads in the notes stand still for @hang_ms. */
	void (*abandon)(void *ctx);
	/* In the keeper, if there could be no such process, or it failed: FIN would be a forged end (law 8). */
	void (*abandon_without_table)(void *ctx);
	void *ctx;
};

/* Returns in both processes with an exit status, with which the process should end: in the child after it has lived,
 * in the keeper when there is no child any more. If a signal ended the last child, the same signal ends the keeper,
 * and this does not return. Call it before the first thread of the process. */
int keeper_run(const struct keeper_params *p);

/* In the child, on its main thread, when it has handlers for SIGTERM, SIGINT and SIGHUP, and before other threads
 * start. Until then these signals wait. */
void keeper_take_signals(void);

/* How long the keeper waits before the next life, after so many lives in a row that served for less than a second. */
uint32_t keeper_pause_ms(unsigned short_lives);
