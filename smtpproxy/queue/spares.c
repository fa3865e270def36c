/* spares.c: watches the servers of the file that no place uses, and gives a place to another server: by rule, if its
 * own is lost, and by what the markers say. */
#include "smtpproxy/queue/spares.h"

#include <string.h>

#include "net/report/log.h"
#include "net/socket/address.h"
#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/rivals.h"

#define LOOK_AGAIN_MS 1000 /* ACTIVE: at a server without a place */
#define FULL_FOR_MS   5000 /* behind the time at which it is tried again */

void spares_begin(struct queue *q)
{
	struct spares *s = &q->spares;

	s->count = BACKUPS + q->conf.spare_count;
	for (unsigned n = 0; n < s->count; n++) {
		s->confs[n] = n < BACKUPS ? &q->conf.backups[n] : &q->conf.spares[n - BACKUPS];
		backup_init(&s->probes[n], n, s->confs[n], &q->shared);
		s->probes[n].is_probe = true;
	}
	for (unsigned i = 0; i < BACKUPS; i++) {
		s->at[i] = i;
		s->useful_ms[i] = redis_link_clock_ms();
	}
}

/* The place that uses it; BACKUPS: none. */
static unsigned spare_place(const struct spares *s, unsigned server)
{
	unsigned i = 0;

	while (i < BACKUPS && s->at[i] != server)
		i++;
	return i;
}

const struct backup *spares_server(const struct queue *q, unsigned server)
{
	const unsigned i = spare_place(&q->spares, server);

	return i < BACKUPS ? &q->backups[i] : &q->spares.probes[server];
}

static void spare_take_sights(const struct queue *q, struct choice_server out[static SERVERS_MAX])
{
	for (unsigned n = 0; n < q->spares.count; n++) {
		out[n].sight = spares_server(q, n)->sight;
		memcpy(out[n].run_id, spares_server(q, n)->run_id, sizeof out[n].run_id);
	}
}

static void spare_tick(struct queue *q, unsigned server, int64_t now_ms)
{
	struct backup *p = &q->spares.probes[server];
	const int64_t every_ms = queue_owns(q) ? LOOK_AGAIN_MS : 0;

	if (spare_place(&q->spares, server) < BACKUPS) {
		backup_give_up(p, "a place uses this server");
		return;
	}
	backup_tick(p, now_ms);
	if (p->state == BACKUP_SEEN && now_ms - p->asked_ms >= every_ms)
		backup_look(p, LOOK_OWNER);
}

static const char *spare_name(const struct queue *q, unsigned server, char out[static ADDRESS_TEXT_MAX])
{
	return address_format((const struct sockaddr *)&q->spares.confs[server]->paths[0], out);
}

static void spare_move(struct queue *q, unsigned i, unsigned to, const char *event, const char *cause)
{
	struct spares *s = &q->spares;
	char from_text[ADDRESS_TEXT_MAX], to_text[ADDRESS_TEXT_MAX];

	log_event(LOG_WARNING, NULL, event, "backup=%u from=%s to=%s cause=\"%s\"", i,
		spare_name(q, s->at[i], from_text), spare_name(q, to, to_text), cause);
	s->at[i] = to;
	s->moved_ms[i] = s->useful_ms[i] = redis_link_clock_ms();
	q->backups[i].next = s->confs[to];
	backup_give_up(&q->backups[i], cause);
}

bool spares_choose(struct queue *q)
{
	struct choice_server servers[SERVERS_MAX];
	unsigned chosen[BACKUPS], moves = 0;

	spare_take_sights(q, servers);
	memcpy(chosen, q->spares.at, sizeof chosen);
	choice_make(servers, q->spares.count, chosen);
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];
		const int64_t since_ms = q->spares.moved_ms[i];

		/* It needs some time to answer over its new connections. Else an order would go on without it. */
		if (b->next || (b->state == BACKUP_AWAY && since_ms &&
				       redis_link_clock_ms() - since_ms < 2 * (int64_t)q->conf.path_timeout_ms)) {
			moves++;
			continue;
		}
		if (chosen[i] == q->spares.at[i] || spare_place(&q->spares, chosen[i]) < BACKUPS)
			continue;
		spare_move(q, i, chosen[i], "backup chosen", "the markers name it, or may mean it");
		q->watch.owners[i].since_ms = 0;
		q->looked_ms = redis_link_clock_ms();
		moves++;
	}
	return moves != 0;
}

enum recovery_step spares_decide(const struct queue *q, enum recovery_trust trust, unsigned *mask)
{
	struct choice_server servers[SERVERS_MAX];

	spare_take_sights(q, servers);
	return choice_decide(servers, q->spares.count, q->spares.at, trust, mask);
}

