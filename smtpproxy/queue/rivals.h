/* rivals.h: another gateway: what it wrote to a server, and whether this one ends because of it. A part of its own,
 * because it must never end while its memory is all that is left of a mail.
 */
#pragma once

#include "smtpproxy/queue/backup/backup.h"

struct queue;

/* The server's own record shows that no other gateway has claimed it since. An order may have raised the epoch, but
 * what was claimed before this queue was read back may have more. */
bool rivals_is_ours(const struct queue *q, const struct backup *b);
/* backup_ops.is_behind: a marker that was read leaves the server of @b behind. */
bool rivals_is_behind(const struct backup *b);
/* The server went on under a marker that nobody knew when this queue was read back, or without the servers that were
 * read: it has messages that no other server has. */
bool rivals_is_branch(const struct queue *q, const struct backup *b);
/* If it is one: it is apart until it was read, and the next markers are above its own one. */
void rivals_note_branch(struct queue *q, const struct backup *b);

/* The record of @b, which may be a probe, has a higher epoch. It is DEPOSED, unless the other gateway lacks what is
 * here. */
void rivals_meet(struct queue *q, const struct backup *b);
/* backup_ops.on_deposed. */
void rivals_deposed(struct backup *b, uint64_t epoch);
/* Of an order, when all servers were asked just now: count higher than others that lack what is in memory. */
void rivals_outrank(struct queue *q);
