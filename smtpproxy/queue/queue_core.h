/* queue_core.h: a queue is its parts. Each part has a header of its own, which says what others may read of it. What is
 * here belongs to none of them: the state, the clock, the conf, and the servers.
 *
 * The parts, from the lowest: stock; joining; rivals; spares; looking; reading, uniting; servers. store and deliver
 * have the functions of queue.h, and use stock only. No part calls one above it.
 */
#pragma once

#include "smtpproxy/queue/stock.h"
#include "smtpproxy/queue/items/decided.h"
#include "smtpproxy/queue/joining.h"
#include "smtpproxy/queue/lease.h"
#include "smtpproxy/queue/looking.h"
#include "smtpproxy/queue/queue.h"
#include "smtpproxy/queue/queue_clock.h"
#include "smtpproxy/queue/reading.h"
#include "smtpproxy/queue/servers.h"
#include "smtpproxy/queue/spares.h"

struct timer;

#define QUEUE_TICK_MS  100u
#define QUEUE_STALL_MS 500 /* a tick that comes so late means that this process was stopped */
#define QUEUE_ID_EPOCH 40u /* ids: the epoch stands above so many bits of counter */

/* FILLED: a message found no memory in the last tenth, or recovery took more than there is; until a tenth is free. */
enum queue_fill { QUEUE_UNFILLED, QUEUE_FILLED };

struct queue {
	struct queue_conf conf;
	const struct queue_ops *ops;
	void *user;
	struct timer *timer;
	struct backup_shared shared;
	struct backup backups[BACKUPS];
	struct item_set items;
	struct destination_table destinations;
	struct decided decided;
	struct gone gone;
	struct joining joining;
	struct spares spares;
	struct owner_watch watch;
	struct recovery recovery;
	struct reading reading;
	struct waiting waiting;
	struct turn_end tell, tell_take;
	struct lease lease;
	struct queue_clock clock;
	enum queue_state state;
	unsigned ready;           /* backups in sync when the owner was told last */
	unsigned orders;          /* queue_take_over() calls that wait */
	int64_t ordered_ms;       /* the first of these */
	int64_t ticked_ms;        /* the last tick */
	int64_t stalled_ms;       /* the end of the last time in which this process did not run */
	int64_t looked_ms;        /* LOOKING since; WATCHING: the owner is silent since */
	int64_t active_ms;        /* ACTIVE since, of the queue's clock */
	int64_t flush_until_ms;   /* FLUSHING */
	int64_t orders_repeat_ms; /* when refused orders are put again */
	uint64_t counter;         /* of ids */
	uint64_t alone;           /* deletes and states since no backup counts: none of them has got these */
	struct queue_stats stats;
	enum queue_fill fill, fill_told;
};

static inline struct queue *queue_of(const struct backup *b)
{
	return b->shared->user;
}

/* Changes go to the backups. */
static inline bool queue_owns(const struct queue *q)
{
	return q->state == QUEUE_ACTIVE || q->state == QUEUE_FLUSHING;
}

/* Messages, and items that cannot be opened without a key that is missing: they may be messages. */
static inline uint64_t queue_mail(const struct queue *q)
{
	return q->items.count - q->decided.count - q->stats.orders - q->stats.graves;
}

/* A server that is not in sync may have messages that were here, too, and that are deleted. */
static inline bool queue_any_unread(const struct queue *q)
{
	return q->shared.marker.unread || marker_any_apart(&q->shared.marker) || q->spares.owed;
}

/* store.c, every tick when ACTIVE: forgets decided transactions whose time is over, tells the owner when there is
 * memory or no memory any more, and puts refused orders again. */
void store_tick(struct queue *q);

/* As the table in queue_core.c allows. */
void queue_move(struct queue *q, enum queue_state to);
/* A bit for each backup that is in one of these states. @states: a bit for each. */
unsigned queue_backups_in(const struct queue *q, unsigned states);
/* Those whose answer counts. */
static inline unsigned queue_counting(const struct queue *q)
{
	return queue_backups_in(q, 1u << BACKUP_MARKING | 1u << BACKUP_IN_SYNC);
}
/* Those that are in sync, so each has all that is in memory. */
static inline unsigned queue_is_complete(const struct queue *q)
{
	return queue_backups_in(q, 1u << BACKUP_IN_SYNC);
}
