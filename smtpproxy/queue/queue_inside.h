/* queue_inside.h: between the files of the queue. */
#ifndef CSSL_SMTPPROXY_QUEUE_QUEUE_INSIDE_H
#define CSSL_SMTPPROXY_QUEUE_QUEUE_INSIDE_H

#include "net/address.h"
#include "net/timer.h"
#include "smtpproxy/queue/backup/backup_look.h"
#include "smtpproxy/queue/lease.h"
#include "smtpproxy/queue/queue.h"
#include "smtpproxy/queue/queue_clock.h"
#include "smtpproxy/queue/items/seal.h"

#define QUEUE_TICK_MS   100u
#define QUEUE_STALL_MS  500 /* a tick that comes so late means that this process was stopped */
#define QUEUE_ID_EPOCH  40u /* ids: the epoch stands above so many bits of counter */
#define DECIDED_BUCKETS 65536u

/* An item, two slots of the index, and what malloc() adds to it and to its sealed bytes. */
#define QUEUE_ITEM_BYTES (sizeof(struct item) + 2 * sizeof(struct item *) + 32)

/* States that were read before their messages. */
struct read_state {
	uint64_t id;
	unsigned at;     /* of the server number */
	uint8_t *sealed; /* owned */
	size_t len;
};

/* FILLED: a message found no memory in the last tenth, or recovery took more than there is; until a tenth is free. */
enum queue_fill { QUEUE_UNFILLED, QUEUE_FILLED };

/* The servers of the file: `backups`, then `spares`. */
struct spares {
	struct backup probes[SERVERS_MAX];
	const struct backup_conf *confs[SERVERS_MAX];
	unsigned count;             /* servers of the file */
	unsigned at[BACKUPS];       /* the server of each place */
	int64_t moved_ms[BACKUPS];  /* when it got that place; 0: at the start */
	int64_t useful_ms[BACKUPS]; /* when it was of use last */
	unsigned owed; /* a bit for each server that may hold messages that no other has, and has no place */
};

struct queue {
	struct queue_conf conf;
	const struct queue_ops *ops;
	void *user;
	struct timer *timer;
	struct backup_shared shared;
	struct backup backups[BACKUPS];
	struct spares spares;
	struct item_set items;
	struct destination_table destinations;
	STAILQ_HEAD(, queue_destination) due; /* their owner is told at the end of the turn */
	struct turn_end tell, tell_take;
	struct lease lease;
	struct queue_clock clock;
	enum queue_state state;
	unsigned ready;     /* backups in sync when the owner was told last */
	unsigned orders;    /* queue_take_over() calls that wait */
	int64_t ordered_ms; /* the first of these */
	int64_t ticked_ms;  /* the last tick */
	int64_t stalled_ms; /* the end of the last time in which this process did not run */
	int64_t looked_ms;  /* LOOKING since; WATCHING: the owner is silent since */
	struct {
		uint64_t record; /* as seen last */
		int64_t asked_ms, silent_ms;
	} watched[BACKUPS]; /* LOOKING, WATCHING: how long each was seen without a sign of life on any */
	struct {
		uint64_t epoch, signs;
		int64_t since_ms; /* 0: not seen */
	} owner_seen[BACKUPS];    /* LOOKING: as seen first */
	uint64_t counter;         /* of ids */
	int64_t orders_repeat_ms; /* when refused orders are put again */

	/* recovery */
	int64_t recovery_ms; /* when it began; 0: it is over */
	/* a bit for each backup: its claim is not answered yet; it is not read yet; the recovery reads it */
	unsigned claims, reads, from;
	/* a bit for each server of which it was told that the queue waits for it: lost, and refusing */
	unsigned silent_told, refusing_told;
	uint64_t from_epoch;                 /* of its claims */
	uint64_t from_version;               /* the highest that the recovery saw */
	struct marker from_markers[BACKUPS]; /* of the backups that the recovery reads; all zero: not read */
	struct read_state *read;
	size_t read_count, read_cap;
	/* ids of messages that the server @told_by named, and that no other had shown yet */
	uint64_t *told;
	size_t told_count, told_cap;
	unsigned told_by;
	/* ids of messages that were read and then deleted, until all backups are in sync: a server that was not read
	 * may still have them. The first @gone_sorted ids are in ascending order */
	uint64_t *gone;
	size_t gone_count, gone_cap, gone_sorted;

