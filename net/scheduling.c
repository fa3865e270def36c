/* scheduling.c: where tiers, peers and backends share CPUs, every write wakes a process. If that process interrupts
 * the writer, each record passes through all processes alone. If it waits, it finds the records of several
 * connections. On a free CPU it starts at once in both cases.
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
		log_event(LOG_WARNING, NULL, "scheduling policy not set",
			"cause=%s effect=\"threads interrupt each other, and each turn passes fewer records\"",
			strerror(errno));
}
