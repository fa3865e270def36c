/* joining.c: which backups count: a server that was filled becomes one, and markers (marker.h) tell all of them.
 *
 * A server that joins is marked after those that counted before it have answered. If it was marked at once, and they
 * were not, because they fell silent at that moment, then their markers would say that each of them may go on alone,
 * and so would its own one; behind a network that is parted, two gateways would own the queue. A marker that names it
 * before it is complete harms nobody: whoever starts with that waits for it. */
#include "smtpproxy/queue/joining.h"

#include <stdio.h>
#include <string.h>

#include "net/report/log.h"
#include "smtpproxy/queue/queue_core.h"

void joining_mark(struct queue *q)
{
	struct marker *m = &q->shared.marker;

	m->version++;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];

		m->unread &= backup_counts(b) ? ~(UINT64_C(1) << i) : UINT64_MAX;
		snprintf(m->members[i], sizeof m->members[i], "%s", backup_counts(b) ? b->run_id : "");
	}
	for (unsigned i = 0; i < BACKUPS; i++)
		if (backup_counts(&q->backups[i]) && !(q->joining.mask & 1u << i))
			backup_push(&q->backups[i], CHANGE_MARK, NULL);
}

/* A server that was full just now joins when it has answered all, so that it refuses while it does not count yet. */
static bool join_is_filled(const struct backup *b)
{
	const bool careful = b->fill_after_ms && redis_link_clock_ms() < b->fill_after_ms + JOINING_FULL_AGAIN_MS;

	return b->state == BACKUP_FILLING && !b->fill_next && !(careful && b->line.count);
}

/* While no backup is complete, only a member of the last marker may go on alone: its marker tells every gateway that it
 * counts. If another server could, the absent member would not know it, and a gateway that sees only the member would
 * deliver the same messages again. A member that came back as a new process has lost what it held, and counts no more.
 * One that is ours and is being filled is not absent. An operator may order it, and a gateway that is alone misleads
 * nobody: when it starts, it waits for every server (looking.c). */
static bool join_may(const struct queue *q, struct backup *b)
{
	static const char cause[] = "the other one was complete last; an operator has to order the takeover";
	unsigned absent = 0, lost = 0;

	if (queue_counting(q) || q->orders || q->conf.role == QUEUE_ALONE ||
		!strcmp(q->shared.marker.members[b->index], b->run_id))
		return true;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const bool is_absent = q->shared.marker.members[i][0] && !backup_is_live(&q->backups[i]) &&
				       !strcmp(q->shared.marker.members[i], q->backups[i].run_id);

		absent += is_absent;
		lost += is_absent && !backup_answers(&q->backups[i]); /* else nobody shall take over because of it */
	}
	if (lost && b->not_used != cause)
		log_event(LOG_WARNING, NULL, "backup not used alone", "backup=%u cause=\"%s\"", b->index, cause);
	b->not_used = lost ? cause : b->not_used;
	return !absent;
}

/* All that are filled join in one step: a new message is only given to those that have joined. The first marker of each
 * waits for the others, if any counts. A gateway that is alone has no rival. */
void joining_join_filled(struct queue *q)
{
	const bool has_to_wait = queue_counting(q) && q->conf.role != QUEUE_ALONE;
	unsigned may = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		may += join_is_filled(&q->backups[i]) && join_may(q, &q->backups[i]);
	if (!may)
		return;
	for (unsigned i = 0; i < BACKUPS; i++) {
		if (!join_is_filled(&q->backups[i]))
			continue;
		backup_advance(&q->backups[i], BACKUP_MARKING);
		q->joining.mask |= has_to_wait ? 1u << i : 0;
	}
	memcpy(q->joining.members_before, q->shared.marker.members, sizeof q->joining.members_before);
	joining_mark(q);
	q->joining.version = q->shared.marker.version;
}

void joining_tell_ready(struct queue *q)
{
	unsigned in_sync = 0;
	unsigned was = q->ready;

	if (q->state == QUEUE_FLUSHING) /* its owner has closed the listening sockets */
		return;
	for (unsigned i = 0; i < BACKUPS; i++)
		in_sync += q->backups[i].state == BACKUP_IN_SYNC;
	q->ready = q->state == QUEUE_ACTIVE ? in_sync : 0;
	if (!was == !q->ready)
		return;
	if (q->recovery.began_ms)
		q->stats.recovery_ms = (uint64_t)(redis_link_clock_ms() - q->recovery.began_ms);
	q->recovery.began_ms = 0;
	log_event(q->ready ? LOG_INFO : LOG_ERROR, NULL, q->ready ? "queue accepts" : "queue accepts nothing",
		"in_sync=%u", q->ready);
	if (q->ready)
		q->ops->on_ready(q->user);
	else
		q->ops->on_unready(q->user);
}