	/* changes whose lost backup has to be left out by a marker first */
	struct item **waiting;
	size_t waiting_count, waiting_cap;
	uint64_t waiting_version;

	/* decided transactions: buckets by the hash of the name (item.next), and a list by age (item.previous) */
	struct item **decided;
	struct item *decided_oldest, *decided_newest;
	uint64_t decided_bytes;
	/* until then some that a gateway before this one decided, and that this one decided, are not known any more */
	int64_t forgot_before_ms, forgot_here_ms;
	int64_t active_ms; /* ACTIVE since */

	/* a bit for each backup that counts, and that is marked when the others have answered the marker @join_version;
	 * and the members before that one */
	unsigned joining;
	uint64_t join_version;
	char members_before[BACKUPS][RUN_ID_LEN + 1];

	uint64_t marked_version; /* the highest that a server has answered; 0: none */
	uint64_t alone;          /* deletes and states since no backup counts: none of them has got these */
	int64_t flush_until_ms;  /* FLUSHING */

	struct queue_stats stats;
	enum queue_fill fill, fill_told;
};

static inline struct queue *queue_of(const struct backup *b)
{
	return b->shared->user;
}

/* Its memory: its sealed bytes, and what stands around them. */
static inline uint64_t queue_bytes_of(const struct item *i)
{
	return i->sealed_len + QUEUE_ITEM_BYTES;
}

static inline uint32_t queue_source_of(const struct queue *q, struct content_bytes envelope)
{
	return q->conf.source_of ? q->conf.source_of(envelope) : 0;
}

/* Changes go to the backups. */
static inline bool queue_owns(const struct queue *q)
{
	return q->state == QUEUE_ACTIVE || q->state == QUEUE_FLUSHING;
}

void queue_move(struct queue *q, enum queue_state to);
uint64_t queue_messages(const struct queue *q);
/* These, and items that cannot be opened without a key that is missing: they may be messages. */
uint64_t queue_mail(const struct queue *q);
/* A bit for each backup that is in one of these states. @states: a bit for each. */
unsigned queue_backups_in(const struct queue *q, unsigned states);
/* Those whose answer counts. */
static inline unsigned queue_counting(const struct queue *q)
{
	return queue_backups_in(q, 1u << BACKUP_MARKING | 1u << BACKUP_IN_SYNC);
}

/* Its line is not empty any more. */
void queue_note_due(struct queue *q, struct queue_destination *d);

/* queue_join.c */
#define QUEUE_FILL_AGAIN_MS 5000 /* after its memory was full */
/* The members changed: write a new marker to all of them. */
void queue_mark(struct queue *q);
/* The servers that have everything count from now on, if they may. */
void queue_join_filled(struct queue *q);

/* queue_backups.c */
extern const struct backup_ops queue_backup_ops;
void queue_on_claimed(struct backup *b);
void queue_on_done(struct backup *b, enum change_kind kind, struct item *i);
void queue_on_room(struct backup *b);
/* The queue has all that the server number @at held under this version. */
void queue_note_left(struct queue *q, unsigned at, const char run_id[static RUN_ID_LEN + 1], uint64_t version);
void queue_tell_ready(struct queue *q);
/* Claim what may be claimed; called at each sight and tick. */
void queue_consider(struct queue *q);
/* The server's own record shows that no other gateway has claimed it since. An order may have raised the epoch, but
 * what was claimed before this queue was read back may have more. */
bool queue_is_ours(const struct queue *q, const struct backup *b);
/* 1: the server went on under a marker that nobody knew when this queue was read back, or without the servers that were
 * read: it has messages that no other server has. */
