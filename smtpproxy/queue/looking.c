/* looking.c: a gateway that does not own the queue: it looks whether another one does, waits until enough is known
 * (marker.h), and claims every server that answers. */
#include "smtpproxy/queue/looking.h"

#include <sodium.h>
#include <string.h>

#include "net/report/log.h"
#include "net/report/log_pace.h"
#include "net/socket/address.h"
#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/spares.h"

#define FRESH_HEARTBEATS 5u /* an owner that lives renews its lease in this time */

#define EPOCHS_SKIPPED 1000u /* by an order: more than the owners of an absent server have counted, as a rule */
/* An order's epochs rise with time, because servers that came back empty tell nothing of an earlier order. An epoch has
 * 24 bits in an id. Half of them last for 22 years from @EPOCHS_SINCE_S, 2025-01-01. */
#define EPOCHS_SINCE_S INT64_C(1735689600)
#define EPOCH_S        86
#define EPOCHS_BY_TIME (INT64_C(1) << 23)

/* --- does another gateway own it? --- */

/* Each of these only grows while one gateway owns the server. It marks a server that it claimed again before it renews
 * its lease there. */
static uint64_t watch_signs(const struct marker *m)
{
	return m->renewals + m->version + m->generation;
}

/* Of a server that is not away: another number after a claim, a renewal or a marker of an owner, and when it lost what
 * it had. */
static uint64_t watch_record(const struct sight *s)
{
	return watch_signs(&s->marker) + (s->marker.epoch << 32) + ((uint64_t)s->state << 56);
}

/* How long each server has been seen without a sign of life on any of them. An owner that was cut off from all needs
 * time to claim one that came back empty. But that time goes on when the server falls and comes back as it was: one
 * that restarts every few seconds would else keep the queue stopped for ever. Time between two answers that lie far
 * apart does not count, because nobody watched. */
static void watch_servers(struct queue *q)
{
	unsigned news = 0;

	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];
		const int64_t watched_ms = b->asked_ms - q->watch.servers[i].asked_ms;

		if (b->state != BACKUP_SEEN)
			continue;
		news += watch_record(&b->sight) != q->watch.servers[i].record;
		q->watch.servers[i].record = watch_record(&b->sight);
		q->watch.servers[i].asked_ms = b->asked_ms;
		if (watched_ms < 2 * (int64_t)q->conf.path_timeout_ms)
			q->watch.servers[i].silent_ms += watched_ms;
	}
	for (unsigned i = 0; i < BACKUPS && news; i++)
		q->watch.servers[i].silent_ms = 0;
	if (news && q->state == QUEUE_WATCHING)
		q->looked_ms = redis_link_clock_ms();
}

/* The last time at which all servers that answer were asked. Nobody knows yet what happened behind it, also if this
 * process did not run meanwhile. */
static int64_t watch_asked_ms(const struct queue *q)
{
	int64_t first_ms = INT64_MAX;

	for (unsigned n = 0; n < (queue_owns(q) ? BACKUPS : q->spares.count); n++) {
		const struct backup *b = queue_owns(q) ? &q->backups[n] : spares_server(q, n);

		if (b->state == BACKUP_SEEN && b->asked_ms < first_ms)
			first_ms = b->asked_ms;
	}
	return first_ms;
}

/* A decision about the servers may be made: they were asked just now, and after an order. A server that does not answer
 * in time is no longer SEEN. */
static bool watch_is_fresh(const struct queue *q)
{
	const int64_t at_ms = watch_asked_ms(q);

	return redis_link_clock_ms() - at_ms < 2 * (int64_t)q->conf.path_timeout_ms &&
	       !(q->orders && at_ms <= q->ordered_ms);
}

/* A standby asks again and again whether the owner renews its lease. */
static bool watch_owner_is_silent(struct queue *q)
{
	const int64_t most_ms = q->conf.takeover_ms;
	int64_t longest_ms = 0;
	bool silent = true;

	watch_servers(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_SEEN && q->watch.servers[i].silent_ms > longest_ms)
			longest_ms = q->watch.servers[i].silent_ms;
	for (unsigned i = 0; i < BACKUPS; i++) {
		if (q->backups[i].state != BACKUP_SEEN || q->watch.servers[i].silent_ms > most_ms)
			continue;
		silent = false;
		if (longest_ms > most_ms)
			log_paced(LOG_WARNING, NULL, "queue waits for its former owner",
				"backup=%u ms=%lld cause=\"%s\"", i,
				(long long)(most_ms - q->watch.servers[i].silent_ms),
				"this server came back, and the owner needs time to claim it if it lives");
	}
	return silent;
}

