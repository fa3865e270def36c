/* queue.c: creates and stops a queue, its tick, and its figures. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/loop/timer.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/queue_core.h"
#include "smtpproxy/queue/servers.h"
#include "smtpproxy/queue/stock.h"

static void tell_due(struct turn_end *t)
{
	struct queue *q = container_of(t, struct queue, tell);
	struct queue_destination *d;

	while ((d = STAILQ_FIRST(&q->destinations.due))) {
		STAILQ_REMOVE_HEAD(&q->destinations.due, due_next);
		d->due = DUE_NONE;
		if (d->ready)
			q->ops->on_due(q->user, d);
	}
}

/* Not at once: see destination_note_due(). */
static void on_due(struct destination_table *t)
{
	struct queue *q = container_of(t, struct queue, destinations);

	worker_at_turn_end(q->shared.worker, &q->tell);
}

static void tell_take(struct turn_end *t)
{
	struct queue *q = container_of(t, struct queue, tell_take);

	q->ops->on_may_take(q->user);
}

static void queue_stop_further(struct queue *q)
{
	bool closed = true;

	for (unsigned i = 0; i < BACKUPS; i++)
		closed &= backup_stop(&q->backups[i]);
	for (unsigned n = 0; n < q->spares.count; n++)
		closed &= backup_stop(&q->spares.probes[n]);
	if (!closed)
		return;
	timer_stop(q->timer);
	q->timer = NULL;
	turn_end_cancel(&q->tell);
	turn_end_cancel(&q->tell_take);
	q->ops->on_stopped(q->user);
}

static void queue_flush_further(struct queue *q, int64_t now_ms)
{
	/* Messages that may be in this memory only: backups that came back empty are not filled yet. */
	const uint64_t unsaved = queue_is_complete(q) ? 0 : queue_mail(q);
	uint64_t left = q->alone; /* changes that none has got, and those that a counting backup has not answered */

	for (unsigned i = 0; i < BACKUPS; i++)
		left += backup_counts(&q->backups[i]) ? q->backups[i].line.count : 0;
	if ((left || unsaved) && now_ms < q->flush_until_ms)
		return;
	if (unsaved)
		log_event(LOG_ERROR, NULL, "queue stops while no backup is complete", "messages=%llu effect=\"%s\"",
			(unsigned long long)unsaved, "those that no Redis server holds are lost");
	if (left)
		log_event(LOG_WARNING, NULL, "queue stops before the backups have answered",
			"changes=%llu deliveries_that_may_be_repeated=%llu", (unsigned long long)left,
			(unsigned long long)(q->stats.deletes_unconfirmed + q->alone));
	queue_move(q, QUEUE_STOPPING);
}

/* While this process did not run, it could not receive answers. So that time does not count as silence of the
 * backups. */
static void forgive_own_stall(struct queue *q, int64_t now_ms)
{
	const int64_t late_ms = q->ticked_ms ? now_ms - q->ticked_ms : 0;

	q->ticked_ms = now_ms;
	if (late_ms <= QUEUE_STALL_MS)
		return;
	q->stalled_ms = now_ms;
	for (unsigned i = 0; i < BACKUPS; i++) {
		q->backups[i].heard_ms += late_ms;
		q->spares.useful_ms[i] += late_ms;
	}
	if (q->state == QUEUE_LOOKING)
		q->looked_ms += late_ms; /* an absent server could not answer */
}

static void on_tick(void *ctx)
{
	struct queue *q = ctx;
	int64_t now_ms = redis_link_clock_ms();

	if (q->state == QUEUE_STOPPING) {
		queue_stop_further(q);
		return;
	}
	forgive_own_stall(q, now_ms);
	queue_clock_follow(&q->clock, worker_wall_ms(), now_ms);
	for (unsigned i = 0; i < BACKUPS; i++)
		backup_tick(&q->backups[i], now_ms);
	spares_tick(q, now_ms);
	for (unsigned i = 0; i < BACKUPS; i++)
		if (q->backups[i].state == BACKUP_SEEN) /* not claimed: ask again what it holds */
			backup_look(&q->backups[i], LOOK_OWNER);
	servers_consider(q);
	if (q->state == QUEUE_FLUSHING)
		queue_flush_further(q, now_ms);
	if (q->state != QUEUE_ACTIVE)
		return;
	destination_sweep(&q->destinations);
	while (destination_wake(&q->destinations, queue_now_ms(q)))
		;
	store_tick(q);
}

