/* change_line.h: the line of changes for one backup. A part of its own, because the order of writes is the law of the
 * queue: a marker never leaves before what it promises is answered. The first ones are sent and have no answer yet, in
 * calls of several changes of one kind; the others wait. No sockets.
 */
#pragma once

#include <stdint.h>

#include "smtpproxy/queue/items/destination.h"

enum change_kind { CHANGE_PUT, CHANGE_REPLACE, CHANGE_DELETE, CHANGE_MARK };

/* One call has at most so many changes, and so many bytes unless it has a single longer change. The window limits
 * the calls without an answer. */
#define CALL_CHANGES_MAX 64u
#define CALL_BYTES_MAX   (128u << 10)
#define WINDOW_CALLS_MAX 256u
#define WINDOW_BYTES_MAX (8u << 20)

struct change {
	struct item *item; /* with a reference; NULL for MARK */
	enum change_kind kind;
};

struct change_call {
	uint32_t changes, bytes;
	uint64_t version; /* of a MARK */
};

struct change_line {
	struct change *ring; /* of @cap, a power of two */
	uint32_t first, count, cap;
	uint32_t sent; /* how many of them, from the first, are sent */
	struct change_call calls[WINDOW_CALLS_MAX];
	uint32_t calls_first, calls_count;
	uint64_t bytes; /* of the calls */
	unsigned backup;
	struct destination_changes other; /* of no destination */
};

/* What the server did with a change that it answered. */
enum change_outcome { CHANGE_MADE, CHANGE_REFUSED };

/* 0 or CSSL_E_NO_MEMORY. Takes a reference of @i, which may be NULL. */
int change_push(struct change_line *l, enum change_kind kind, struct item *i);
/* The change at that index of the line. */
static inline struct change *change_at(const struct change_line *l, uint32_t at)
{
	return &l->ring[(l->first + at) & (l->cap - 1)];
}
/* The next call, which counts as sent: how many of the waiting changes it takes, the last of @sent. 0: none waits, the
 * window is full, or it is a MARK (of that @version) and an answer is missing. */
uint32_t change_next_call(struct change_line *l, uint64_t version, struct change_call *call);
/* The oldest call was answered: it leaves the window. The caller then pops its changes. */
struct change_call change_call_answered(struct change_line *l);
/* The first change leaves the line; the caller gets its reference. */
struct change change_pop(struct change_line *l, enum change_outcome outcome);
/* The connection was lost: all calls have to be sent again. Returns the number of their changes. */
uint32_t change_unsend(struct change_line *l);
void change_clear(struct change_line *l);
