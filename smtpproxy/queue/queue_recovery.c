/* queue_recovery.c: how a gateway gets its queue: it waits until enough is known (marker.h), claims every server that
 * answers, reads those of the highest version, and unites what they hold. */
#include "smtpproxy/queue/queue_inside.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/log.h"
#include "net/log_pace.h"

#define EPOCHS_SKIPPED 1000u /* by an order: more than the owners of an absent server have counted, as a rule */
/* An order's epochs rise with time, because servers that came back empty tell nothing of an earlier order. An epoch has
 * 24 bits in an id. Half of them last for 22 years from @EPOCHS_SINCE_S, 2025-01-01. */
#define EPOCHS_SINCE_S INT64_C(1735689600)
#define EPOCH_S        86
#define EPOCHS_BY_TIME (INT64_C(1) << 23)

/* A member of the read ones that is absent, or one that they name as apart already, stays apart until it was read. */
static void note_apart(struct queue *q, const struct marker *m, unsigned at)
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
static void note_from(struct queue *q, unsigned mask)
{
	struct marker *next = &q->shared.marker;

	q->from = mask;
	memset(q->from_markers, 0, sizeof q->from_markers);
	*next = (struct marker){ .version = next->version };
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct marker *m = &q->backups[i].sight.marker;

		if (!(mask & 1u << i))
			continue;
		q->from_markers[i] = *m;
		for (unsigned j = 0; j < BACKUPS; j++) {
			if (!(mask & 1u << j) && m->left[j].run_id[0])
				next->left[j] = m->left[j];
			note_apart(q, m, j);
		}
		queue_note_left(q, i, m->run_id, m->version);
		next->unread |= m->unread & ~(uint64_t)mask;
		marker_note_owners(next->owners, m);
		marker_merge_replaced(next->replaced, m->replaced);
	}
}

/* The highest of the servers. 0: no other gateway has owned one that answers. */
static uint64_t highest_epoch(const struct queue *q)
{
	uint64_t epoch = 0;

	for (unsigned n = 0; n < q->spares.count; n++)
		if (queue_server(q, n)->sight.marker.epoch > epoch)
			epoch = queue_server(q, n)->sight.marker.epoch;
	return epoch;
}

static uint64_t higher_version(const struct sight *s, uint64_t version)
{
	return s->state == SIGHT_MARKED && s->marker.version > version ? s->marker.version : version;
}

static void claim_all(struct queue *q, unsigned mask)
{
	const uint64_t epoch = highest_epoch(q);
	uint64_t version, random;

	q->recovery_ms = redis_link_clock_ms();
	q->lease.from_ms = 0;
	q->silent_told = 0;
	if (epoch)
		lease_wait_out(&q->lease, q->recovery_ms);
	q->shared.epoch = q->from_epoch = (epoch > q->shared.epoch ? epoch : q->shared.epoch) + 1;
	q->from_version = 0;
	for (unsigned i = 0; i < BACKUPS; i++)
		q->from_version = higher_version(&q->backups[i].sight, q->from_version);
	version = q->from_version;
	for (unsigned n = 0; n < q->spares.count; n++)
		version = higher_version(&queue_server(q, n)->sight, version);
	q->shared.marker.version = version; /* the next markers are above that of every server */
	/* Two gateways that see one server each may use the same epoch: their ids have to differ, because their
	 * messages may be united. Half of the numbers lie above. */
	randombytes_buf(&random, sizeof random);
	q->counter = random >> (64 - QUEUE_ID_EPOCH + 1);
	note_from(q, mask);
	q->claims = q->reads = 0;
	queue_move(q, QUEUE_CLAIMING);
	for (unsigned i = 0; i < BACKUPS && q->state == QUEUE_CLAIMING; i++) {
		if (q->backups[i].state != BACKUP_SEEN)
			continue;
		q->claims |= 1u << i;
		backup_claim(&q->backups[i]);
	}
}

/* A gateway that is alone goes on with any server that is complete (may_join), and the marker of the other one does not
 * say so. So it waits for every server, but not for ever. */
static enum recovery_trust trust_of(const struct queue *q)
{
	int64_t waited_ms = redis_link_clock_ms() - q->looked_ms;

	if (q->orders)
		return TRUST_PRESENT;
	if (q->conf.role == QUEUE_ALONE)
		return waited_ms > q->conf.absent_ms ? TRUST_PRESENT : TRUST_NOTHING;
	return waited_ms > 2 * q->conf.path_timeout_ms ? TRUST_ANSWERS : TRUST_NOTHING;
}