static void use_defaults(struct queue_conf *c)
{
	/* 0 is a sensible value of none of these: it means that the caller did not say */
	c->lease_ms = c->lease_ms ? c->lease_ms : 5000;
	c->heartbeat_ms = c->heartbeat_ms ? c->heartbeat_ms : 250;
	c->path_timeout_ms = c->path_timeout_ms ? c->path_timeout_ms : 600;
	c->give_up_ms = c->give_up_ms ? c->give_up_ms : 1500;
	c->replace_ms = c->replace_ms ? c->replace_ms : 60000;
	c->absent_ms = c->absent_ms ? c->absent_ms : 10000;
	c->takeover_ms = c->takeover_ms ? c->takeover_ms : 15000;
	c->decided_s = c->decided_s ? c->decided_s : 3600;
	c->decided_max = c->decided_max ? c->decided_max : 1000000;
	c->destinations_max = c->destinations_max ? c->destinations_max : 1000;
	c->block_items = c->block_items ? c->block_items : 1000;
	c->defer_most_ms = c->defer_most_ms ? c->defer_most_ms : 14400000;
	c->messages_max = c->messages_max ? c->messages_max : 1000000;
	c->unstored_bytes_max = c->unstored_bytes_max ? c->unstored_bytes_max : 32u << 20;
	c->memory_max = c->memory_max ? c->memory_max : UINT64_MAX;
}

static void share_conf(struct queue *q)
{
	struct backup_shared *s = &q->shared;
	uint8_t nonce[16];

	randombytes_buf(nonce, sizeof nonce);
	sodium_bin2hex(s->nonce, sizeof s->nonce, nonce, sizeof nonce);
	snprintf(s->owner_key, sizeof s->owner_key, "cssl:{%s}:owner", q->conf.name);
	snprintf(s->items_key, sizeof s->items_key, "cssl:{%s}:items", q->conf.name);
	s->ops = &servers_ops;
	s->user = q;
	s->heartbeat_ms = q->conf.heartbeat_ms;
	s->path_timeout_ms = q->conf.path_timeout_ms;
	s->give_up_ms = q->conf.give_up_ms;
	s->block_items = q->conf.block_items;
}

struct queue *queue_create(struct worker *w, const struct queue_conf *conf, const struct queue_ops *ops, void *user)
{
	struct queue *q;

	q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->conf = *conf;
	use_defaults(&q->conf);
	/* the loss of a backup, the end of the lease, and a takeover come in this order */
	assert(q->conf.path_timeout_ms < q->conf.give_up_ms && q->conf.give_up_ms < q->conf.lease_ms);
	assert(2 * q->conf.lease_ms < q->conf.takeover_ms && q->conf.give_up_ms < q->conf.replace_ms);
	q->ops = ops;
	q->user = user;
	q->shared.worker = w;
	q->state = conf->role == QUEUE_STANDBY ? QUEUE_WATCHING : QUEUE_LOOKING;
	q->looked_ms = redis_link_clock_ms();
	queue_clock_begin(&q->clock, worker_wall_ms(), q->looked_ms);
	q->destinations.on_due = on_due;
	q->tell.fn = tell_due;
	q->tell_take.fn = tell_take;
	q->lease.len_ms = q->conf.lease_ms;
	share_conf(q);
	for (unsigned i = 0; i < BACKUPS; i++)
		backup_init(&q->backups[i], i, &q->conf.backups[i], &q->shared);
	q->shared.seal = seal_create(conf->keys, conf->name);
	spares_begin(q);
	q->timer = q->shared.seal ? timer_start(w, on_tick, q, 0, QUEUE_TICK_MS) : NULL;
	if (q->timer)
		return q;
	seal_destroy(q->shared.seal);
	free(q);
	return NULL;
}

