/* backup.h: one of the two Redis servers that hold a copy of the queue: its paths, what it is asked to change, and
 * whether it is in sync. A part of its own, because the queue reasons about servers, and not about connections.
 *
 * A backup has one or two paths: addresses of the same server on different networks. One path carries all requests in
 * order, the other one only heartbeats. When the carrying path fails, the other one takes over at once: it raises the
 * generation of the token, which shuts the old path's late requests out, and sends all unanswered changes again.
 *
 * Changes wait in one line. At the end of each loop turn all that fit into the window leave together, changes of the
 * same kind in one call. A backup that answers on no path for give_up_ms is given up: its line is dropped. When it
 * comes back it is compared: what it holds may be the only copy, so it is never emptied.
 *
 *   AWAY --> SEEN --> CLAIMING --> CLAIMED --> COMPARING --> FILLING --> MARKING --> IN_SYNC
 *    ^        any state: given up or lost          |                                    |
 *    +---------------------------------------------+------------------------------------+
 *                                                                any --> REFUSED (another owner)
 */
#pragma once

#include "smtpproxy/queue/backup/backup_stats.h"
#include "smtpproxy/queue/backup/change_line.h"
#include "smtpproxy/queue/items/item.h"
#include "smtpproxy/queue/markers/marker.h"
#include "smtpproxy/queue/backup/redis_link.h"
#include "smtpproxy/queue/backup/refusal.h"

struct backup;

struct backup_conf {
	struct sockaddr_storage paths[BACKUP_PATHS];
	unsigned path_count; /* 1 or 2 */
	struct redis_login login;
};

/* What a reading asks for. */
enum backup_reads {
	BACKUP_READS_ITEMS,
	BACKUP_READS_NAMES, /* of messages the names, of all else the values, too */
	BACKUP_READS_THESE, /* messages with these ids */
};

/* What the owner does when something happens to a backup that is no probe. The loop makes these calls. Each may call
 * every function of this header. */
struct backup_ops {
	/* The state is SEEN: @b->sight is fresh. */
	void (*on_seen)(struct backup *b);
	/* The server is ours under the epoch of backup_claim(). */
	void (*on_claimed)(struct backup *b);
	/* A field and its value came; and then: all of them have come. @value NULL: a message of which only the name
	 * was asked for. */
	void (*on_item)(struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len);
	void (*on_read)(struct backup *b);
	/* A change was made to @i. */
	void (*on_done)(struct backup *b, enum change_kind kind, struct item *i);
	/* The server's memory is full: @i was not stored. Of a backup that counts. */
	void (*on_refused)(struct backup *b, struct item *i);
	/* The same of a FILLING backup, once for several items: it lacks them still. */
	void (*on_full)(struct backup *b);
	/* The marker of that version is written. */
	void (*on_marked)(struct backup *b, uint64_t version);
	/* A request sent at @sent_ms was executed under our token, in any state that has a token. */
	void (*on_renewed)(struct backup *b, int64_t sent_ms);
	/* The line of a FILLING backup is short. */
	void (*on_room)(struct backup *b);
	/* Given up or lost in the state @was, which is more than SEEN. Its line is still complete, and is dropped
	 * after the call. */
	void (*on_given_up)(struct backup *b, enum backup_state was);
	/* The server has an owner of that higher epoch. */
	void (*on_deposed)(struct backup *b, uint64_t epoch);
	/* True: a marker that was read leaves the server of @b behind, as its own marker has it. Of a probe, too. */
	bool (*is_behind)(const struct backup *b);
};

/* Shared by both backups; set by their owner. */
struct backup_shared {
	struct worker *worker;
	const struct backup_ops *ops;
	void *user;
	struct seal *seal;
	char owner_key[96], items_key[96];
	char nonce[NONCE_LEN + 1]; /* of this process */
	uint64_t epoch;            /* 0: none yet */
	/* the newest one, as all members get it. @left: of each server, what a marker says if it leaves that one behind
	 */
	struct marker marker;
	uint32_t heartbeat_ms, path_timeout_ms, give_up_ms;
	uint32_t block_items; /* of a block that is read, at most */
};

/* What is read of a server, in blocks. */
struct backup_reading {
	enum backup_reads what;
	uint32_t block;        /* how many items the next block has */
	const uint64_t *fetch; /* ids of messages; their owner's, until on_read */
	size_t fetch_count, fetched;
};

