/* uniting.h: what a claimed server holds becomes a part of the queue, and the server gets what it lacks. A part of its
 * own, because what two servers have of one message must become one message.
 */
#pragma once

#include "smtpproxy/queue/backup/backup.h"

struct queue;

/* backup_ops.on_claimed, on_item and on_read. */
void uniting_claimed(struct backup *b);
void uniting_item(struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len);
void uniting_read(struct backup *b);
/* @b was lost in the state @was. True: the recovery goes on without it, or begins again, and all is done. */
bool uniting_lost(struct queue *q, struct backup *b, enum backup_state was);
