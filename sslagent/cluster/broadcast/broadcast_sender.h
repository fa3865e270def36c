/* broadcast_sender.h: the datagrams of one thread of this agent to the other agents. It numbers objects, keeps the last
 * ones in a ring to repeat them, packs messages into datagrams and seals these. It is a part of its own because it has
 * no socket and no clock: bytes leave through emit().
 *
 * Objects are numbered in one stream that all agents hear. Where each object is for some agents only, each agent has a
 * stream of its own, so that an object for another agent makes no gap. A receiver sees no difference.
 *
 * One thread uses it; any thread may call broadcast_sender_mark(). All senders of a process seal under its one sending
 * key (sending_keys.h). It looks for a newer one at each message. Each sender has its own counters, which start again
 * with each key.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/broadcast.pb-c.h"

struct sending_keys;
struct broadcast_sender;

#define BROADCAST_ALL (-1)

/* OBJECTS are numbered: an agent asks for those that it misses. WORDS are sent once. */
enum datagram_of { DATAGRAM_OF_OBJECTS, DATAGRAM_OF_WORDS };

struct broadcast_sender_conf {
	uint16_t worker;
	uint64_t boot_id;
	unsigned ring;             /* objects kept of each stream */
	unsigned streams;          /* 0: one for all; else one for each agent, 0..streams-1 */
	unsigned self;             /* index of the stream that no agent hears */
	struct sending_keys *keys; /* outlives the sender */
	/* The first bytes of a datagram wait for the flush. May be NULL. */
	void (*on_waiting)(void *ctx);
	/* A sealed datagram for agent @to, or BROADCAST_ALL. */
	void (*emit)(void *ctx, enum datagram_of what, int to, const uint8_t *datagram, size_t len);
	void *ctx;
};

/* NULL: out of memory. */
struct broadcast_sender *broadcast_sender_create(const struct broadcast_sender_conf *conf);
void broadcast_sender_destroy(struct broadcast_sender *s);

/* Use the newest key. Earlier messages leave under the old key. Returns the generation of the key under which the next
 * message leaves: without memory the old key stays. */
uint32_t broadcast_sender_renew_key(struct broadcast_sender *s);

/* Number @m (its number is set), keep it, and send it to all, or to agent @to where @to has a stream. 0;
 * CSSL_E_TOO_LONG: it does not fit a datagram and got no number. */
int broadcast_sender_number(struct broadcast_sender *s, int to, Cssl__BroadcastMessage *m);

/* Send a message without a number to agent @to or to all. 0 or CSSL_E_TOO_LONG. */
int broadcast_sender_say(struct broadcast_sender *s, int to, const Cssl__BroadcastMessage *m);

/* Repeat numbers @first..@last of its stream to agent @to, a bounded part at a time; or tell which of them are
 * forgotten.
 */
void broadcast_sender_repeat(struct broadcast_sender *s, int to, uint64_t first, uint64_t last, int64_t now_ms);

/* Send the waiting datagrams. Call it at the end of each turn; a full datagram leaves at once. */
void broadcast_sender_flush(struct broadcast_sender *s);

/* The position of the sender, from any thread. All its datagrams so far under key @key_generation have counters below
 * next_counter. When it uses a later key already, next_counter is above every counter. In the stream of agent @to
 * numbers up to highest exist. */
struct broadcast_mark {
	uint64_t next_counter;
	uint64_t highest;
};
struct broadcast_mark broadcast_sender_mark(const struct broadcast_sender *s, int to, uint32_t key_generation);
