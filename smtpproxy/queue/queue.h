/* queue.h: the mail queue of `deliver: queue`: messages in memory, a line for each destination, and two backups on two
 * independent Redis servers, so that what was accepted survives the gateway and either server.
 *
 * A message is stored when every backup in sync has answered (at least one). Only then may its sender get a 250. The
 * backups see sealed bytes only (seal.h). A gateway owns its queue by an epoch in the backups: who claims a higher one
 * replaces it. The replaced one can write nothing more there, and its lease ends before the new one delivers.
 *
 * One worker's thread uses a queue. No callback runs inside a call of this header, except where it says so.
 * Times are milliseconds: of the queue's clock (queue_now_ms()) where a restart has to know them, else of
 * CLOCK_BOOTTIME.
 *
 * After a crash between a receiver's 250 and the confirmed delete, the message is delivered again (RFC 1047): at most
 * queue_stats.deletes_unconfirmed messages and those taken. While a backup counts, no message is taken above
 * QUEUE_UNCONFIRMED_MAX of the former.
 */
#pragma once

#include "proto/agents_key.h"
#include "smtpproxy/queue/backup/backup.h"
#include "smtpproxy/queue/markers/choice.h"
#include "smtpproxy/queue/items/content.h"
#include "smtpproxy/queue/items/destination.h"
#include "smtpproxy/queue/queue_stats.h"

#define QUEUE_UNCONFIRMED_MAX 1000u

enum queue_role {
	QUEUE_OWNER, /* takes the queue over when it starts, unless it meets an owner that renews its lease: then it is
			a standby. If a member is absent it waits for an operator, because a standby may own that one */
	QUEUE_STANDBY, /* takes it over when its owner has been silent for takeover_ms */
	QUEUE_ALONE,   /* as OWNER, but no other host ever runs a gateway of this queue. So it goes on without an absent
			  server, claims servers that came back empty, and delivers from memory while no server
			  answers */
};

/* All of it is copied, except the texts, the keys' ring and the passwords, which have to outlive the queue. A number
 * 0 means the default in its comment. */
struct queue_conf {
	const char *name; /* of the gateway, in the backups: 1 to 64 characters */
	const struct key_ring *keys;
	struct backup_conf backups[BACKUPS];
	struct backup_conf spares[SPARES_MAX]; /* every gateway of the queue has to have the same ones */
	unsigned spare_count;
	enum queue_role role;
	uint32_t lease_ms;           /* 5000; more than give_up_ms */
	uint32_t heartbeat_ms;       /* 250 */
	uint32_t path_timeout_ms;    /* a path without an answer for so long is bad */
	uint32_t give_up_ms;         /* a backup without an answer on any path for so long is given up */
	uint32_t replace_ms;         /* 60000: a spare takes the place of a backup that is lost for so long */
	uint32_t absent_ms;          /* 10000: ALONE: it waits so long for an absent backup when it starts */
	uint32_t takeover_ms;        /* 15000; more than two leases */
	uint32_t decided_s;          /* 3600: how long decided transactions are kept */
	uint32_t decided_max;        /* 1000000 decided transactions; then the oldest is forgotten for each new one */
	uint32_t destinations_max;   /* 1000 with messages; then QUEUE_FULL */
	uint32_t messages_max;       /* of one destination */
	uint32_t block_items;        /* 1000: items of a block when a server is read, at most */
	uint32_t defer_most_ms;      /* 14400000: no message that is read back waits longer */
	uint64_t unstored_bytes_max; /* of messages whose senders wait for the backups */
	/* A number of the source of a message, by its envelope: in each line, sources take turns. NULL: all are one. */
	uint32_t (*source_of)(struct content_bytes envelope);
	uint64_t memory_max; /* bytes of all items, then QUEUE_FULL; 0: no bound */
};

/* Each may call every function of the queue. */
struct queue_ops {
	/* A backup is in sync (again), or there is memory again: open the listening sockets. */
	void (*on_ready)(void *user);
	/* No backup is in sync, memory_max is used up, or the queue belongs to another gateway: close them. Stored
	 * messages are still delivered, as long as queue_may_deliver(). */
	void (*on_unready)(void *user);
	/* The line of @d is not empty any more. @d lasts until a function of the queue is called. */
	void (*on_due)(void *user, const struct queue_destination *d);
	/* queue_may_take() again: ask for the messages for which queue_take() answered QUEUE_LATER. */
	void (*on_may_take)(void *user);
	/* Another gateway has taken the queue over. Drop all deliveries that have not sent their final dot. */
	void (*on_deposed)(void *user);
	/* queue_stop() is done. queue_destroy() is legal inside. */
	void (*on_stopped)(void *user);
};

/* NULL: out of memory. It begins to connect at once. */
struct queue *queue_create(struct worker *w, const struct queue_conf *conf, const struct queue_ops *ops, void *user);
/* Add, take and deliver nothing more. When the backups have answered every change, so that a queue that is read back
 * repeats no delivery, or after @within_ms: give up connections and memory. Stored messages stay in the backups.
 * Waiting senders get no answer. May be called again, with another limit. */
