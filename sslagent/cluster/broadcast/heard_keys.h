/* heard_keys.h: the keys under which other agents seal their datagrams, and which datagrams are new. It is a part of
 * its own because law 11 rests on it: no datagram under a key counts twice, and none counts before the key is proven.
 *
 * A datagram's header names the key's id. The last KEYS_HELD keys of each sender are held, so that no datagram is lost
 * while it changes keys. Each key has a replay window for each thread of its sender. The receiver owns all of this and
 * calls it under its lock. It reads the members. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "net/memory/table.h"
#include "proto/datagram.h"

#define KEYS_HELD 3u /* the old, the current, the next */

struct sender_keys;

struct heard_key {
	struct table_link link; /* by its id */
	struct datagram_key *key;
	struct sender_keys *of;
	enum { KEY_UNPROVEN, KEY_PROVEN } state;
	struct replay_window windows[]; /* of the sender's threads */
};

/* The keys of one process of a sender. It must not move while it has keys. */
struct sender_keys {
	unsigned sender, workers; /* its threads are 0..workers */
	uint64_t boot_id;
	unsigned count, in_use;
	struct heard_key *held[KEYS_HELD]; /* as they were given; owned */
};

/* The sender uses the key already (KEY_IN_USE), or has sealed nothing under it yet (KEY_NEXT). */
enum key_use { KEY_IN_USE, KEY_NEXT };
struct given_key {
	uint64_t id;
	enum aead aead;
	uint8_t secret[AEAD_SECRET_LEN];
	enum key_use use;
};

/* @all: the keys of all senders, by their ids. The oldest of too many keys goes. 0; KEY_KNOWN: nothing changed;
 * CSSL_E_STATE: another sender has a key with this id; CSSL_E_CRYPTO: no memory, or the algorithm is unknown. */
#define KEY_KNOWN 1
int heard_keys_add(struct table *all, struct sender_keys *of, const struct given_key *given);
void heard_keys_forget(struct table *all, struct sender_keys *of);

/* Believe datagrams with counters from @first[thread] on (NULL: from the first). */
void heard_key_prove(struct heard_key *k, const uint64_t *first);

/* Where an opened datagram came from. */
struct heard_datagram {
	struct heard_key *key;
	unsigned worker;
	uint64_t counter;
	uint64_t boot_id; /* of the header, also when it was not opened */
};

/* Open a datagram that was not heard before into @payload. Returns the length, or the negated counter of the failure.
 * COUNT_DATAGRAMS_KEY_UNKNOWN: no key has its id; @out->boot_id is set. */
ptrdiff_t heard_keys_open(const struct table *all, const uint8_t *datagram, size_t len, struct heard_datagram *out,
	uint8_t payload[static DATAGRAM_PAYLOAD_MAX]);
