/* scheduling.c: where tiers, peers and backends share CPUs, every write wakes somebody. If he interrupts the writer,
 * each record is a turn of its own through all of them; if he waits, he finds what several connections brought. On a
 * CPU that nobody has he starts at once either way.
 */
#include "net/scheduling.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "net/log.h"

void scheduling_take_turns(void)
{
	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	if (sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 }) < 0)
		log_event(LOG_WARNING, NULL, "threads interrupt each other", "cause=%s", strerror(errno));
}