/* Not of one that refuses: that was told, and nobody shall take over because of it. */
static bool is_silent(const struct backup *b)
{
	return b->sight.state == SIGHT_AWAY && !backup_answers(b);
}

/* Once, until others are silent or refuse. */
static void say_waits(struct queue *q)
{
	char text[ADDRESS_TEXT_MAX];
	unsigned refusing = 0, silent = 0;

	if (redis_link_clock_ms() - q->looked_ms <= (int64_t)q->conf.absent_ms)
		return;
	for (unsigned n = 0; n < q->spares.count; n++) {
		const struct backup *b = queue_server(q, n);

		refusing |= backup_refuses(b) ? 1u << n : 0;
		silent |= is_silent(b) ? 1u << n : 0;
		if (refusing & ~q->refusing_told & 1u << n)
			log_event(LOG_ERROR, NULL, "queue waits for a server that refuses", "server=%s effect=\"%s\"",
				queue_server_name(q, n, text),
				"nothing is accepted or delivered until it lets this gateway in");
	}
	q->refusing_told = refusing;
	if (silent == q->silent_told)
		return;
	q->silent_told = silent;
	for (unsigned i = 0; i < BACKUPS; i++)
		if (is_silent(&q->backups[i]))
			log_event(LOG_ERROR, NULL, "queue waits for a backup", "backup=%u cause=\"%s\" effect=\"%s\"",
				i, "it does not answer, and may hold messages that no other has, or another gateway",
				"nothing is accepted or delivered until it answers, or an operator orders the "
				"takeover, at each such start; a single gateway needs queue.role: alone");
	for (unsigned n = 0; q->conf.spare_count && n < q->spares.count; n++)
		if (silent & 1u << n)
			log_event(LOG_ERROR, NULL, "queue waits for a server", "server=%s cause=\"%s\"",
				queue_server_name(q, n, text), "the queue may have gone on with it, see queue.spares");
}

/* No server that answers is complete, and an operator orders to go on with what there is. An absent one has time to
 * answer first, from the order on, and from the first answer of another one. A mask of servers, or 0. */
static unsigned ordered_ones(struct queue *q)
{
	const int64_t now_ms = redis_link_clock_ms();
	const unsigned mask = queue_backups_in(q, 1u << BACKUP_SEEN);
	unsigned away = 0;

	if (!mask)
		q->ordered_ms = now_ms;
	for (unsigned n = 0; n < q->spares.count; n++)
		away += queue_server(q, n)->sight.state == SIGHT_AWAY;
	if (mask == (1u << BACKUPS) - 1 && !away)
		return mask;
	return now_ms - q->ordered_ms > q->conf.absent_ms ? mask : 0;
}

/* They are read, because one may have been lost before it was marked, and may hold the only copy. An absent one is
 * united when it comes back: its owner's epoch should be lower then. */
static void begin_by_order(struct queue *q, unsigned mask)
{
	const int64_t by_time = (queue_now_ms(q) / 1000 - EPOCHS_SINCE_S) / EPOCH_S;
	const int64_t least = by_time > EPOCHS_BY_TIME ? EPOCHS_BY_TIME : by_time;
	uint64_t epoch = highest_epoch(q);

	log_event(LOG_WARNING, NULL, "queue goes on without a complete backup", "backups=%u cause=\"%s\" effect=\"%s\"",
		mask, "an operator ordered the takeover",
		"what a server loaded from an old snapshot is delivered again");
	epoch = epoch > q->shared.epoch ? epoch : q->shared.epoch;
	q->shared.epoch = (least > 0 && (uint64_t)least > epoch ? (uint64_t)least : epoch) + EPOCHS_SKIPPED;
	q->forgot_before_ms = queue_now_ms(q) + (int64_t)q->conf.decided_s * 1000; /* another server may know them */
	for (unsigned i = 0; i < BACKUPS; i++) {
		struct marker *m = &q->backups[i].sight.marker;
		struct marker owner = { .epoch = m->epoch, .generation = m->generation, .renewals = m->renewals };

		/* Nobody knows whether the marker is right about other servers. It is right about its owner. */
		memcpy(owner.nonce, m->nonce, sizeof owner.nonce);
		*m = owner;
	}
	claim_all(q, mask);
	q->shared.marker.unread = ((1u << BACKUPS) - 1) & ~mask;
}

