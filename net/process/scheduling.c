/* scheduling.c: where tiers, peers and backends share CPUs, every write wakes a process. If that process interrupts
 * the writer, each record passes through all processes alone. If it waits, it finds the records of several
 * connections. On a free CPU it starts at once in both cases.
 */
#include "net/process/scheduling.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/report/log.h"

/* The shortest one that Linux takes. It is no limit: of those that wait, a thread with a short slice is chosen sooner.
 */
#define SHORT_SLICE_NS UINT64_C(100000)

void scheduling_take_turns(void)
{
	if (sched_getscheduler(0) != SCHED_OTHER)
		return;
	if (sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 }) < 0)
		log_event(LOG_WARNING, NULL, "scheduling policy not set",
			"cause=%s effect=\"threads interrupt each other, and each turn passes fewer records\"",
			strerror(errno));
}

/* sched_setattr(2), for which older C libraries have neither a struct nor a function. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static _Thread_local enum { CALM, HURRIES } pace;

/* If this thread has the policy @from. It keeps its nice value. 0, or -1: it goes on as it was. */
static int change_policy(int from, int to, uint64_t slice_ns)
{
	struct attributes a = { 0 };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) < 0 || a.policy != (uint32_t)from)
		return -1;
	a.size = sizeof a;
	a.policy = (uint32_t)to;
	a.runtime_ns = slice_ns;
	return (int)syscall(SYS_sched_setattr, 0, &a, 0);
}

void scheduling_hurry(void)
{
	if (pace == CALM && change_policy(SCHED_BATCH, SCHED_OTHER, SHORT_SLICE_NS) == 0)
		pace = HURRIES;
}

void scheduling_calm(void)
{
	if (pace == HURRIES)
		change_policy(SCHED_OTHER, SCHED_BATCH, 0);
	pace = CALM;
}