struct backup_path {
	struct redis_link link;
	struct backup *backup;
	int64_t retry_ms, beat_ms; /* next connect, next heartbeat */
	struct queue_path_stats stats;
};

struct backup {
	struct backup_path paths[BACKUP_PATHS];
	struct backup_path *active; /* NULL: none is ready */
	struct backup_shared *shared;
	const struct backup_conf *conf;
	/* Its owner may set it and then give the backup up: after some ticks the backup is AWAY with this conf, which
	 * has to outlive it. NULL: no other server takes its place. */
	const struct backup_conf *next;
	struct turn_end turn;
	struct change_line line;
	struct sight sight;
	struct sight judged;   /* @sight at backup_claim(); an answer that was under way may have replaced that since */
	struct sight replaced; /* CLAIMED: the record before our claim; AWAY: not known */
	char run_id[RUN_ID_LEN + 1];
	enum backup_state state;
	unsigned index;
	bool is_probe;  /* it only looks, and the queue is not called */
	unsigned looks; /* answers that are missing before the server is known */
	uint64_t generation;
	struct backup_reading reading;
	struct refusal refusal;
	int64_t heard_ms;       /* last answer, or progress of the active path */
	int64_t asked_ms;       /* when the question was sent whose answer is @sight */
	int64_t renewed_ms;     /* our token counted there at that time; 0: not since the claim */
	int64_t fill_after_ms;  /* do not fill before */
	struct item *fill_next; /* FILLING: the next item that it may lack; NULL: all are in the line */
	struct queue_backup_stats stats;
	int64_t check_ms;     /* its policies are looked at again then */
	bool has_saved;       /* this process of the server has written a snapshot, */
	bool saves_told;      /* and the log says so, or that it will */
	const char *not_used; /* why it is not claimed, or does not count, as it was told; NULL: it was not */
};

/* Connects on the next tick. @conf and @shared have to outlive it. */
void backup_init(struct backup *b, unsigned index, const struct backup_conf *conf, struct backup_shared *shared);
/* Every 50 to 250 ms: connects, heartbeats, time-outs. */
void backup_tick(struct backup *b, int64_t now_ms);
/* Closes the connections; true when all are closed. Call it until then. */
bool backup_stop(struct backup *b);

/* CLAIMED: on_item for each item that is there, then on_read. THESE: the messages with these @ids, 1 or more, behind a
 * reading of names. */
void backup_read(struct backup *b, enum backup_reads what, const uint64_t *ids, size_t count);
/* The next state, where its owner decides it.
 * COMPARING (CLAIMED): it receives changes from now on, and the names of its items are read: on_item, on_read.
 * FILLING (COMPARING): on_room asks for the items that it lacks.
 * MARKING (CLAIMED or FILLING): it has all items. From now on a message is stored only after its answer, too. The owner
 * then pushes the marker. */
void backup_advance(struct backup *b, enum backup_state to);

/* Append a change; it leaves at the end of the turn. Only when backup_is_live(). 0; CSSL_E_NO_MEMORY or CSSL_E_FULL:
 * the backup is given up. */
int backup_push(struct backup *b, enum change_kind kind, struct item *i);
/* True: it answers, and does not let this gateway in: it did so in the last seconds. */
static inline bool backup_refuses(const struct backup *b)
{
	return refusal_lasts(&b->refusal, redis_link_clock_ms());
}
/* True: it lets this gateway in, or refuses. Else it is silent, or lost. */
static inline bool backup_answers(const struct backup *b)
{
	return b->active || backup_refuses(b);
}
/* Drop the line, close the connections and begin again. Nothing happens if it is AWAY and all are closed. @why: static
 * text for the log. */
void backup_give_up(struct backup *b, const char *why);
extern const char backup_begins_again[]; /* such a @why: the server is used again at once */

/* True: it gets every change. It gets new items only if backup_counts(), or by on_room. */
static inline bool backup_is_live(const struct backup *b)
{
	return b->state >= BACKUP_COMPARING && b->state <= BACKUP_IN_SYNC;
}
/* True: no message is stored without its answer. */
static inline bool backup_counts(const struct backup *b)
{
	return b->state == BACKUP_MARKING || b->state == BACKUP_IN_SYNC;
}