void queue_recover(struct queue *q)
{
	struct sight sights[BACKUPS];
	enum recovery_step step;
	unsigned mask;

	if (!queue_is_fresh(q) || queue_spares_choose(q))
		return;
	if (q->state == QUEUE_WATCHING && !queue_owner_is_silent(q) && !q->orders)
		return;
	if (q->state == QUEUE_LOOKING && !q->orders && !queue_meets_no_owner(q))
		return;
	for (unsigned i = 0; i < BACKUPS; i++)
		sights[i] = q->backups[i].sight;
	step = q->conf.spare_count ? queue_spares_decide(q, trust_of(q), &mask)
				   : recovery_decide(sights, trust_of(q), &mask);
	if (step != RECOVERY_READ && q->orders) {
		mask = ordered_ones(q);
		if (mask)
			begin_by_order(q, mask);
		return;
	}
	if (step == RECOVERY_WAIT)
		say_waits(q);
	else if (step == RECOVERY_BEGIN && q->state == QUEUE_WATCHING)
		log_paced(LOG_ERROR, NULL, "queue waits for its owner", "cause=\"%s\" effect=\"%s\"",
			"no server holds a queue, and a standby begins none",
			"nothing is accepted until an owner starts, or an operator orders the takeover");
	else
		claim_all(q, mask);
}

/* Sends @b the messages that only the other one of the united servers had, and the states, which may differ. */
static void complete(struct queue *q, struct backup *b)
{
	for (struct item *i = q->items.oldest; i && backup_is_live(b); i = i->newer) {
		if (i->seen & 1u << b->index) {
			if (i->note && q->from == (1u << BACKUPS) - 1)
				backup_push(b, CHANGE_REPLACE, i);
			continue;
		}
		if (i->seen & ITEM_MENDED) /* a put leaves a damaged copy alone */
			queue_delete_field(b, (enum item_kind)i->kind, i->id);
		if (backup_is_live(b))
			backup_push(b, CHANGE_PUT, i);
	}
}

static void settle(struct queue *q, struct item *i)
{
	i->seen &= (uint8_t)~ITEM_FRESH;
	if (i->state == ITEM_OPAQUE)
		return;
	if (i->kind != ITEM_MESSAGE) {
		item_move(i, ITEM_KEPT);
		return;
	}
	i->seen |= ITEM_DOUBT;
	queue_settle(q, i);
	q->stats.recovered++;
}

/* All is read. The servers that were read go on as backups in sync; the others are filled. */
static void recovered(struct queue *q)
{
	const unsigned all = (1u << BACKUPS) - 1;
	unsigned lacking = 0; /* a bit for each server that lacks an item, or may have an older state of one */

	queue_told_clear(q);
	queue_apply_states(q);
	queue_sort(q);
	queue_move(q, QUEUE_ACTIVE);
	q->refusing_told = 0;
	queue_spares_note_owed(q);
	for (struct item *i = q->items.oldest; i; i = i->newer) {
		lacking |= i->note && q->from == all ? all : all & ~(unsigned)i->seen;
		settle(q, i);
	}
	log_event(LOG_INFO, NULL, "queue read back", "messages=%llu unreadable=%llu ms=%llu from=%u",
		(unsigned long long)q->stats.recovered, (unsigned long long)q->stats.unreadable,
		(unsigned long long)(redis_link_clock_ms() - q->recovery_ms), q->from);
	for (unsigned i = 0; i < BACKUPS; i++) {
		struct backup *b = &q->backups[i];

		if (b->state != BACKUP_CLAIMED)
			continue;
		if (!(q->from & 1u << i)) {
			queue_on_claimed(b);
			continue;
		}
		backup_advance(b, BACKUP_MARKING);
		if (lacking & 1u << i)
			complete(q, b);
	}
	queue_bury(q);
	if (queue_counting(q))
		queue_mark(q);
}

/* The bodies come from one of them: as a rule, the others have the same ones. */
static void read_all(struct queue *q)
{
	enum backup_reads what = BACKUP_READS_ITEMS;

	queue_move(q, QUEUE_READING);
	q->reads = q->from;
	for (unsigned i = 0; i < BACKUPS; i++) {
		if (!(q->from & 1u << i))
			continue;
		backup_read(&q->backups[i], what);
		what = BACKUP_READS_NAMES;
	}
	if (!q->from)
		recovered(q);
}

