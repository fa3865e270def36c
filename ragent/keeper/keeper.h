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
 * The keeper has no event loop, reads nothing from the network, and touches no descriptor of the child, nor its table
 * of connections: what has to be done there when no child follows is done by a last one. Only if that one fails, the
 * keeper ends the connections itself, without a look at their table. It learns of a death only by waitpid(2). SIGTERM,
 * SIGINT, SIGHUP and SIGCONT go on to the child, each at the latest when it has begun.
 */
#ifndef CSSL_RAGENT_KEEPER_H
#define CSSL_RAGENT_KEEPER_H

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
	/* In a process of its own that shares the descriptors, when a signal ended the last child, or the keeper was
	 * told to stop and has no child: what the last child left is nobody's, but for what another process has
	 * (notes_share()). If its threads' numbers in the notes stand still for @hang_ms, it is killed.
	 */
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

#endif