enum owner_sign { OWNER_SILENT, OWNER_UNKNOWN, OWNER_LIVES };

/* Another server names it as a member: its owner may hold in memory what it has lost, and fills it if it has the time
 * for that. A gateway that is alone has ended, so nobody does. */
static bool watch_lost_content(const struct queue *q, unsigned at)
{
	if (q->conf.role == QUEUE_ALONE || q->backups[at].sight.state != SIGHT_EMPTY)
		return false;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].sight.state == SIGHT_MARKED && q->backups[i].sight.marker.members[at][0])
			return true;
	return false;
}

static enum owner_sign watch_owner_at(struct queue *q, unsigned at, int64_t now_ms)
{
	const struct marker *m = &q->backups[at].sight.marker;
	const bool emptied = watch_lost_content(q, at);
	/* an empty server shows no signs of its former owner, which gets a longer time to bring the messages back */
	const int64_t fresh_ms = emptied ? q->conf.takeover_ms : FRESH_HEARTBEATS * q->conf.heartbeat_ms;

	if (q->backups[at].state != BACKUP_SEEN || (!m->epoch && !emptied) || !strcmp(m->nonce, q->shared.nonce)) {
		q->watch.owners[at].since_ms = 0;
		return OWNER_SILENT;
	}
	if (!q->watch.owners[at].since_ms) {
		q->watch.owners[at].epoch = m->epoch;
		q->watch.owners[at].signs = watch_signs(m);
		q->watch.owners[at].since_ms = now_ms;
	}
	if (m->epoch != q->watch.owners[at].epoch || watch_signs(m) != q->watch.owners[at].signs)
		return OWNER_LIVES;
	if (emptied && q->watch.servers[at].silent_ms > fresh_ms)
		return OWNER_SILENT;
	if (emptied)
		log_paced(LOG_WARNING, NULL, "queue waits for its former owner", "backup=%u ms=%lld cause=\"%s\"", at,
			(long long)(fresh_ms - q->watch.servers[at].silent_ms),
			"this member came back empty, and the owner may have its messages");
	return q->backups[at].asked_ms - q->watch.owners[at].since_ms > fresh_ms ? OWNER_SILENT : OWNER_UNKNOWN;
}

/* Two gateways with the role of owner would replace each other again and again, so the one that comes later becomes a
 * standby. This only saves mail from delays. The queue epoch and the queue lease guarantee that no two gateways write
 * or deliver.
 */
