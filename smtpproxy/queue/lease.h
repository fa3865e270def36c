/* lease.h: the time for which a gateway may assume that no other has taken its queue over. All times are
 * milliseconds of CLOCK_BOOTTIME, which also counts while the process or the machine is stopped.
 *
 * The owner renews the lease at the backups. A renewal holds from the moment when its request was sent. A standby
 * that has claimed the backups waits one whole lease before it delivers. The backups refuse the old owner's renewals
 * since the claim, so its lease has ended by then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lease {
	int64_t len_ms;   /* all else is zero at first */
	int64_t from_ms;  /* another owner's lease may last until then */
	int64_t until_ms; /* 0: never renewed, or dropped */
};

/* A backup answered a request sent at @sent_ms under our token. Answers may come out of order. */
static inline void lease_renewed(struct lease *l, int64_t sent_ms)
{
	if (sent_ms + l->len_ms > l->until_ms)
		l->until_ms = sent_ms + l->len_ms;
}

/* A claim was answered at @now_ms, and there had been another owner. */
static inline void lease_wait_out(struct lease *l, int64_t now_ms)
{
	if (now_ms + l->len_ms > l->from_ms)
		l->from_ms = now_ms + l->len_ms;
}

static inline bool lease_holds(const struct lease *l, int64_t now_ms)
{
	return now_ms >= l->from_ms && now_ms < l->until_ms;
}
