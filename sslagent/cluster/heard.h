/* heard.h: what was heard of other agents: the keys under which they seal their datagrams, each with its replay
 * windows, and which of the numbers 1, 2, 3... of one stream were heard and which are missing.
 *
 * A datagram's header names the key's id. The last KEYS_HELD keys of each sender are held, so that no datagram is lost
 * while it changes keys. Numbers cost nothing while none is missing. Their memory is bounded: with too many gaps, two
 * neighbouring gaps become one, and the agent asks again for the numbers between them. */
#ifndef CSSL_SSLAGENT_HEARD_H
#define CSSL_SSLAGENT_HEARD_H

#include "net/table.h"
#include "proto/datagram.h"

#define KEYS_HELD 3u /* the old, the current, the next */

struct heard_key {
	struct table_link link; /* by its id */
	struct datagram_key *key;
	unsigned sender;
	unsigned workers; /* windows: 0..workers */
	enum { KEY_UNPROVEN, KEY_PROVEN } state;
	struct replay_window windows[];
};

/* NULL: not known. */
struct heard_key *heard_keys_find(const struct table *keys, uint64_t id);

/* Unproven at first. NULL: out of memory, the algorithm is unknown, or the id is taken. */
struct heard_key *heard_keys_add(
	struct table *keys, unsigned sender, unsigned workers, uint64_t id, enum aead aead, const uint8_t *secret);
void heard_keys_remove(struct table *keys, struct heard_key *k);

/* Believe datagrams with counters from @first[worker] on (NULL: from the first). */
void heard_key_prove(struct heard_key *k, const uint64_t *first);

#define MISSING_RUNS_MAX 512u

struct number_run {
	uint64_t first, last;
};

/* All zero: nothing heard, nothing missing. */
struct heard_numbers {
	uint64_t highest;           /* known to exist */
	struct number_run *missing; /* rising, never touching */
	uint32_t missing_count;
	size_t missing_cap;
};

void heard_numbers_clear(struct heard_numbers *h);

#define HEARD_BEFORE 1

/* @number (not 0) is here. 0, or HEARD_BEFORE. *missed grows by the count of numbers newly known to be missing. */
int heard_numbers_take(struct heard_numbers *h, uint64_t number, uint64_t *missed);

/* Numbers up to @highest exist. Returns how many of them are new. */
uint64_t heard_numbers_extend(struct heard_numbers *h, uint64_t highest);

/* Numbers below @below will never come, or came another way. Returns how many of them were missing. */
uint64_t heard_numbers_give_up(struct heard_numbers *h, uint64_t below);

/* Every number up to this one was heard or given up. */
uint64_t heard_numbers_complete(const struct heard_numbers *h);

#endif