static bool watch_meets_no_owner(struct queue *q)
{
	int64_t now_ms = redis_link_clock_ms();
	enum owner_sign sign = OWNER_SILENT;

	watch_servers(q);
	for (unsigned i = 0; i < BACKUPS; i++) {
		enum owner_sign one = watch_owner_at(q, i, now_ms);

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

/* --- is enough known? --- */

/* A member of the read ones that is absent, or one that they name as apart already, stays apart until it was read. */
static void look_note_apart(struct queue *q, const struct marker *m, unsigned at)
{
	struct marker *next = &q->shared.marker;
	const char *run_id = m->members[at][0] ? m->members[at] : m->apart[at];

	if (q->backups[at].sight.state != SIGHT_AWAY || !run_id[0])
		return;
	memcpy(next->apart[at], run_id, sizeof next->apart[at]);
	next->apart_version = m->members[at][0] ? m->version : m->apart_version;
	log_event(LOG_WARNING, NULL, "backup may hold messages that no other has", "backup=%u from_version=%llu", at,
		(unsigned long long)next->apart_version);
}

/* The markers that are read, and what they know of the servers that they left behind. */
static void look_note_from(struct queue *q, unsigned mask)
{
	struct marker *next = &q->shared.marker;

	q->recovery.from = mask;
	memset(q->recovery.markers, 0, sizeof q->recovery.markers);
	*next = (struct marker){ .version = next->version };
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct marker *m = &q->backups[i].sight.marker;

		if (!(mask & 1u << i))
			continue;
		q->recovery.markers[i] = *m;
		for (unsigned j = 0; j < BACKUPS; j++) {
			if (!(mask & 1u << j) && m->left[j].run_id[0])
				next->left[j] = m->left[j];
			look_note_apart(q, m, j);
		}
		marker_left_of(&q->shared.marker, i, m->run_id)->version = m->version;
		next->unread |= m->unread & ~(uint64_t)mask;
		marker_note_owners(next->owners, m);
		marker_merge_replaced(next->replaced, m->replaced);
	}
}

/* The highest of the servers. 0: no other gateway has owned one that answers. */
static uint64_t look_highest_epoch(const struct queue *q)
{
	uint64_t epoch = 0;

	for (unsigned n = 0; n < q->spares.count; n++)
		if (spares_server(q, n)->sight.marker.epoch > epoch)
			epoch = spares_server(q, n)->sight.marker.epoch;
	return epoch;
}

static uint64_t look_higher_version(const struct sight *s, uint64_t version)
{
	return s->state == SIGHT_MARKED && s->marker.version > version ? s->marker.version : version;
}

static void look_claim_all(struct queue *q, unsigned mask)
{
	const uint64_t epoch = look_highest_epoch(q);
	uint64_t version, random;

	q->recovery.began_ms = redis_link_clock_ms();
	q->lease.from_ms = 0;
	q->recovery.silent_told = 0;
	if (epoch)
		lease_wait_out(&q->lease, q->recovery.began_ms);
	q->shared.epoch = q->recovery.epoch = (epoch > q->shared.epoch ? epoch : q->shared.epoch) + 1;
	q->recovery.version = 0;
	for (unsigned i = 0; i < BACKUPS; i++)
		q->recovery.version = look_higher_version(&q->backups[i].sight, q->recovery.version);
	version = q->recovery.version;
	for (unsigned n = 0; n < q->spares.count; n++)
		version = look_higher_version(&spares_server(q, n)->sight, version);
	q->shared.marker.version = version; /* the next markers are above that of every server */
	/* Two gateways that see one server each may use the same epoch: their ids have to differ, because their
	 * messages may be united. Half of the numbers lie above. */
	randombytes_buf(&random, sizeof random);
	q->counter = random >> (64 - QUEUE_ID_EPOCH + 1);
	look_note_from(q, mask);
	q->recovery.claims = q->recovery.reads = 0;
	queue_move(q, QUEUE_CLAIMING);
	for (unsigned i = 0; i < BACKUPS && q->state == QUEUE_CLAIMING; i++) {
		if (q->backups[i].state != BACKUP_SEEN)
			continue;
		q->recovery.claims |= 1u << i;
		backup_claim(&q->backups[i]);
	}
}

/* A gateway that is alone goes on with any server that is complete (joining.c), and the marker of the other one does
 * not say so. So it waits for every server, but not for ever. */
static enum recovery_trust look_trust(const struct queue *q)
{
	int64_t waited_ms = redis_link_clock_ms() - q->looked_ms;

	if (q->orders)
		return TRUST_PRESENT;
	if (q->conf.role == QUEUE_ALONE)
		return waited_ms > q->conf.absent_ms ? TRUST_PRESENT : TRUST_NOTHING;
	return waited_ms > 2 * q->conf.path_timeout_ms ? TRUST_ANSWERS : TRUST_NOTHING;
}

/* Not of one that refuses: that was told, and nobody shall take over because of it. */
static bool look_is_silent(const struct backup *b)
{
	return b->sight.state == SIGHT_AWAY && !backup_answers(b);
}

/* Once, until others are silent or refuse. */
static void look_say_waits(struct queue *q)
{
	char text[ADDRESS_TEXT_MAX];
	unsigned refusing = 0, silent = 0;

	if (redis_link_clock_ms() - q->looked_ms <= (int64_t)q->conf.absent_ms)
		return;
	for (unsigned n = 0; n < q->spares.count; n++) {
		const struct backup *b = spares_server(q, n);

		refusing |= backup_refuses(b) ? 1u << n : 0;
		silent |= look_is_silent(b) ? 1u << n : 0;
		if (refusing & ~q->recovery.refusing_told & 1u << n)
			log_event(LOG_ERROR, NULL, "queue waits for a server that refuses", "server=%s effect=\"%s\"",
				address_format((const struct sockaddr *)&q->spares.confs[n]->paths[0], text),
				"nothing is accepted or delivered until it lets this gateway in");
	}
	q->recovery.refusing_told = refusing; /* each is told once, and again when it refuses anew */
	if (silent == q->recovery.silent_told)
		return;
	q->recovery.silent_told = silent;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (look_is_silent(&q->backups[i]))
			log_event(LOG_ERROR, NULL, "queue waits for a backup", "backup=%u cause=\"%s\" effect=\"%s\"",
				i, "it does not answer, and may hold messages that no other has, or another gateway",
				"nothing is accepted or delivered until it answers, or an operator orders the "
				"takeover, at each such start; a single gateway needs queue.role: alone");
	for (unsigned n = 0; q->conf.spare_count && n < q->spares.count; n++)
		if (silent & 1u << n)
			log_event(LOG_ERROR, NULL, "queue waits for a server", "server=%s cause=\"%s\"",
				address_format((const struct sockaddr *)&q->spares.confs[n]->paths[0], text),
				"the queue may have gone on with it, see queue.spares");
}

/* No server that answers is complete, and an operator orders to go on with what there is. An absent one has time to
 * answer first, from the order on, and from the first answer of another one. A mask of servers, or 0. */
static unsigned look_ordered(struct queue *q)
{
	const int64_t now_ms = redis_link_clock_ms();
	const unsigned mask = queue_backups_in(q, 1u << BACKUP_SEEN);
	unsigned away = 0;

	if (!mask)
		q->ordered_ms = now_ms;
	for (unsigned n = 0; n < q->spares.count; n++)
		away += spares_server(q, n)->sight.state == SIGHT_AWAY;
	if (mask == (1u << BACKUPS) - 1 && !away)
		return mask;
	return now_ms - q->ordered_ms > q->conf.absent_ms ? mask : 0;
}

/* They are read, because one may have been lost before it was marked, and may hold the only copy. An absent one is
 * united when it comes back: its owner's epoch should be lower then. */
static void look_begin_by_order(struct queue *q, unsigned mask)
{
	const int64_t by_time = (queue_now_ms(q) / 1000 - EPOCHS_SINCE_S) / EPOCH_S;
	const int64_t least = by_time > EPOCHS_BY_TIME ? EPOCHS_BY_TIME : by_time;
	uint64_t epoch = look_highest_epoch(q);

	log_event(LOG_WARNING, NULL, "queue goes on without a complete backup", "backups=%u cause=\"%s\" effect=\"%s\"",
		mask, "an operator ordered the takeover",
		"what a server loaded from an old snapshot is delivered again");
	epoch = epoch > q->shared.epoch ? epoch : q->shared.epoch;
	q->shared.epoch = (least > 0 && (uint64_t)least > epoch ? (uint64_t)least : epoch) + EPOCHS_SKIPPED;
	q->decided.forgot_before_ms =
		queue_now_ms(q) + (int64_t)q->conf.decided_s * 1000; /* another server may know them */
	for (unsigned i = 0; i < BACKUPS; i++) {
		struct marker *m = &q->backups[i].sight.marker;
		struct marker owner = { .epoch = m->epoch, .generation = m->generation, .renewals = m->renewals };

		/* Nobody knows whether the marker is right about other servers. It is right about its owner. */
		memcpy(owner.nonce, m->nonce, sizeof owner.nonce);
		*m = owner;
	}
	look_claim_all(q, mask);
	q->shared.marker.unread = ((1u << BACKUPS) - 1) & ~mask;
}

static void look_further(struct queue *q)
{
	enum recovery_step step;
	unsigned mask;

	/* Whether another gateway owns the queue comes first: only then it matters what the servers hold. */
	if (!watch_is_fresh(q) || spares_choose(q))
		return;
	if (q->state == QUEUE_WATCHING && !watch_owner_is_silent(q) && !q->orders)
		return;
	if (q->state == QUEUE_LOOKING && !q->orders && !watch_meets_no_owner(q))
		return;
	step = spares_decide(q, look_trust(q), &mask);
	if (step != RECOVERY_READ && q->orders) {
		mask = look_ordered(q);
		if (mask)
			look_begin_by_order(q, mask);
		return;
	}
	if (step == RECOVERY_WAIT)
		look_say_waits(q);
	else if (step == RECOVERY_BEGIN && q->state == QUEUE_WATCHING)
		log_paced(LOG_ERROR, NULL, "queue waits for its owner", "cause=\"%s\" effect=\"%s\"",
			"no server holds a queue, and a standby begins none",
			"nothing is accepted until an owner starts, or an operator orders the takeover");
	else
		look_claim_all(q, mask);
}

bool looking_step(struct queue *q)
{
	if (q->state == QUEUE_LOOKING || q->state == QUEUE_WATCHING)
		look_further(q);
	return watch_is_fresh(q);
}