void queue_forget_all(struct queue *q)
{
	for (size_t n = 0; n < q->read_count; n++)
		free(q->read[n].sealed);
	free(q->read);
	q->read = NULL;
	q->read_count = q->read_cap = 0;
	queue_told_clear(q);
	q->stats.opaque = q->stats.orders = q->stats.graves = 0;
	queue_gone_clear(q);
	queue_decided_clear(q);
	STAILQ_INIT(&q->due);
	destination_table_clear(&q->destinations);
	item_set_clear(&q->items);
}

/* With a higher epoch. @lost: is given up already, or NULL. */
static void begin_again(struct queue *q, const struct backup *lost)
{
	queue_move(q, QUEUE_LOOKING);
	q->looked_ms = redis_link_clock_ms();
	queue_forget_all(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (&q->backups[i] != lost)
			backup_give_up(&q->backups[i], backup_begins_again);
}

void queue_recovery_claimed(struct queue *q, struct backup *b)
{
	bool changed = false;

	if (q->lease.from_ms)
		lease_wait_out(&q->lease, redis_link_clock_ms());
	q->claims &= ~(1u << b->index);
	if (q->claims)
		return;
	/* Another gateway may have written between the question and the claim. It cannot any more, so the next look is
	 * the last. */
	for (unsigned i = 0; i < BACKUPS; i++)
		changed |= q->backups[i].state == BACKUP_CLAIMED &&
			   marker_changed(&q->backups[i].judged, &q->backups[i].replaced);
	if (changed) {
		log_event(LOG_WARNING, NULL, "queue looks again",
			"cause=\"another gateway wrote to a server meanwhile\"");
		begin_again(q, NULL);
		return;
	}
	read_all(q);
}

/* A server that had to be read is lost, or all are. */
void queue_recovery_lost(struct queue *q, struct backup *b)
{
	q->claims &= ~(1u << b->index);
	if (!(q->from & 1u << b->index) && queue_backups_in(q, 1u << BACKUP_CLAIMING | 1u << BACKUP_CLAIMED)) {
		if (q->state == QUEUE_CLAIMING && !q->claims)
			read_all(q);
		return;
	}
	begin_again(q, b);
}

/* A backup that is being filled may be past its place. One that has the message may have an older state of it, which a
 * put leaves alone. */
static void put_late(struct queue *q, struct item *i)
{
	for (unsigned n = 0; n < BACKUPS; n++) {
		struct backup *b = &q->backups[n];

		if (backup_is_live(b))
			backup_push(b, CHANGE_PUT, i);
		if (backup_is_live(b) && i->note && i->seen & 1u << n)
			backup_push(b, CHANGE_REPLACE, i);
	}
}

/* Messages of an absent member that came back while the queue goes on: no other backup has them. */
void queue_unite(struct queue *q)
{
	queue_apply_states(q);
	queue_sort(q);
	for (struct item *i = q->items.oldest; i; i = i->newer) {
		if (!(i->seen & ITEM_FRESH) || queue_is_half_read(q, i))
			continue;
		put_late(q, i);
		settle(q, i);
	}
	queue_bury(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_FILLING) /* its place was in the old order */
			q->backups[i].fill_next = q->items.oldest;
}

/* The messages that were read of @b go to the other server now, because this process may end before @b comes back. None
 * of them is delivered before @b comes back: its later states and its graves may not have been read. */
void queue_unite_interrupted(struct queue *q, const struct backup *b)
{
	uint64_t messages = 0;

	for (struct item *i = q->items.oldest; i; i = i->newer) {
		if (!(i->seen & ITEM_FRESH) || !(i->seen & 1u << b->index))
			continue;
		put_late(q, i);
		messages += i->kind == ITEM_MESSAGE;
	}
	if (messages)
		log_event(LOG_WARNING, NULL, "backup lost while its messages were read",
			"backup=%u messages=%llu effect=\"%s\"", b->index, (unsigned long long)messages,
			"they are delivered when it comes back, or at the next start, which may need an order");
}

void queue_read_end(struct queue *q, struct backup *b)
{
	q->reads &= ~(1u << b->index);
	if (q->state == QUEUE_READING) {
		if (!q->reads && !queue_fetch_told(q))
			recovered(q);
		return;
	}
	q->shared.marker.apart[b->index][0] = '\0';
	marker_note_owners(q->shared.marker.owners, &b->sight.marker);
	queue_unite(q);
}
