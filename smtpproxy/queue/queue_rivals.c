/* queue_rivals.c: another gateway counts higher on a server. Either it took the queue over, and this one ends; or it
 * lacks what is in this memory, and an operator has to decide. */
#include "smtpproxy/queue/queue_inside.h"

#include <string.h>

#include "net/log.h"
#include "net/log_pace.h"

void queue_depose(struct queue *q, uint64_t epoch)
{
	if (q->state == QUEUE_DEPOSED || q->state == QUEUE_STOPPING || q->state == QUEUE_WATCHING)
		return;
	log_event(LOG_ERROR, NULL, "another gateway owns the queue", "epoch=%llu", (unsigned long long)epoch);
	if (q->state == QUEUE_FLUSHING) {
		queue_move(q, QUEUE_STOPPING);
		return;
	}
	q->lease.until_ms = 0;
	queue_move(q, QUEUE_DEPOSED);
	for (unsigned i = 0; i < BACKUPS; i++)
		backup_give_up(&q->backups[i], "another gateway owns the queue");
	queue_tell_ready(q);
	queue_fail_waiting(q);
	q->ops->on_deposed(q->user);
}

/* The highest version that any server is known to have: those that have it are complete. */
static uint64_t complete_version(const struct queue *q)
{
	uint64_t version = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->shared.marker.left[i].version > version)
			version = q->shared.marker.left[i].version;
	return version;
}

/* Whoever wrote the marker @m has read a server that was complete, or waits for it. It counts on from there: a lower
 * version was written before. */
static int marker_knows(const struct queue *q, const struct marker *m)
{
	const uint64_t version = complete_version(q);

	for (unsigned i = 0; i < BACKUPS && m->version > version; i++) {
		const struct marker_left *ours = &q->shared.marker.left[i];

		if (!ours->run_id[0] || ours->version < version)
			continue;
		if (!strcmp(m->members[i], ours->run_id) || !strcmp(m->apart[i], ours->run_id) ||
			(!strcmp(m->left[i].run_id, ours->run_id) && m->left[i].version >= version))
			return 1;
	}
	return 0;
}

int queue_may_hold_more(const struct queue *q, const struct backup *b)
{
	const struct marker_left *ours = &q->shared.marker.left[b->index];

	if (!queue_mail(q) || queue_is_complete(q))
		return 0;
	return ours->version != complete_version(q) || strcmp(b->run_id, ours->run_id);
}

/* 1: the gateway that owns and marked it, or one before that, has read what this process marked last. All servers may
 * have restarted since. One that has claimed the server and not marked it yet has not told: it is not believed, because
 * this memory may be all that is left. */
static int has_read_ours(const struct queue *q, const struct sight *s)
{
	const struct marker *m = &s->marker;

	return s->state == SIGHT_MARKED && !strcmp(m->by, m->nonce) && q->marked_version &&
	       marker_owner_version(m->owners, q->shared.nonce) >= q->marked_version;
}

/* 1: this memory has messages, and the gateway that counts higher on @b cannot have them: no server has them all now,
 * those that had are other processes than the servers of the other one, and none of its markers tells that it read
 * them. It began anew on servers that came back empty, or went on with one that was left behind. One that is still
 * being filled here proves nothing. */
static int holds_more(const struct queue *q, const struct backup *b)
{
	return queue_may_hold_more(q, b) && !has_read_ours(q, &b->sight) && !marker_knows(q, &b->sight.marker);
}

void queue_meet_rival(struct queue *q, const struct backup *b)
{
	if (!holds_more(q, b)) {
		queue_depose(q, b->sight.marker.epoch);
		return;
	}
	log_paced(LOG_ERROR, NULL, "another gateway began the queue anew",
		"backup=%u epoch=%llu messages_in_memory_only=%llu effect=\"%s\"", b->index,
		(unsigned long long)b->sight.marker.epoch, (unsigned long long)queue_mail(q),
		"this gateway keeps them, and neither accepts nor delivers, until an operator orders the takeover "
		"here, which unites both; if it ends before, they are lost");
}

void queue_meet_rival_apart(struct queue *q, const struct backup *spare)
{
	const struct marker *m = &spare->sight.marker;

	if (spare->state == BACKUP_SEEN && m->epoch > q->shared.epoch && !queue_is_complete(q) &&
		has_read_ours(q, &spare->sight))
		queue_depose(q, m->epoch);
}

/* A gateway that began anew on servers that came back empty counted its epochs from 1, and may have the same one or,
 * after some restarts, a higher one. An operator's order decides between the two. */
void queue_outrank(struct queue *q)
{
	const unsigned used = ~(1u << BACKUP_AWAY | 1u << BACKUP_SEEN | 1u << BACKUP_REFUSED);
	uint64_t highest = 0;

	if (!q->orders || queue_backups_in(q, used) || !queue_is_fresh(q))
		return;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];

		if (b->state != BACKUP_SEEN || queue_is_ours(q, b))
			continue;
		if (b->sight.marker.epoch > q->shared.epoch && !holds_more(q, b))
			return;
		if (b->sight.marker.epoch > highest)
			highest = b->sight.marker.epoch;
	}
	if (highest >= q->shared.epoch)
		q->shared.epoch = highest + 1;
}
