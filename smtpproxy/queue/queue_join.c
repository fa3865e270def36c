/* queue_join.c: which backups count: a server that was filled becomes one, and markers (marker.h) tell all of them.
 *
 * A server that joins is marked after those that counted before it have answered. If it was marked at once, and they
 * were not, because they fell silent at that moment, then their markers would say that each of them may go on alone,
 * and so would its own one; behind a network that is parted, two gateways would own the queue. A marker that names it
 * before it is complete harms nobody: whoever starts with that waits for it. */
#include "smtpproxy/queue/queue_inside.h"

#include <stdio.h>
#include <string.h>

#include "net/log.h"

void queue_mark(struct queue *q)
{
	struct marker *m = &q->shared.marker;

	m->version++;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];

		m->unread &= backup_counts(b) ? ~(UINT64_C(1) << i) : UINT64_MAX;
		snprintf(m->members[i], sizeof m->members[i], "%s", backup_counts(b) ? b->run_id : "");
	}
	for (unsigned i = 0; i < BACKUPS; i++)
		if (backup_counts(&q->backups[i]) && !(q->joining & 1u << i))
			backup_push(&q->backups[i], CHANGE_MARK, NULL);
}

/* A server that was full just now joins when it has answered all, so that it refuses while it does not count yet. */
static bool is_filled(const struct backup *b)
{
	const bool careful = b->fill_after_ms && redis_link_clock_ms() < b->fill_after_ms + QUEUE_FILL_AGAIN_MS;

	return b->state == BACKUP_FILLING && !b->fill_next && !(careful && b->line.count);
}

/* While no backup is complete, only a member of the last marker may go on alone: its marker tells every gateway that it
 * counts. If another server could, the absent member would not know it, and a gateway that sees only the member would
 * deliver the same messages again. A member that came back as a new process has lost what it held, and counts no more.
 * One that is ours and is being filled is not absent. An operator may order it, and a gateway that is alone misleads
 * nobody: when it starts, it waits for every server (trust_of). */
static bool may_join(const struct queue *q, struct backup *b)
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
void queue_join_filled(struct queue *q)
{
	const bool has_to_wait = queue_counting(q) && q->conf.role != QUEUE_ALONE;
	unsigned may = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		may += is_filled(&q->backups[i]) && may_join(q, &q->backups[i]);
	if (!may)
		return;
	for (unsigned i = 0; i < BACKUPS; i++) {
		if (!is_filled(&q->backups[i]))
			continue;
		backup_advance(&q->backups[i], BACKUP_MARKING);
		q->joining |= has_to_wait ? 1u << i : 0;
	}
	memcpy(q->members_before, q->shared.marker.members, sizeof q->members_before);
	queue_mark(q);
	q->join_version = q->shared.marker.version;
}