bool queue_is_branch(const struct queue *q, const struct backup *b);

/* queue_rivals.c */
/* True if a backup is in sync, so it has all that is in memory. */
static inline unsigned queue_is_complete(const struct queue *q)
{
	return queue_backups_in(q, 1u << BACKUP_IN_SYNC);
}
void queue_depose(struct queue *q, uint64_t epoch);
/* 1: no server has all that is in memory, as far as this process knows without the sight of @b. */
bool queue_may_hold_more(const struct queue *q, const struct backup *b);
/* The record of @b has a higher epoch. */
void queue_meet_rival(struct queue *q, const struct backup *b);
/* @spare has no place here. Its owner may have replaced all servers that have one, so nothing else tells of it. */
void queue_meet_rival_apart(struct queue *q, const struct backup *spare);
/* Order: count higher than others that lack what is in memory. */
void queue_outrank(struct queue *q);

/* queue_rivals.c */
/* 1: a decision about these may be made: they were asked just now, and after an order. */
bool queue_is_fresh(const struct queue *q);
/* WATCHING: for takeover_ms. */
bool queue_owner_is_silent(struct queue *q);
/* LOOKING: 1: no other gateway owns the queue. 0: not known yet, or one does; then this one is WATCHING. */
bool queue_meets_no_owner(struct queue *q);

/* queue_spares.c: servers that take the place of a lost backup. Those of the file that no place uses are watched by
 * probes, which only look.
 *
 * While the queue is ACTIVE and the other backup is in sync, a backup that was of no use for replace_ms gives its place
 * to the next server that answers. To the queue, that is a server that restarted empty: it is claimed, compared, filled
 * and marked. What the lost one holds is known, so the markers say that it was replaced (marker.h), and it is not
 * believed when it comes back as it was. While it may hold messages that were not read, it is waited for.
 *
 * A server that went on by itself, without the knowledge of this gateway, is owed its place: it gets it when the other
 * backup is in sync, and is united as one that came back late.
 *
 * A gateway that starts, or watches, gives each place the server that the markers name (choice.h).
 */
void queue_spares_begin(struct queue *q);
bool queue_spares_stop(struct queue *q); /* 1: all links are closed. Call it until then. */
void queue_spares_tick(struct queue *q, int64_t now_ms);

/* Of the servers of the file. */
const struct backup *queue_server(const struct queue *q, unsigned server);
const char *queue_server_name(const struct queue *q, unsigned server, char out[static ADDRESS_TEXT_MAX]);

/* LOOKING, WATCHING: 1: a place gets another server, or its server has not had the time to answer yet. */
bool queue_spares_choose(struct queue *q);
/* As recovery_decide(), for the servers that the places have. */
enum recovery_step queue_spares_decide(struct queue *q, enum recovery_trust trust, unsigned *mask);
/* ACTIVE: look which servers are owed a place. */
void queue_spares_note_owed(struct queue *q);
/* 1: a server without a place may have messages that are in no backup. */
bool queue_spares_any_owed(const struct queue *q);
/* 1: @b does not hold what its place waits for, and another server may. */
bool queue_spares_waits(const struct queue *q, const struct backup *b);

/* queue_recovery.c */
void queue_recover(struct queue *q);
/* All that was read. */
void queue_forget_all(struct queue *q);
void queue_recovery_claimed(struct queue *q, struct backup *b);
void queue_recovery_lost(struct queue *q, struct backup *b);
void queue_read_item(
	struct queue *q, struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len);
void queue_read_end(struct queue *q, struct backup *b);
/* ACTIVE: what was read of servers that came back belongs to the queue from now on, except for what is half read. */
void queue_unite(struct queue *q);
/* The server @b was lost while it was read for that. */
void queue_unite_interrupted(struct queue *q, const struct backup *b);

/* queue_read.c: an item that was read, into memory; and when all are there, into its destination's line. */
/* 1: @i was read, and its later states and its grave may not have been: a server is being read, or @i is of one that
 * was lost before its end. */
