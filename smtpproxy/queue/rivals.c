/* rivals.c: another gateway: what it wrote to a server, and one that counts higher there. Either it took the queue
 * over, and this one ends; or it lacks what is in this memory, and an operator has to decide. */
#include "smtpproxy/queue/rivals.h"

#include <string.h>

#include "net/report/log.h"
#include "net/report/log_pace.h"
#include "smtpproxy/queue/joining.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/stock.h"

bool rivals_is_ours(const struct queue *q, const struct backup *b)
{
	return b->sight.marker.epoch >= q->recovery.epoch && !strcmp(b->sight.marker.nonce, q->shared.nonce);
}

bool rivals_is_behind(const struct backup *b)
{
	const struct queue *q = queue_of(b);
	const struct marker *m = &b->sight.marker;

	return marker_is_replaced(q->shared.marker.replaced, m) ||
	       (m->version <= q->recovery.version && marker_is_behind(m, q->recovery.markers));
}

bool rivals_is_branch(const struct queue *q, const struct backup *b)
{
	return b->sight.state == SIGHT_MARKED && !rivals_is_ours(q, b) && !rivals_is_behind(b);
}

/* Until it was read it is apart, also when it is lost again meanwhile. The next marker is above its own one: if the
 * version of a server went down, whoever goes on with it alone could come to one that another marker leaves behind. */
void rivals_note_branch(struct queue *q, const struct backup *b)
{
	const struct marker *m = &b->sight.marker;

	if (!rivals_is_branch(q, b))
		return;
	if (!marker_any_apart(&q->shared.marker) || m->version < q->shared.marker.apart_version)
		q->shared.marker.apart_version = m->version;
	if (m->version > q->shared.marker.version)
		q->shared.marker.version = m->version;
	memcpy(q->shared.marker.apart[b->index], m->run_id, sizeof q->shared.marker.apart[b->index]);
	log_event(LOG_WARNING, NULL, "backup may hold messages that no other has", "backup=%u from_version=%llu",
		b->index, (unsigned long long)m->version);
}

static void rival_depose(struct queue *q, uint64_t epoch)
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
	joining_tell_ready(q);
	stock_fail_unstored(q);
	q->ops->on_deposed(q->user);
}

/* The highest version that any server is known to have: those that have it are complete. */
static uint64_t rival_complete_version(const struct queue *q)
{
	uint64_t version = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->shared.marker.left[i].version > version)
			version = q->shared.marker.left[i].version;
	return version;
}

/* Whoever wrote the marker @m has read a server that was complete, or waits for it. It counts on from there: a lower
 * version was written before. */
static bool rival_knows(const struct queue *q, const struct marker *m)
{
	const uint64_t version = rival_complete_version(q);

	for (unsigned i = 0; i < BACKUPS && m->version > version; i++) {
		const struct marker_left *ours = &q->shared.marker.left[i];

		if (!ours->run_id[0] || ours->version < version)
			continue;
		if (!strcmp(m->members[i], ours->run_id) || !strcmp(m->apart[i], ours->run_id) ||
			(!strcmp(m->left[i].run_id, ours->run_id) && m->left[i].version >= version))
			return true;
	}
	return false;
}

static bool rival_may_lack(const struct queue *q, const struct backup *b)
{
	const struct marker_left *ours = &q->shared.marker.left[b->index];

	if (!queue_mail(q) || queue_is_complete(q))
		return false;
	return ours->version != rival_complete_version(q) || strcmp(b->run_id, ours->run_id);
}

/* 1: the gateway that owns and marked it, or one before that, has read what this process marked last. All servers may
 * have restarted since. One that has claimed the server and not marked it yet has not told: it is not believed, because
 * this memory may be all that is left. */
static bool rival_has_read_ours(const struct queue *q, const struct sight *s)
{
	const struct marker *m = &s->marker;

	return s->state == SIGHT_MARKED && !strcmp(m->by, m->nonce) && q->joining.marked_version &&
	       marker_owner_version(m->owners, q->shared.nonce) >= q->joining.marked_version;
}

/* 1: this memory has messages, and the gateway that counts higher on @b cannot have them: no server has them all now,
 * those that had are other processes than the servers of the other one, and none of its markers tells that it read
 * them. It began anew on servers that came back empty, or went on with one that was left behind. One that is still
 * being filled here proves nothing. */
static bool rival_lacks(const struct queue *q, const struct backup *b)
{
	return rival_may_lack(q, b) && !rival_has_read_ours(q, &b->sight) && !rival_knows(q, &b->sight.marker);
}

/* A server without a place here: its owner may have replaced all servers that have one, so nothing else tells of it. */
static bool rival_took_over_apart(const struct queue *q, const struct backup *probe)
{
	return probe->state == BACKUP_SEEN && probe->sight.marker.epoch > q->shared.epoch && !queue_is_complete(q) &&
	       rival_has_read_ours(q, &probe->sight);
}

void rivals_meet(struct queue *q, const struct backup *b)
{
	if (b->is_probe ? rival_took_over_apart(q, b) : !rival_lacks(q, b)) {
		rival_depose(q, b->sight.marker.epoch);
		return;
	}
	if (b->is_probe)
		return;
	log_paced(LOG_ERROR, NULL, "another gateway began the queue anew",
		"backup=%u epoch=%llu messages_in_memory_only=%llu effect=\"%s\"", b->index,
		(unsigned long long)b->sight.marker.epoch, (unsigned long long)queue_mail(q),
		"this gateway keeps them, and neither accepts nor delivers, until an operator orders the takeover "
		"here, which unites both; if it ends before, they are lost");
}

/* A gateway that began anew on servers that came back empty counted its epochs from 1, and may have the same one or,
 * after some restarts, a higher one. An operator's order decides between the two. */
void rivals_outrank(struct queue *q)
{
	const unsigned used = ~(1u << BACKUP_AWAY | 1u << BACKUP_SEEN | 1u << BACKUP_REFUSED);
	uint64_t highest = 0;

	if (!q->orders || queue_backups_in(q, used))
		return;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];

		if (b->state != BACKUP_SEEN || rivals_is_ours(q, b))
			continue;
		if (b->sight.marker.epoch > q->shared.epoch && !rival_lacks(q, b))
			return;
		if (b->sight.marker.epoch > highest)
			highest = b->sight.marker.epoch;
	}
	if (highest >= q->shared.epoch)
		q->shared.epoch = highest + 1;
}

/* One that was not complete yet is only looked at again: what it lacked may be in this memory only. Its sight is as old
 * as the claim. */
void rivals_deposed(struct backup *b, uint64_t epoch)
{
	struct queue *q = queue_of(b);

	if (!queue_owns(q) || !rival_may_lack(q, b))
		rival_depose(q, epoch);
}
