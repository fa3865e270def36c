/* broadcast_sender.h: what one thread of this agent says to the other agents by datagram: numbers objects, keeps the
 * last ones in a ring to repeat them, packs messages into datagrams, seals. Bytes out, through emit(); no socket, no
 * clock.
 *
 * Objects are numbered in one stream that all agents hear; or, where each object is for some agents only, in a stream
 * for each agent, so that what another got is no gap. Those who hear cannot tell the difference.
 *
 * Used by one thread, but for broadcast_sender_mark(). All senders of a process seal under its one sending key, each
 * with counters of its own that start again with each key.
 */
#ifndef CSSL_SSLAGENT_BROADCAST_SENDER_H
#define CSSL_SSLAGENT_BROADCAST_SENDER_H

#include "proto/aead.h"
#include "proto/broadcast.pb-c.h"

struct broadcast_sender;

#define BROADCAST_ALL (-1)

/* OBJECTS are numbered: who misses some asks for them. WORDS are said once. */
enum datagram_of { DATAGRAM_OF_OBJECTS, DATAGRAM_OF_WORDS };

struct broadcast_sender_conf {
	uint16_t worker;
	uint64_t boot_id;
	unsigned ring;    /* objects kept of each stream */
	unsigned streams; /* 0: one for all; else one for each agent, 0..streams-1 */
	unsigned self;    /* of the streams, the one that nobody hears */
	/* A sealed datagram for agent @to, or BROADCAST_ALL. */
	void (*emit)(void *ctx, enum datagram_of what, int to, const uint8_t *datagram, size_t len);
	/* For simulators, NULL or in the place of emit: its payload, and no key is needed. */
	void (*emit_payload)(void *ctx, enum datagram_of what, int to, const uint8_t *payload, size_t len);
	void *ctx;
};

/* It can seal nothing before broadcast_sender_use_key(). NULL: out of memory. */
struct broadcast_sender *broadcast_sender_create(const struct broadcast_sender_conf *conf);
void broadcast_sender_destroy(struct broadcast_sender *s);

/* Seal under this key from now on; what was said before goes out under the old one. @generation: of the process's keys,
 * rising from 1. 0 or negative: the old key stays. */
struct sending_key {
	uint32_t generation;
	uint64_t id;
	enum aead aead;
	uint8_t secret[AEAD_SECRET_LEN];
};
int broadcast_sender_use_key(struct broadcast_sender *s, const struct sending_key *key);
uint32_t broadcast_sender_key_generation(const struct broadcast_sender *s);

/* Number @m (its number is set), keep it, say it to all, or to agent @to where that has a stream. 0; CSSL_E_TOO_LONG:
 * does not fit a datagram, has no number. */
int broadcast_sender_number(struct broadcast_sender *s, int to, Cssl__BroadcastMessage *m);

/* Say something unnumbered to agent @to or to all. 0 or CSSL_E_TOO_LONG. */
int broadcast_sender_say(struct broadcast_sender *s, int to, const Cssl__BroadcastMessage *m);

/* Say numbers @first..@last of what it hears again to agent @to, a bounded part of them; or what of them was forgotten.
 */
void broadcast_sender_repeat(struct broadcast_sender *s, int to, uint64_t first, uint64_t last, int64_t now_ms);

/* Let out what was said. At the end of each turn; a full datagram leaves by itself. */
void broadcast_sender_flush(struct broadcast_sender *s);

/* Where it stands, from any thread: what it sealed under key @key_generation up to now has counters below next_counter
 * (which is above every counter when it has gone on to a later key), and numbers up to highest exist of what agent @to
 * hears. */
struct broadcast_mark {
	uint64_t next_counter;
	uint64_t highest;
};
struct broadcast_mark broadcast_sender_mark(const struct broadcast_sender *s, int to, uint32_t key_generation);

#endif
