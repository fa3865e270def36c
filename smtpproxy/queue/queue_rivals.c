/* queue_rivals.c: another gateway. How old the servers' answers are, and whether another gateway lives that owns them;
 * and one that counts higher on a server. Either it took the queue over, and this one ends; or it lacks what is in this
 * memory, and an operator has to decide. */
#include "smtpproxy/queue/queue_inside.h"

#include <string.h>

#include "net/log.h"
#include "net/log_pace.h"

#define FRESH_HEARTBEATS 5u /* an owner that lives renews its lease in this time */

/* Each of these only grows while one gateway owns the server. It marks a server that it claimed again before it renews
 * its lease there. */
static uint64_t signs_of_life(const struct marker *m)
{
	return m->renewals + m->version + m->generation;
}

/* Of a server that is not away: another number after a claim, a renewal or a marker of an owner, and when it lost what
 * it had. */
static uint64_t record_of(const struct sight *s)
{
	return signs_of_life(&s->marker) + (s->marker.epoch << 32) + ((uint64_t)s->state << 56);
}

/* How long each server has been seen without a sign of life on any of them. An owner that was cut off from all needs
 * time to claim one that came back empty. But that time goes on when the server falls and comes back as it was: one
 * that restarts every few seconds would else keep the queue stopped for ever. Time between two answers that lie far
 * apart does not count, because nobody watched. */
static void watch(struct queue *q)
{
	unsigned news = 0;

	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];
		const int64_t watched_ms = b->asked_ms - q->watched[i].asked_ms;

		if (b->state != BACKUP_SEEN)
			continue;
		news += record_of(&b->sight) != q->watched[i].record;
		q->watched[i].record = record_of(&b->sight);
		q->watched[i].asked_ms = b->asked_ms;
		if (watched_ms < 2 * (int64_t)q->conf.path_timeout_ms)
			q->watched[i].silent_ms += watched_ms;
	}
	for (unsigned i = 0; i < BACKUPS && news; i++)
		q->watched[i].silent_ms = 0;
	if (news && q->state == QUEUE_WATCHING)
		q->looked_ms = redis_link_clock_ms();
}

/* The last time at which all servers that answer were asked. Nobody knows yet what happened behind it, also if this
 * process did not run meanwhile. */
static int64_t asked_ms(const struct queue *q)
{
	int64_t first_ms = INT64_MAX;

	for (unsigned n = 0; n < (queue_owns(q) ? BACKUPS : q->spares.count); n++) {
		const struct backup *b = queue_owns(q) ? &q->backups[n] : queue_server(q, n);

		if (b->state == BACKUP_SEEN && b->asked_ms < first_ms)
			first_ms = b->asked_ms;
	}
	return first_ms;
}

/* A server that does not answer in time is no longer SEEN. */
bool queue_is_fresh(const struct queue *q)
{
	const int64_t at_ms = asked_ms(q);

	return redis_link_clock_ms() - at_ms < 2 * (int64_t)q->conf.path_timeout_ms &&
	       !(q->orders && at_ms <= q->ordered_ms);
}

/* A standby asks again and again whether the owner renews its lease. */
bool queue_owner_is_silent(struct queue *q)
{
	const int64_t most_ms = q->conf.takeover_ms;
	int64_t longest_ms = 0;
	bool silent = true;

	watch(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_SEEN && q->watched[i].silent_ms > longest_ms)
			longest_ms = q->watched[i].silent_ms;
	for (unsigned i = 0; i < BACKUPS; i++) {
		if (q->backups[i].state != BACKUP_SEEN || q->watched[i].silent_ms > most_ms)
			continue;
		silent = false;
		if (longest_ms > most_ms)
			log_paced(LOG_WARNING, NULL, "queue waits for its former owner",
				"backup=%u ms=%lld cause=\"%s\"", i, (long long)(most_ms - q->watched[i].silent_ms),
				"this server came back, and the owner needs time to claim it if it lives");
	}
	return silent;
}

enum owner_sign { OWNER_SILENT, OWNER_UNKNOWN, OWNER_LIVES };

/* Another server names it as a member: its owner may hold in memory what it has lost, and fills it if it has the time
 * for that. A gateway that is alone has ended, so nobody does. */
