/* connections_seen.h: this agent's memory of the cluster's connections. For each connection it keeps the highest
 * epoch of any owner, and how far its owners are known to have sealed. An ownership that would begin below either is
 * refused, for every asker: a second ciphertext for one key and nonce could follow.
 *
 *     ALIVE    an agent owns it, or froze it towards another one
 *     AT_REST  frozen, and no live part of it is on its way
 *     OVER     it ended
 *
 * A connection that is over is remembered for keep_ms, each other connection until it is over. When the table is full,
 * the oldest connection that is over gives way, then the oldest of all. A connection that is not in the table was
 * either forgotten or never heard of. The age of its live part, which agents seal into it, tells which: a live part
 * younger than all forgotten ones was never forgotten. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/ids.h"

struct connections_seen;

/* An owner's epoch, and the first sequence number that it had not sealed. */
struct seen_mark {
	uint16_t epoch; /* 0: not known */
	uint32_t write_generation;
	uint64_t write_sequence;
};

/* Was the connection taken over in doubt, in the write generation of a mark? By then that generation is at its end:
 * only a KeyUpdate is sealed in it, which may have the nonce of a record that a lost owner sealed. */
enum seen_doubt { SEEN_NO_DOUBT, SEEN_DOUBT_AT_MARK, SEEN_DOUBT_BEFORE_MARK };

/* Holds at most @places, rounded down to a multiple of the shards. Memory grows as they fill. NULL: out of memory. */
struct connections_seen *connections_seen_create(size_t places, uint32_t keep_ms, int64_t now_ms);
void connections_seen_destroy(struct connections_seen *s);

/* How many places fit into @bytes. */
size_t connections_seen_places(uint64_t bytes);

/* How an ownership begins. */
enum claim_start {
	CLAIM_BEGINS,    /* a handshake: the keys are new */
	CLAIM_CONTINUES, /* seals on from where the last owner froze */
	CLAIM_IN_DOUBT,  /* one record under the last owner's nonces, then fresh keys; agents begin so at one sequence
			    number of each write generation */
	CLAIM_FRESH      /* the epoch is a part of each nonce: earlier records do not matter */
};

#define SEEN_MADE_UNKNOWN INT64_MIN

/* Who seals under a claim: a worker of this process, by its index plus one. */
#define SEEN_NO_OWNER 0u /* it was frozen at once, or only its carrier can end it */

struct seen_claim {
	struct seen_mark at;
	uint16_t owner;
	enum claim_start start;
	uint16_t part_epoch; /* of the live part */
	int64_t made_ms;     /* of the live part, or SEEN_MADE_UNKNOWN */
};

/* Take this ownership. 0: it is remembered. Negative: it is counted and nothing changes: CSSL_E_REPLAY: an agent owned
 * this epoch or a higher one before; or the live part had a later owner. CSSL_E_UNSAFE: its owners are known to have
 * sealed records beyond the beginning of this ownership, or one began in doubt elsewhere in this generation.
 * CSSL_E_BUSY: a worker of this process owns it, and seals. CSSL_E_EXPIRED: the connection is unknown, and its live
 * part is too old to tell why. CSSL_E_NO_MEMORY. */
int connections_seen_claim(
	struct connections_seen *s, const struct connection_id *id, const struct seen_claim *claim, int64_t now_ms);

/* Is the connection known, or too young to have been forgotten? */
bool connections_seen_knows(struct connections_seen *s, const struct connection_id *id, int64_t made_ms);

/* This agent has sealed up to @at. */
void connections_seen_note(
	struct connections_seen *s, const struct connection_id *id, const struct seen_mark *at, int64_t now_ms);

/* Another agent owned the connection. An ownership of this process is over then, unless it is the later one: two agents
 * must not seal under the same keys. Returns that owner, who has to be told, or SEEN_NO_OWNER. Of the same epoch only
 * an owner's own word counts: others may tell of this process's ownership. @doubt: SEEN_DOUBT_AT_MARK: it began at @at.
 */
enum seen_word { SEEN_OWN_WORD, SEEN_HEARSAY };
unsigned connections_seen_hear(struct connections_seen *s, const struct connection_id *id, const struct seen_mark *at,
	enum seen_word word, enum seen_doubt doubt, int64_t now_ms);

/* The owner of this process under @epoch seals no more: it is about to say so, or was lost. */
void connections_seen_leave(struct connections_seen *s, const struct connection_id *id, uint16_t epoch);

/* The connection stopped at @at, to rest or for ever. It counts as stopped until it goes on under a higher epoch. */
enum seen_stop { SEEN_RESTS, SEEN_ENDED };
void connections_seen_stop(struct connections_seen *s, const struct connection_id *id, const struct seen_mark *at,
	enum seen_stop stop, int64_t now_ms);
bool connections_seen_stopped(struct connections_seen *s, const struct connection_id *id);

size_t connections_seen_count(struct connections_seen *s);

struct seen_connection {
	struct connection_id id;
	struct seen_mark at;
	int64_t heard_ms;
	enum seen_doubt doubt;
	enum seen_stop stop; /* SEEN_RESTS: it is not over */
};
/* For a snapshot, in steps: fill @out from *@cursor (0 at first) on with at most @max connections. Returns how many;
 * fewer than @max: that was all. */
size_t connections_seen_list(struct connections_seen *s, uint64_t *cursor, struct seen_connection *out, size_t max);
/* Import one connection from a snapshot, as by connections_seen_hear(). */
unsigned connections_seen_take(struct connections_seen *s, const struct seen_connection *seen, int64_t now_ms);

/* The time since which nothing was forgotten. A snapshot may bring connections from before this agent's start. */
enum seen_before { SEEN_NOTHING_BEFORE, SEEN_FORGOT };
struct seen_since {
	int64_t ms;
	enum seen_before before;
};
struct seen_since connections_seen_since(struct connections_seen *s);
void connections_seen_since_take(struct connections_seen *s, const struct seen_since *since);