void queue_stop(struct queue *q, uint32_t within_ms)
{
	q->flush_until_ms = redis_link_clock_ms() + within_ms;
	if (q->state == QUEUE_ACTIVE)
		queue_move(q, QUEUE_FLUSHING);
	else if (q->state != QUEUE_FLUSHING && q->state != QUEUE_STOPPING)
		queue_move(q, QUEUE_STOPPING);
}

void queue_destroy(struct queue *q)
{
	if (!q)
		return;
	assert(!q->timer);
	for (size_t n = 0; n < q->waiting.count; n++)
		item_drop(q->waiting.items[n]);
	stock_clear(q);
	seal_destroy(q->shared.seal);
	free(q->waiting.items);
	free(q);
}

void queue_take_over(struct queue *q)
{
	if (!q->orders++)
		q->ordered_ms = redis_link_clock_ms();
	servers_consider(q);
}

/* Returns the states of messages that it has not answered. */
static uint64_t queue_backup_stats_of(const struct backup *b, struct queue_backup_stats *out)
{
	const struct change_line *l = &b->line;
	uint64_t replaces = 0;

	*out = b->stats;
	out->state = b->state;
	/* One that is in sync and was lost a moment ago may come back empty: that is known when it is reached again. */
	out->has_all = b->state == BACKUP_IN_SYNC && b->active && !b->looks;
	out->unanswered = b->line.count;
	out->path_count = b->conf->path_count;
	address_format((const struct sockaddr *)&b->conf->paths[0], out->address);
	for (unsigned n = 0; n < BACKUP_PATHS; n++)
		out->paths[n] = b->paths[n].stats;
	for (uint32_t at = 0; at < l->count; at++)
		replaces += change_at(l, at)->kind == CHANGE_REPLACE;
	return replaces;
}

void queue_get_stats(const struct queue *q, struct queue_stats *out)
{
	*out = q->stats;
	out->state = q->state;
	out->epoch = q->shared.epoch;
	out->version = q->shared.marker.version;
	for (unsigned i = 0; i < BACKUPS; i++) {
		const struct backup *b = &q->backups[i];

		const uint64_t replaces = queue_backup_stats_of(b, &out->backups[i]);

		out->in_sync += (unsigned)out->backups[i].has_all;
		if (backup_counts(b) && replaces > out->states_unconfirmed)
			out->states_unconfirmed = replaces;
	}
	/* The servers that no place uses, in the order of the file. */
	for (unsigned n = 0; n < q->spares.count; n++) {
		const struct backup *b = spares_server(q, n);
		struct queue_spare_stats *s = &out->spares[out->spare_count];

		if (b == &q->backups[0] || b == &q->backups[1])
			continue;
		s->state = b->state;
		address_format((const struct sockaddr *)&b->conf->paths[0], s->address);
		out->spare_count++;
	}
	out->messages = queue_mail(q) - q->stats.opaque;
	out->decided = q->decided.count;
	out->bytes = q->items.bytes;
	out->memory = item_set_memory(&q->items);
	out->memory_max = q->conf.memory_max;
	out->deletes_unconfirmed += q->alone;
	out->lease_left_ms = q->lease.until_ms - redis_link_clock_ms();
}

void queue_each_destination(const struct queue *q, int (*fn)(void *ctx, const struct queue_destination *d), void *ctx)
{
	const struct destination_table *t = &q->destinations;

	for (const struct queue_destination *d = destination_next(t, NULL); d && !fn(ctx, d);)
		d = destination_next(t, d);
}

void queue_each_message(const struct queue *q, int (*fn)(void *ctx, const struct item *i), void *ctx)
{
	for (const struct item *i = q->items.oldest; i; i = i->newer)
		if (i->kind == ITEM_MESSAGE && fn(ctx, i))
			return;
}