bool queue_is_half_read(const struct queue *q, const struct item *i);
/* READING: each server has told what it has. Returns whether messages that only one of them has are fetched now. */
bool queue_fetch_told(struct queue *q);
void queue_told_clear(struct queue *q);
void queue_apply_states(struct queue *q);
void queue_sort(struct queue *q);

/* queue_gone.c: @i is about to be deleted. Remember its id, if a server that was not read may still have it. */
void queue_note_gone(struct queue *q, const struct item *i);
bool queue_is_gone(struct queue *q, uint64_t id);
bool queue_any_apart(const struct queue *q);
/* 1: a server that is not in sync may have messages that were here, too, and that are deleted. */
bool queue_any_unread(const struct queue *q);
void queue_keep_gone(struct queue *q, uint64_t id);
/* All has been read: delete what has a grave. */
void queue_bury(struct queue *q);
/* Out of memory. */
void queue_gone_clear(struct queue *q);
/* All backups are in sync, so no server has such a message: out of memory and out of the backups. */
void queue_gone_forget(struct queue *q);

/* Out of the server @b alone. */
void queue_delete_field(struct backup *b, enum item_kind kind, uint64_t id);

/* queue_store.c */
/* The plain form of @c, sealed, and its length. NULL: out of memory. */
uint8_t *queue_seal(struct queue *q, enum item_kind kind, uint64_t id, const struct content *c, size_t *len);
/* Opens it into @plain, which has room for it; @c points into that. 0, or as seal_open() or content_read(). */
int queue_unseal(const struct queue *q, enum item_kind kind, uint64_t id, const uint8_t *sealed, size_t len,
	uint8_t *plain, struct content *c);
/* A new item with that content. NULL: out of memory. */
struct item *queue_make(struct queue *q, enum item_kind kind, const struct content *c);
/* Push it to every live backup, a new item only to those that count; those owe an answer if @waits is 1. */
void queue_push(struct queue *q, enum change_kind kind, struct item *i, bool waits);
void queue_answered(struct queue *q, struct item *i, unsigned bits);
void queue_refuse(struct queue *q, struct item *i, enum queue_outcome outcome);
void queue_wait_for_mark(struct queue *q, struct backup *b);
void queue_release_waiting(struct queue *q, uint64_t version);
void queue_fail_waiting(struct queue *q);
/* Out of memory and out of the backups. */
void queue_remove(struct queue *q, struct item *i);
/* Into its line, heap or HELD, by its state record. */
void queue_settle(struct queue *q, struct item *i);
/* To the end of its line. */
void queue_append(struct queue *q, struct item *i);

/* Bytes of all items. */
uint64_t queue_memory(const struct queue *q);
/* Every tick: tells the owner when queue_is_full() changes. */
void queue_follow_fill(struct queue *q);
/* A message for @d (NULL: of a new destination) can be added. */
bool queue_has_room(struct queue *q, const struct queue_destination *d);

/* queue_orders.c */
int queue_order_read(struct queue *q, struct item *i, const struct content *o);
void queue_order_forget(struct queue *q, struct item *i);
/* Every backup that counts has the order @i: those that it replaces go. */
void queue_order_stored(struct queue *q, struct item *i);
/* The memory of @b is full. The order counts all the same, and is put again later. */
void queue_order_refused(struct queue *q, const struct backup *b, struct item *i);
/* Put refused orders again, when it is time. */
void queue_orders_repeat(struct queue *q);

/* queue_decided.c */
int queue_decided_enter(struct queue *q, struct item *i, struct content_bytes name);
void queue_decided_forget(struct queue *q, struct item *i);
void queue_decided_expire(struct queue *q);
struct item *queue_decided_make(struct queue *q, struct content_bytes name, struct content_bytes reply);
void queue_decided_clear(struct queue *q);
/* Before its time. 0, or QUEUE_NONE: there is none that is stored. */
int queue_decided_forget_oldest(struct queue *q);
/* For one more. 0 or QUEUE_NONE. */
int queue_decided_make_room(struct queue *q);

#endif
