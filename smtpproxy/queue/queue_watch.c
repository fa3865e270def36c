/* queue_watch.c: how fresh is what the servers said, and whether another gateway lives that owns them. */
#include "smtpproxy/queue/queue_inside.h"

#include <string.h>

#include "net/log.h"
#include "net/log_pace.h"

#define FRESH_HEARTBEATS 5u /* an owner that lives renews its lease in this time */

static uint64_t number_of(const char *run_id)
{
	uint64_t n = 14695981039346656037u; /* FNV-1a */

	for (; *run_id; run_id++)
		n = (n ^ (uint8_t)*run_id) * 1099511628211u;
	return n;
}

/* Each of these only grows while one gateway owns the server. It marks a server that it claimed again before it renews
 * its lease there. */
static uint64_t signs_of_life(const struct marker *m)
{
	return m->renewals + m->version + m->generation;
}

/* Another number: an owner renewed its lease, or a server came, went, or restarted. An owner that was cut off from all
 * of them needs time to claim one that came back empty, and that one alone does not show that it lives. */
static uint64_t renewals_seen(const struct queue *q)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].sight.state != SIGHT_AWAY)
			sum += signs_of_life(&q->backups[i].sight.marker) + (q->backups[i].sight.marker.epoch << 32) +
			       number_of(q->backups[i].run_id);
	return sum;
}

/* The last time at which all servers that answer were asked. Nobody knows yet what happened behind it, also if this
 * process did not run meanwhile. */
static int64_t asked_ms(const struct queue *q)
{
	int64_t first_ms = INT64_MAX;

	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_SEEN && q->backups[i].asked_ms < first_ms)
			first_ms = q->backups[i].asked_ms;
	return first_ms;
}

/* A server that does not answer in time is no longer SEEN. */
int queue_is_fresh(const struct queue *q)
{
	const int64_t at_ms = asked_ms(q);

	return redis_link_clock_ms() - at_ms < 2 * (int64_t)q->conf.path_timeout_ms &&
	       !(q->orders && at_ms <= q->ordered_ms);
}

/* A standby asks again and again whether the owner renews its lease. */
int queue_owner_is_silent(struct queue *q)
{
	int64_t now_ms = redis_link_clock_ms();
	uint64_t renewals = renewals_seen(q);

	if (renewals != q->renewals) {
		q->renewals = renewals;
		q->looked_ms = now_ms;
	}
	return asked_ms(q) - q->looked_ms > q->conf.takeover_ms;
}

void queue_look_again(struct queue *q)
{
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_SEEN)
			backup_look_again(&q->backups[i]);
}

enum owner_sign { OWNER_SILENT, OWNER_UNKNOWN, OWNER_LIVES };

/* Another server names it as a member: its owner may hold in memory what it has lost, and fills it if it has the time
 * for that. A gateway that is alone has ended, so nobody does. */
static int lost_a_members_content(const struct queue *q, unsigned at)
{
	if (q->conf.role == QUEUE_ALONE || q->backups[at].sight.state != SIGHT_EMPTY)
		return 0;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].sight.state == SIGHT_MARKED && q->backups[i].sight.marker.members[at][0])
			return 1;
	return 0;
}

static enum owner_sign owner_at(struct queue *q, unsigned at, int64_t now_ms)
{
	const struct marker *m = &q->backups[at].sight.marker;
	const int emptied = lost_a_members_content(q, at);
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
	if (emptied)
		log_paced(LOG_WARNING, NULL, "queue waits for its former owner", "backup=%u ms=%lld cause=\"%s\"", at,
			(long long)fresh_ms, "this member came back empty, and the owner may have its messages");
	return q->backups[at].asked_ms - q->owner_seen[at].since_ms > fresh_ms ? OWNER_SILENT : OWNER_UNKNOWN;
}

/* Two gateways with the role of owner would replace each other again and again, so the one that comes later becomes a
 * standby. This only saves mail from delays. The queue epoch and the queue lease guarantee that no two gateways write
 * or deliver.
 */
int queue_meets_no_owner(struct queue *q)
{
	int64_t now_ms = redis_link_clock_ms();
	enum owner_sign sign = OWNER_SILENT;

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
	return 0;
}
