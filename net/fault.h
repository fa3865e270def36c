/* fault.h: named fault points, compiled into test builds only (meson -Dtest_points=true); otherwise they cost nothing.
 *
 * The test puts rules (by rename, so that nobody reads half of them) into the file that $CSSL_FAULTS names; every
 * process re-reads it when it changes (looked at every 20 ms). The first rule that matches counts. One rule a line, #
 * begins a comment: `POINT ACTION [ARG] [on NODE] [peer NODE] [after N] [times N]`
 *
 *     udp.send drop 0.2                  with that probability; duplicate and reorder likewise
 *     link.write delay 50                milliseconds
 *     link.read cut                      the connection is cut
 *     peer.write drop on a1 peer a2      a stream's bytes wait while the rule stands, as if the network swallowed them
 *     link.part drop on a1               likewise, when half of a large output has gone
 *     link.bell drop on a1               bytes are in the shared memory, and the reader is not woken
 *     clock offset -3600                 seconds added to the wall clock
 *     handshake.before_finished fail     at a named state; stop, kill: SIGSTOP, SIGKILL on itself;
 *                                        cut: the link is lost before this loop turn's output leaves
 *
 * after N: the first N hits pass; times N: used up after N more; counted per process and anew at each change.
 * Points are listed in fault.c, one table; an unknown point in a rule is a fatal error of the test build.
 */
#ifndef CSSL_NET_FAULT_H
#define CSSL_NET_FAULT_H

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
/* What to do at @point now (kill and stop are done inside). @peer: name of the other side or NULL; a rule with a peer
 * matches only that name. @arg may be NULL; milliseconds, or seconds as the bits of an int64_t. Cheap while there are
 * no rules. */
enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg);
void fault_start(const char *node); /* reads $CSSL_FAULTS; a thread of its own watches the file */
void fault_stop(void);
int fault_active(void);       /* are there any rules? */
const char *fault_node(void); /* as given to fault_start(), "" before */
#else
static inline enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg)
{
	(void)point, (void)peer, (void)arg;
	return FAULT_NONE;
}
static inline void fault_start(const char *node)
{
	(void)node;
}
static inline void fault_stop(void)
{
}
static inline int fault_active(void)
{
	return 0;
}
#endif

#endif
