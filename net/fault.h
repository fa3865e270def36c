/* fault.h: named fault points, compiled into test builds only (meson -Dtest_points=true); otherwise they cost nothing.
 *
 * The test writes rules to the file that $CSSL_FAULTS names; every process re-reads it when it changes (checked every 20 ms).
 * One rule a line: `POINT ACTION [ARG] [on NODE] [peer NODE]`
 *     udp.send drop 0.2            with that probability        link.write delay 50     milliseconds
 *     udp.send duplicate 0.1       udp.send reorder 0.1          link.read cut           the connection is cut
 *     clock offset 3600            seconds added to the wall clock
 *     handshake.before_finished fail | stop | kill               fail at a named state; raise SIGSTOP / SIGKILL on itself
 * Points are listed in fault.c, one table; an unknown point in a rule is a fatal error of the test build.
 */
#ifndef CSSL_NET_FAULT_H
#define CSSL_NET_FAULT_H

#include <stdint.h>

enum fault_action { FAULT_NONE, FAULT_DROP, FAULT_DELAY, FAULT_DUPLICATE, FAULT_REORDER, FAULT_CUT, FAULT_OFFSET, FAULT_FAIL };

#ifdef CSSL_TEST_POINTS
/* What to do at @point now (KILL and STOP are done inside). @peer: name of the other side or NULL. *arg: milliseconds or
 * seconds. */
enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg);
void fault_start(const char *node); /* reads $CSSL_FAULTS; a thread of its own watches the file */
void fault_stop(void);
#else
static inline enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg)
{
	(void)point, (void)peer, (void)arg;
	return FAULT_NONE;
}
static inline void fault_start(const char *node) { (void)node; }
static inline void fault_stop(void) {}
#endif

#endif
