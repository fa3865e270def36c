/* heard_keys.h: the keys under which other agents seal their datagrams, each with its replay windows. A datagram's
 * header names the key's id. The last KEYS_HELD keys of each sender are held, so that no datagram is lost while it
 * changes keys. */
#ifndef CSSL_SSLAGENT_HEARD_KEYS_H
#define CSSL_SSLAGENT_HEARD_KEYS_H

#include "proto/datagram.h"
#include "proto/window.h"

#define KEYS_HELD 3u /* the old, the current, the next */

struct heard_key {
	struct heard_key *next; /* bucket */
	uint64_t id;
	struct datagram_key *key;
	unsigned sender;
	unsigned workers; /* windows: 0..workers */
	enum { KEY_UNPROVEN, KEY_PROVEN } state;
	struct replay_window windows[];
};

struct heard_keys;
struct heard_keys *heard_keys_create(unsigned senders);
void heard_keys_destroy(struct heard_keys *h); /* and every key in it */

/* NULL: not known. */
struct heard_key *heard_keys_find(const struct heard_keys *h, uint64_t id);

/* Unproven at first. NULL: out of memory, the algorithm is unknown, or the id is taken. */
struct heard_key *heard_keys_add(
	struct heard_keys *h, unsigned sender, unsigned workers, uint64_t id, enum aead aead, const uint8_t *secret);
void heard_keys_remove(struct heard_keys *h, struct heard_key *k);

/* Believe datagrams with counters from @first[worker] on (NULL: from the first). */
void heard_key_prove(struct heard_key *k, const uint64_t *first);

#endif
