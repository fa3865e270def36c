/* reading.h: items that servers show become items in memory, before it is known what all servers have of them. A part
 * of its own, because a state may come before its message, and from another server.
 */
#pragma once

#include "smtpproxy/queue/backup/backup.h"

struct queue;

/* A state of a message that was read before the message. */
struct read_state {
	uint64_t id;
	unsigned at;     /* of the server number */
	uint8_t *sealed; /* owned */
	size_t len;
};

/* Only reading.c reads it; stock_clear() frees it. */
struct reading {
	struct read_state *states; /* that were read, and are not applied yet */
	size_t state_count, state_cap;
	uint64_t *told; /* ids of messages that the server @told_by named, and that no other had shown yet */
	size_t told_count, told_cap;
	unsigned told_by;
};

/* A field of @b and its value. @value NULL: a message of which only the name was asked for. */
void reading_item(
	struct queue *q, struct backup *b, const char *field, size_t field_len, const uint8_t *value, size_t len);
/* READING: each server has told what it has. True: messages that only one of them has are fetched now. */
bool reading_fetch_told(struct queue *q);
/* Of each message that is read whole, the latest state counts; and all items stand in their order. */
void reading_apply(struct queue *q);
/* @i was read, and its later states and its grave may not have been: a server is being read, or @i is of one that was
 * lost before its end. */
bool reading_is_half(const struct queue *q, const struct item *i);