static void spare_note_owed(struct queue *q, unsigned server)
{
	const struct backup *p = &q->spares.probes[server];
	const unsigned bit = 1u << server, was = q->spares.owed & bit;
	char text[ADDRESS_TEXT_MAX];

	if (spare_place(&q->spares, server) < BACKUPS)
		q->spares.owed &= ~bit;
	else if (p->state == BACKUP_SEEN && rivals_is_branch(q, p))
		q->spares.owed |= bit;
	else if (p->state == BACKUP_SEEN)
		q->spares.owed &= ~bit;
	if (q->spares.owed & bit && !was)
		log_event(LOG_WARNING, NULL, "server may hold messages that no other has", "server=%s effect=\"%s\"",
			spare_name(q, server, text), "it gets its place when the other backup is in sync");
}

void spares_note_owed(struct queue *q)
{
	for (unsigned n = 0; n < q->spares.count; n++)
		spare_note_owed(q, n);
}

static bool spare_is_free(const struct queue *q, unsigned server)
{
	return spare_place(&q->spares, server) == BACKUPS && q->spares.probes[server].state == BACKUP_SEEN;
}

/* One that another gateway has claimed later would end this one. */
static unsigned spares_that_fit(const struct queue *q)
{
	unsigned fits = 0;

	for (unsigned n = 0; n < q->spares.count; n++) {
		const struct backup *p = &q->spares.probes[n];

		if (spare_is_free(q, n) && (rivals_is_ours(q, p) || p->sight.marker.epoch < q->shared.epoch))
			fits |= 1u << n;
	}
	return fits;
}

/* The absent member that the place waits for answers at another address than that of the place. */
static unsigned spare_found_apart(const struct queue *q, unsigned i)
{
	const char *apart = q->shared.marker.apart[i];

	for (unsigned n = 0; n < q->spares.count; n++)
		if (apart[0] && !backup_is_live(&q->backups[i]) && (n == i || n >= BACKUPS) && spare_is_free(q, n) &&
			!strcmp(q->spares.probes[n].run_id, apart))
			return n;
	return q->spares.count;
}

static unsigned spare_owed_to(const struct queue *q, unsigned i)
{
	for (unsigned n = 0; n < q->spares.count; n++) {
		const struct backup *p = &q->spares.probes[n];
		const unsigned home = n < BACKUPS ? n : !strcmp(p->sight.marker.members[1], p->run_id);

		if (q->spares.owed & 1u << n && spare_is_free(q, n) && home == i)
			return n;
	}
	return q->spares.count;
}

static unsigned spare_for(const struct queue *q, unsigned i, int64_t now_ms, const char **cause)
{
	const struct spares *s = &q->spares;
	const struct backup *other = &q->backups[1 - i];
	const struct marker_left *l = &q->shared.marker.left[1 - i];
	/* The other backup has all that is in memory, and its marker is written: without the one in the place @i, if
	 * that one does not count. So whoever starts later knows that this one is left behind. */
	const bool is_kept = other->state == BACKUP_IN_SYNC && l->version == q->shared.marker.version &&
			     !strcmp(l->run_id, other->run_id);
	/* This one, or the other, may hold messages that were not read. */
	const bool is_unread =
		marker_any_apart(&q->shared.marker) || q->recovery.reads || q->shared.marker.unread & UINT64_C(1) << i;
	unsigned to = spare_found_apart(q, i);

	*cause = "it may hold messages that no other has";
	if (to == s->count && is_kept && !is_unread)
		to = spare_owed_to(q, i);
	if (to < s->count || !is_kept || is_unread || now_ms - s->useful_ms[i] < q->conf.replace_ms)
		return to;
	*cause = q->backups[i].state == BACKUP_AWAY ? "it was not there for queue.replace_after"
						    : "it had no memory for queue.replace_after";
	return choice_next(s->count, s->at, i, spares_that_fit(q));
}

void spares_tick(struct queue *q, int64_t now_ms)
{
	for (unsigned n = 0; n < q->spares.count; n++)
		spare_tick(q, n, now_ms);
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];
		/* It was refused for lack of memory, and is tried again every few seconds. */
		const bool is_full = !backup_counts(b) && b->fill_after_ms && now_ms < b->fill_after_ms + FULL_FOR_MS;

		if (q->state != QUEUE_ACTIVE || b->next || (b->state != BACKUP_AWAY && !is_full))
			q->spares.useful_ms[i] = now_ms;
	}
	if (q->state != QUEUE_ACTIVE)
		return;
	for (unsigned n = 0; n < q->spares.count && queue_owns(q); n++)
		if (spare_place(&q->spares, n) == BACKUPS)
			rivals_meet(q, &q->spares.probes[n]);
	if (q->state != QUEUE_ACTIVE)
		return;
	spares_note_owed(q);
	for (unsigned i = 0; i < BACKUPS; i++) {
		const char *cause;
		const unsigned to = spare_for(q, i, now_ms, &cause);

		if (to == q->spares.count || q->backups[i].next)
			continue;
		marker_note_replaced(q->shared.marker.replaced, &q->shared.marker.left[i]);
		q->stats.backups_replaced++;
		spare_move(q, i, to, "backup replaced", cause);
	}
}
