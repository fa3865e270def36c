/* fault.h: named fault points, in test builds only (meson -Dtest_points=true). In other builds they cost nothing.
 *
 * $CSSL_FAULTS names a file of rules. A test replaces it by rename(2), so that no process reads half of it. Each
 * process looks at it every 20 ms and reads it again after a change. The first matching rule counts. One rule a line, #
 * begins a comment: `POINT ACTION [ARG] [on NODE] [peer NODE] [after N] [times N]`
 *
 *     udp.send drop 0.2                  with that probability; also duplicate, reorder
 *     link.write delay 50                milliseconds
 *     link.read cut                      the connection is cut
 *     peer.write drop on a1 peer a2      bytes wait as long as the rule is there, as if the network lost them
 *     link.part drop on a1               the same, after half of a large output was written
 *     link.bell drop on a1               bytes are in shared memory, but the reader is not woken
 *     clock offset -3600                 seconds added to the wall clock
 *     handshake.before_finished fail     fail there; stop, kill: SIGSTOP, SIGKILL to the process itself;
 *                                        cut: the link is lost before the output of this turn is written
 *
 * after N: the rule lets the first N hits pass; times N: it then acts N times. Each process counts for itself, from 0
 * after each change of the file. fault.c has the table of all points; a process ends at a rule with an unknown point.
 */
#pragma once

#include <stdint.h>

enum fault_action {
	FAULT_NONE,
	FAULT_DROP,
	FAULT_DELAY,
	FAULT_DUPLICATE,
	FAULT_REORDER,
	FAULT_CUT,
	FAULT_OFFSET,
	FAULT_FAIL
};

#ifdef CSSL_TEST_POINTS
/* The action for @point now; kill and stop happen inside. @peer: the name of the other side, or NULL; a rule with a
 * peer matches only that name. *arg (NULL: not wanted): milliseconds, or seconds as the bits of an int64_t. Cheap while
 * there are no rules. */
enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg);
void fault_start(const char *node); /* read $CSSL_FAULTS, and start a thread that watches it */
void fault_stop(void);
int fault_active(void);       /* are there any rules? */
const char *fault_node(void); /* as given to fault_start(), "" before */
#else
static inline enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg)
{
	return FAULT_NONE;
}
#define fault_start(node) ((void)(node))
#define fault_stop()      ((void)0)
#define fault_active()    0
#endif