void queue_stop(struct queue *q, uint32_t within_ms);
void queue_destroy(struct queue *q); /* call it after on_stopped; NULL is legal */

/* The time of day as the queue counts it: the wall clock, but without the jumps when that is set (queue_clock.h). */
int64_t queue_now_ms(const struct queue *q);

/* 0: messages can be added. QUEUE_NOT_READY. QUEUE_FULL: memory_max is used up, until a tenth of it is free again. */
int queue_room(const struct queue *q);

/* An operator's order: a standby takes over now; an owner goes on without absent members, or claims servers that came
 * back empty although another gateway may have owned them meanwhile. If no server that answers is complete, it goes on
 * with what these hold. It waits for answers that are younger than itself. */
void queue_take_over(struct queue *q);

/* Conditions that the functions below return. */
enum queue_answer {
	QUEUE_NOT_READY = 1,  /* no backup in sync, or not the owner: 421 */
	QUEUE_BUSY,           /* too many messages wait for the backups: until one of them is stored */
	QUEUE_FULL,           /* memory_max, the destination's line, or the table of destinations: 452 */
	QUEUE_NONE,           /* no such message, none is due, or its state does not allow it */
	QUEUE_LATER,          /* the destination's rate is used up: ask again soon; or not queue_may_take() */
	QUEUE_UNDECIDED,      /* the backups have not answered for that transaction yet */
	QUEUE_FORGOTTEN,      /* it is not known, but a gateway before this one may have decided it */
	QUEUE_FORGOTTEN_HERE, /* the same of this gateway: if the caller remembers all of its own, it never was */
};

/* --- the sender's side --- */

enum queue_outcome {
	QUEUE_STORED,  /* 250 */
	QUEUE_REFUSED, /* a backup's memory is full, nothing is stored: 452 */
	QUEUE_LOST,    /* another gateway took the queue over: 421. It may have the message */
};

/* Embedded in the sender's transaction until on_stored or queue_forget(); a PARKED one's until queue_unpark(). */
struct queue_receipt {
	void (*on_stored)(struct queue_receipt *r, enum queue_outcome outcome);
	uint64_t id; /* set by queue_add() */
	struct item *item;
};

/* NEW: gets QUEUE_BUSY while queue.memory is used up.
 * MORE: further parts of a message of which one was taken. They get QUEUE_BUSY while a quarter is used up, so that one
 * message for many domains leaves room for others.
 * NEXT: another part of the same message, as large as this one, was stored just now, and this part takes its room. So
 * it does not wait for room, and never gets QUEUE_BUSY.
 * INSTEAD: as NEW, but it takes the place of another message, so memory is no reason to refuse it. */
enum queue_turn { QUEUE_TURN_NEW, QUEUE_TURN_MORE, QUEUE_TURN_NEXT, QUEUE_TURN_INSTEAD };

/* PARKED: it is stored, but not delivered before queue_unpark(): a part of a message that is delivered when all parts
 * are stored. A gateway that reads the queue back delivers it, because nobody knows any more what its sender was told.
 */
enum queue_start { QUEUE_AT_ONCE, QUEUE_PARKED };

/* @transaction: the name of a transaction about which the cluster may ask (doc/xcssltx.md), as "id/number". @reply:
 * its reply. Both are stored with the message. Length 0: none. */
struct queue_mail {
	struct content_bytes destination; /* 1 to 255 bytes, lower case */
	struct content_bytes envelope;    /* in a form of the delivery side's own */
	struct content_bytes body;
	struct content_bytes transaction, reply;
	enum queue_turn turn;
	enum queue_start start;
};

/* Copies and seals @m. 0: receipt->on_stored will come. NOT_READY, BUSY, FULL; CSSL_E_NO_MEMORY, CSSL_E_RANGE. */
int queue_add(struct queue *q, const struct queue_mail *m, struct queue_receipt *receipt);
/* A PARKED message may be delivered. 0. NONE: it is not there, or not parked. */
int queue_unpark(struct queue *q, const struct queue_receipt *r);
/* The sender left before on_stored, or the message is PARKED: it is deleted again. */
void queue_forget(struct queue *q, struct queue_receipt *r);

/* 0: the reply is in @out (@cap bytes; longer ones are cut), its length in @len. UNDECIDED; FORGOTTEN; FORGOTTEN_HERE;
 * NONE: it was not decided, or longer than decided_s ago. */
int queue_decided(struct queue *q, struct content_bytes name, char *out, size_t cap, size_t *len);

/* --- the delivery's side --- */

/* IN_DOUBT: an earlier delivery may have succeeded without our knowledge, because another process made it, or because
 * it was under way at a queue_put_back() in doubt. */
enum queue_past { QUEUE_CLEAR, QUEUE_IN_DOUBT };

