/* item.h: the items that the queue and its backups hold: messages, decided transactions, and an operator's orders. A
 * part of its own, because who has an item, and in which state, must be true whatever asks for it. The index finds an
 * item by its id; the list has all of them in order of their arrival.
 *
 * An item has one reference from the index, and one from each request to a backup that names it. The last one frees
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKUPS        2u  /* servers that hold a copy of each item */
#define ITEM_FIELD_LEN 17u /* kind and 16 hex digits */

enum item_kind {
	ITEM_MESSAGE = 'm',
	ITEM_STATE = 's', /* a field of its own in the backups, but not an item in memory */
	ITEM_DECIDED = 'd',
	ITEM_ORDER = 'o',
	ITEM_GRAVE = 'g', /* the id of a message that was deleted */
};

/*
 *  STORING --> READY <--> TAKEN --> GONE
 *     |  |       ^  |  ^       |
 *     |  |       |  |  +-- DEFERRED <-- TAKEN
 *     |  |       |  +--> HELD <--> ...
 *     |  +-> PARKED --> GONE
 *     +--> GONE (refused)
 *     +--> OPAQUE
 *
 *  HELD --> STORING: while it is read, if a later state of it says so
 *  OPAQUE --> STORING: while it is read, if another server has a copy that can be opened
 */
enum item_state {
	ITEM_STORING,  /* not every backup has answered */
	ITEM_PARKED,   /* every backup has it, and its sender has not decided yet that it is delivered */
	ITEM_READY,    /* in its destination's line */
	ITEM_TAKEN,    /* a delivery has it */
	ITEM_DEFERRED, /* waits for its time */
	ITEM_HELD,     /* waits for an operator */
	ITEM_KEPT,     /* a decided transaction, an order or a grave that is stored */
	ITEM_OPAQUE,   /* it was read and cannot be opened: kept unchanged, also in the backups, until a gateway has its
			  key */
	ITEM_GONE,     /* deleted; only references are left */
	ITEM_STATES,
};

#define ITEM_WAITS_MARK (1u << 7) /* in item.waits: a marker without the lost backup has to be answered first */

/* FRESH: just read from a backup; its later states and its grave may not have been read yet. */
enum item_reading { ITEM_SETTLED, ITEM_FRESH };

/* DAMAGED: a server that has not "seen" it has a copy that cannot be opened. */
enum item_copies { ITEM_COPIES_ALIKE, ITEM_COPIES_DAMAGED };

/* IN_DOUBT: a delivery of it may have ended without our knowledge. */
enum item_past { ITEM_PAST_CLEAR, ITEM_PAST_IN_DOUBT };

struct item {
	uint64_t id;
	struct item *newer, *older;    /* of all */
	struct item *next, *previous;  /* of the destination's line */
	struct line_share *share;      /* READY: its place in the line */
	struct queue_destination *to;  /* of a message or an order; OPAQUE: NULL */
	struct queue_receipt *receipt; /* while STORING */
	struct item *with;             /* STORING: a message's decided transaction, with a reference; else NULL */
	uint8_t *sealed, *note;        /* owned; @note: the sealed state, NULL: the first one */
	int64_t accepted_ms, due_ms;   /* of the queue's clock */
	uint32_t sealed_len, note_len;
	uint32_t source;  /* of a message: a hash, so that sources take turns */
	uint32_t heap_at; /* in the heap of deferred items, from 1 */
	uint16_t refs;
	uint16_t attempts, steps; /* of the last state (content.h) */
	uint8_t kind, state;
	uint8_t waits;   /* a bit for each backup that has to answer, and ITEM_WAITS_MARK */
	uint8_t seen;    /* a bit for each backup that had it at the last reading */
	uint8_t refused; /* of an order: a bit for each backup whose memory was full, and that gets it again */
	uint8_t becomes; /* of a message that is STORING: enum item_state, READY or PARKED, when it is stored */
	uint8_t reading, copies, past; /* enum item_reading, item_copies, item_past */
};

/* Only as drawn. */
void item_move(struct item *i, enum item_state to);
const char *item_state_name(enum item_state s);

struct item_set {
	struct item **slots; /* open addressing */
	size_t cap, count;
	struct item *oldest, *newest;
	uint64_t bytes; /* of all @sealed and @note */
};

/* The item has one reference, from the index. Takes over @sealed. NULL: out of memory; then the caller keeps
 * @sealed. */
struct item *item_add(struct item_set *set, enum item_kind kind, uint64_t id, uint8_t *sealed, size_t sealed_len);
struct item *item_find(const struct item_set *set, uint64_t id);
/* Takes it out of the index and the list, and drops the index's reference. */
void item_remove(struct item_set *set, struct item *i);
/* Takes over @sealed, and gives back the one that it had: to the caller, who knows it. */
void item_set_sealed(struct item_set *set, struct item *i, uint8_t *sealed, size_t len);
/* Takes over @note. */
void item_set_note(struct item_set *set, struct item *i, uint8_t *note, size_t len);
static inline void item_hold(struct item *i)
{
	i->refs++;
}
void item_drop(struct item *i);
void item_set_clear(struct item_set *set);

/* The memory of an item beside its sealed bytes: two slots of the index, and what malloc() adds to both. */
#define ITEM_ROOM (sizeof(struct item) + 2 * sizeof(struct item *) + 32)

static inline uint64_t item_bytes(const struct item *i)
{
	return i->sealed_len + ITEM_ROOM;
}

/* Of all items. */
static inline uint64_t item_set_memory(const struct item_set *set)
{
	return set->bytes + set->count * ITEM_ROOM;
}

/* An order was given and not read, and not every backup has it. */
static inline bool item_is_unstored(const struct item *i)
{
	return i->state == ITEM_STORING && i->reading != ITEM_FRESH;
}

void item_field(enum item_kind kind, uint64_t id, char out[static ITEM_FIELD_LEN]);
/* 0 or CSSL_E_RANGE. */
int item_field_parse(const char *field, size_t len, enum item_kind *kind, uint64_t *id);