static bool lost_a_members_content(const struct queue *q, unsigned at)
{
	if (q->conf.role == QUEUE_ALONE || q->backups[at].sight.state != SIGHT_EMPTY)
		return false;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].sight.state == SIGHT_MARKED && q->backups[i].sight.marker.members[at][0])
			return true;
	return false;
}

static enum owner_sign owner_at(struct queue *q, unsigned at, int64_t now_ms)
{
	const struct marker *m = &q->backups[at].sight.marker;
	const bool emptied = lost_a_members_content(q, at);
	const int64_t fresh_ms = emptied ? q->conf.takeover_ms : FRESH_HEARTBEATS * q->conf.heartbeat_ms;

	if (q->backups[at].state != BACKUP_SEEN || (!m->epoch && !emptied) || !strcmp(m->nonce, q->shared.nonce)) {
		q->owner_seen[at].since_ms = 0;
		return OWNER_SILENT;
	}
	if (!q->owner_seen[at].since_ms) {
		q->owner_seen[at].epoch = m->epoch;
		q->owner_seen[at].signs = signs_of_life(m);
		q->owner_seen[at].since_ms = now_ms;
	}
	if (m->epoch != q->owner_seen[at].epoch || signs_of_life(m) != q->owner_seen[at].signs)
		return OWNER_LIVES;
	if (emptied && q->watched[at].silent_ms > fresh_ms)
		return OWNER_SILENT;
	if (emptied)
		log_paced(LOG_WARNING, NULL, "queue waits for its former owner", "backup=%u ms=%lld cause=\"%s\"", at,
			(long long)(fresh_ms - q->watched[at].silent_ms),
			"this member came back empty, and the owner may have its messages");
	return q->backups[at].asked_ms - q->owner_seen[at].since_ms > fresh_ms ? OWNER_SILENT : OWNER_UNKNOWN;
}

/* Two gateways with the role of owner would replace each other again and again, so the one that comes later becomes a
 * standby. This only saves mail from delays. The queue epoch and the queue lease guarantee that no two gateways write
 * or deliver.
 */
bool queue_meets_no_owner(struct queue *q)
{
	int64_t now_ms = redis_link_clock_ms();
	enum owner_sign sign = OWNER_SILENT;

	watch(q);
	for (unsigned i = 0; i < BACKUPS; i++) {
		enum owner_sign one = owner_at(q, i, now_ms);

		sign = one > sign ? one : sign;
	}
	if (sign != OWNER_LIVES)
		return sign == OWNER_SILENT;
	log_event(LOG_WARNING, NULL, "another gateway owns the queue",
		"cause=\"it renews its lease\" effect=\"this one is its standby until an operator orders the "
		"takeover\"");
	if (q->conf.role == QUEUE_OWNER)
		q->conf.role = QUEUE_STANDBY;
	q->looked_ms = now_ms;
	queue_move(q, QUEUE_WATCHING);
	return false;
}

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
static bool marker_knows(const struct queue *q, const struct marker *m)
{
	const uint64_t version = complete_version(q);

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

bool queue_may_hold_more(const struct queue *q, const struct backup *b)
{
	const struct marker_left *ours = &q->shared.marker.left[b->index];

	if (!queue_mail(q) || queue_is_complete(q))
		return false;
	return ours->version != complete_version(q) || strcmp(b->run_id, ours->run_id);
}

/* 1: the gateway that owns and marked it, or one before that, has read what this process marked last. All servers may
 * have restarted since. One that has claimed the server and not marked it yet has not told: it is not believed, because
 * this memory may be all that is left. */
static bool has_read_ours(const struct queue *q, const struct sight *s)
{
	const struct marker *m = &s->marker;

	return s->state == SIGHT_MARKED && !strcmp(m->by, m->nonce) && q->marked_version &&
	       marker_owner_version(m->owners, q->shared.nonce) >= q->marked_version;
}

/* 1: this memory has messages, and the gateway that counts higher on @b cannot have them: no server has them all now,
 * those that had are other processes than the servers of the other one, and none of its markers tells that it read
 * them. It began anew on servers that came back empty, or went on with one that was left behind. One that is still
 * being filled here proves nothing. */
static bool holds_more(const struct queue *q, const struct backup *b)
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
