/* destination.h: the queue of one destination (smtpproxy/outward/destination.h is one receiver). A part of its own,
 * because who waits for whom is decided here and nowhere else. It has a line of messages that may be delivered now. The
 * sources in a line take turns, so that nobody stands behind all messages of another one; the messages of one are in
 * order. The messages of all destinations that wait for their time are in one heap. No clock. destination_sweep() frees
 * destinations without messages and orders. Nothing here looks at all destinations, of which there may be 100,000,
 * except destination_next().
 */
#pragma once

#include <sys/queue.h>

#include "net/memory/table.h"
#include "smtpproxy/queue/items/item.h"

#define DESTINATION_NAME_MAX 255u /* a domain (RFC 5321 4.5.3.1.2), or an address literal */

/* UNTOLD: in the table's list @due. The owner takes it out there, and looks at its line: the line is not empty any
 * more, or the order of the destination changed. */
enum destination_due { DUE_NONE, DUE_UNTOLD };

/* IDLE: in the table's list of those that may have neither a message nor an order. */
enum destination_use { DESTINATION_USED, DESTINATION_UNUSED };

enum destination_flow { DESTINATION_FLOWS, DESTINATION_STOPPED };

/* The changes of a destination's messages and orders that a backup was given. @unanswered are in its line. */
struct destination_changes {
	uint64_t answered, unanswered;
};

/* The messages of one source in a line. */
struct line_share {
	TAILQ_ENTRY(line_share) turn; /* only while it has messages */
	struct table_link link;       /* by destination and source; not the line's own one */
	struct queue_destination *of;
	uint32_t source;
	struct item *first, *last;
};

struct queue_destination {
	struct destination_table *table;
	struct table_link link; /* by name */
	STAILQ_ENTRY(queue_destination) due_next, idle_next;
	enum destination_due due;
	enum destination_use use;
	TAILQ_HEAD(, line_share) turns;
	struct line_share own; /* of its first source, and of those for which there was no memory */
	size_t count, ready, taken, held, deferred; /* @count: messages that are stored or being stored */
	uint64_t bytes;
	enum destination_flow flow;
	uint32_t rate;      /* messages a minute; 0: no limit */
	int64_t next_us;    /* with a rate: no message is taken before */
	struct item *order; /* that set them and is kept in the backups; NULL: none */
	struct destination_changes changes[BACKUPS];
	char name[];
};

struct destination_table {
	void (*on_due)(struct destination_table *t); /* the list @due has one more. NULL: nobody is told */
	struct table names, shares;
	struct item **heap; /* DEFERRED items, by due_ms */
	size_t heap_count, heap_cap;
	STAILQ_HEAD(, queue_destination) idle, due; /* initialised with the first destination */
};

/* The one of that name; made if there is none and @make is true. Names compare as bytes: the caller writes them in
 * lower case. NULL: none, or out of memory. */
struct queue_destination *destination_get(struct destination_table *t, const char *name, size_t len, bool make);
/* Each of them in no order: NULL as @d gives the first, and NULL comes behind the last. */
struct queue_destination *destination_next(const struct destination_table *t, const struct queue_destination *d);
/* The message, or the order, @i is of @d from now on. The order with the highest id comes first. */
void destination_take_in(struct queue_destination *d, struct item *i);
/* Out of its line and its destination, which it still names. */
void destination_let_go(struct destination_table *t, struct item *i);
/* Frees those that have neither a message nor an order, no untold line, and no unanswered change. */
void destination_sweep(struct destination_table *t);
/* When the lines of all backups are empty. */
void destination_table_clear(struct destination_table *t);

/* Behind the other messages of its source. The item becomes READY. */
void destination_append(struct queue_destination *d, struct item *i);
/* Out of the line or the heap; then by its state and its due_ms: it counts as HELD, becomes DEFERRED until then, or
 * READY; also if there is no memory to defer it. item.to is its destination. */
void destination_settle(struct destination_table *t, struct item *i, int64_t now_ms);
/* The item becomes HELD. */
void destination_hold(struct destination_table *t, struct item *i);
/* The first item that is due at @now_ms goes to the end of its destination's line. NULL: none is due. */
struct item *destination_wake(struct destination_table *t, int64_t now_ms);
/* The first of the source whose turn it is becomes TAKEN. NULL: the line is empty, or flow and rate allow none at
 * @now_us. A fast line that was not looked at for a while may catch up on half a second. */
struct item *destination_take(struct queue_destination *d, int64_t now_us);

/* Stop the line or let it flow, with at most so many messages a minute (0: no limit). */
void destination_pace(struct queue_destination *d, enum destination_flow flow, uint32_t rate);
static inline const char *destination_flow_name(enum destination_flow flow)
{
	return flow == DESTINATION_STOPPED ? "stopped" : "flows";
}