struct queue_taken {
	uint64_t id;
	int64_t accepted_ms;
	unsigned attempts; /* so far */
	enum queue_past past;
	/* of queue_open(): */
	struct content_bytes envelope, body;
	struct content_bytes note; /* of the last queue_retry() */
	void *memory;              /* that holds them */
};

/* False: as many deletes are unconfirmed as a crash may repeat deliveries: on_may_take tells when a backup has
 * confirmed some, or is given up. While no backup counts there is no bound: nobody could confirm them. */
bool queue_may_take(const struct queue *q);
/* Takes the next message of that destination that may be delivered now. 0: it is TAKEN until one of the functions
 * below; NONE, also when queue_order() stops it: on_due tells when that changes; LATER. */
int queue_take(struct queue *q, struct content_bytes destination, struct queue_taken *out);
/* Decrypts a message that is taken, when its receiver is about to take it. 0. NONE: it is HELD now, because its state
 * cannot be opened and nobody knows which of its recipients have it. CSSL_E_NO_MEMORY: it stays taken. */
int queue_open(struct queue *q, struct queue_taken *t);
/* Frees the plain bytes; the message stays taken. All zero is legal. */
void queue_taken_free(struct queue_taken *t);

/* Ask right before each final dot. True: no other gateway can have the queue: the lease holds; or this one is ALONE, no
 * server answers, and this process was not stopped just now. */
bool queue_may_deliver(const struct queue *q);

/* It was delivered: delete it everywhere. 0 or NONE. */
int queue_done(struct queue *q, uint64_t id);
/* ATTEMPT: it failed. PART: a part of its recipients got it, and it goes on with the others; this does not count as an
 * attempt. BEGIN: one more attempt begins with that note; the message stays taken, and @due_ms means nothing. */
enum queue_step { QUEUE_STEP_ATTEMPT, QUEUE_STEP_PART, QUEUE_STEP_BEGIN };

/* Try again at @due_ms (queue_now_ms()); 0: from the end of its line. @note: for the next attempt (the remaining
 * recipients, the last reply); it replaces the earlier one. 0, NONE, CSSL_E_NO_MEMORY (it goes back to its line
 * unchanged). */
int queue_retry(struct queue *q, uint64_t id, enum queue_step step, int64_t due_ms, struct content_bytes note);
/* Put it back until @due_ms (queue_now_ms()), unchanged; 0: to the end of its line. This does not count as an attempt.
 * IN_DOUBT: the receiver was lost when it could have taken it. CLEAR: a doubt stays. 0 or NONE. */
int queue_put_back(struct queue *q, uint64_t id, int64_t due_ms, enum queue_past past);
/* It failed for good: store @notice, then delete the message. NULL: only delete (null sender, RFC 3464). @note: as in
 * queue_retry(). It is stored before the notice: a message that stays, because of a crash or because the backups
 * refuse the notice, fails again, and no recipient gets it again. Returns like queue_add(), or NONE. Unless it returns
 * 0, the message stays taken. */
int queue_bounce(struct queue *q, uint64_t id, const struct queue_mail *notice, struct content_bytes note);

/* --- the operator's side --- */

/* Show a message without taking it from its line. NULL: there is none. @out may be NULL; else it has the message, and
 * queue_taken_free() frees it. Its memory is NULL if the message cannot be opened. */
const struct item *queue_look(const struct queue *q, uint64_t id, struct queue_taken *out);
/* RETRY: a DEFERRED one is due now. HOLD, RELEASE: READY or DEFERRED ones wait until they are released, over restarts
 * too. DELETE: not one that is being stored or delivered, or PARKED. */
enum queue_act { QUEUE_ACT_RETRY, QUEUE_ACT_HOLD, QUEUE_ACT_RELEASE, QUEUE_ACT_DELETE };

/* 0; NONE; HOLD and RELEASE: CSSL_E_NO_MEMORY, or why its state cannot be opened. */
int queue_act(struct queue *q, uint64_t id, enum queue_act act);

/* Stop or start the deliveries of that destination, which may be unknown yet, and limit them to @rate messages a minute
 * (0: no limit). Deliveries under way go on. The order counts at once. It is kept in the backups: it counts after a
 * restart, and at a gateway that takes the queue over. A backup whose memory is full gets it later. Until every backup
 * has it, queue_stats.orders_unstored counts it, and the backups keep the order before it. 0, NOT_READY, FULL,
 * CSSL_E_RANGE or CSSL_E_NO_MEMORY. */
int queue_order(struct queue *q, struct content_bytes destination, enum destination_flow flow, uint32_t rate);

void queue_get_stats(const struct queue *q, struct queue_stats *out);
void queue_each_destination(const struct queue *q, int (*fn)(void *ctx, const struct queue_destination *d), void *ctx);
/* From the oldest to the newest message, until @fn returns not 0. An OPAQUE one has no destination (@to is NULL). */
void queue_each_message(const struct queue *q, int (*fn)(void *ctx, const struct item *i), void *ctx);
