/* stock.h: what the queue holds. A part of its own, because here and nowhere else an item comes, changes or goes, each
 * time in memory and in every backup, so that no backup misses one. Used by all parts of the queue.
 *
 * Items have one kind each; what is of one kind only (lines, decided transactions) is told when one comes or goes.
 */
#pragma once

#include "smtpproxy/queue/queue.h"

/* Ids of messages that were read and then deleted, until all backups are in sync: a server that was not read may still
 * have them. Only stock.c reads it. */
struct gone {
	uint64_t *ids; /* the first @sorted are in ascending order */
	size_t count, cap, sorted;
};

/* A new item with that content, in its destination or among the decided ones. It is pushed next. NULL: out of memory.
 */
struct item *stock_make(struct queue *q, enum item_kind kind, const struct content *c);
/* Push it to every live backup, a new item only to those that count; those owe an answer if @waits is true. */
void stock_push(struct queue *q, enum change_kind kind, struct item *i, bool waits);
/* Out of memory and out of the backups. */
void stock_remove(struct queue *q, struct item *i);

/* An item that @b has. Takes over @sealed. 0; CSSL_E_NO_MEMORY; else why it cannot be opened: it is kept as it is. */
int stock_read(struct queue *q, const struct backup *b, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t len);
/* All has been read: delete what has a grave. A delivery under way goes on. */
void stock_bury(struct queue *q);
/* All backups are in sync, so no server has such a message: ids and graves go, out of the backups too. */
void stock_forget_graves(struct queue *q);
/* All of it, out of memory only. */
void stock_clear(struct queue *q);

/* These no longer have to answer. When none has to, @i is stored, and its sender is told. @bits: of item.waits. */
void stock_answered(struct queue *q, struct item *i, unsigned bits);
/* It cannot be stored, or its sender left: it is removed, and its sender is told. */
void stock_refuse(struct queue *q, struct item *i, enum queue_outcome outcome);
/* Another gateway has the queue, so the waiting senders will get no answer from the backups: they are told LOST. */
void stock_fail_unstored(struct queue *q);
