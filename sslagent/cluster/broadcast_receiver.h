/* broadcast_receiver.h: what this agent hears from the others by datagram. Bytes and time in; messages, questions and
 * needs out.
 *
 * A sender is another agent, by its index. Its datagrams are opened with the keys it gave (over a link) and believed
 * under a key only
 *
 *   - when it was given before it was first used, or
 *   - from the counters on that its sender named when it answered this receiver's random challenge,
 *
 * so that nothing recorded earlier is ever taken for new, even by a receiver that has just started and remembers
 * nothing. Behind that, a sliding window for each (key, worker).
 *
 * Numbered objects are handed on as they come; missing numbers are asked for until they come or their sender says it
 * has forgotten them. Their order does not matter to those who get them, so nothing waits in a queue: while this agent
 * joins, what is missing is just not asked for (broadcast_receiver_hold()) until the snapshot has told what it brought.
 *
 * All calls on one thread. Callbacks may come from input, payload and tick, and must not call those.
 */
#ifndef CSSL_SSLAGENT_BROADCAST_RECEIVER_H
#define CSSL_SSLAGENT_BROADCAST_RECEIVER_H

#include "proto/aead.h"
#include "proto/broadcast.pb-c.h"
#include "sslagent/cluster/peer_clock.h"

struct broadcast_receiver;

/* Times of a message on this process's clock, never later than they really were. */
struct heard_times {
	int64_t made_ms, family_made_ms;
	int64_t now_ms;
};

struct broadcast_receiver_ops {
	/* Say @m to @sender, by datagram. */
	void (*say)(void *ctx, unsigned sender, Cssl__BroadcastMessage *m);
	/* @sender asks for a proof. Not believed: it may be an old question. */
	void (*on_probe)(void *ctx, unsigned sender, const uint8_t *challenge);
	/* Everything else that is believed and new. */
	void (*on_message)(
		void *ctx, unsigned sender, const Cssl__BroadcastMessage *m, const struct heard_times *times);
	/* Numbers are missing for good: only a snapshot has what still counts of them. */
	void (*on_forgotten)(void *ctx, unsigned sender);
};

/* @senders: how many there can be. NULL: out of memory. */
struct broadcast_receiver *broadcast_receiver_create(
	unsigned senders, const struct broadcast_receiver_ops *ops, void *ctx);
void broadcast_receiver_destroy(struct broadcast_receiver *r);

/* A link with @sender opened. Another boot id or number of workers than before: it is a new process of which nothing
 * was heard. @workers: its threads that seal are 0..workers. 0 or CSSL_E_NO_MEMORY. */
int broadcast_receiver_meet(struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned workers);

/* @sender, which was met, gave a key: in use already, or the next one, under which it has sealed nothing yet. Known
 * ones change nothing. 0 or negative. */
enum key_use { KEY_IN_USE, KEY_NEXT };
struct given_key {
	uint64_t id;
	enum aead aead;
	uint8_t secret[AEAD_SECRET_LEN];
	enum key_use use;
};
int broadcast_receiver_add_key(
	struct broadcast_receiver *r, unsigned sender, const struct given_key *key, int64_t now_ms);

/* A datagram. Never fails: what is not believed is counted and changes nothing. */
void broadcast_receiver_input(struct broadcast_receiver *r, const uint8_t *datagram, size_t len, int64_t now_ms);
/* The payload of a datagram that was believed (by input; fuzzers and simulators begin here). */
void broadcast_receiver_payload(struct broadcast_receiver *r, unsigned sender, unsigned worker, const uint8_t *payload,
	size_t len, int64_t now_ms);

/* Probes and questions that are due. Call it every BROADCAST_TICK_MS or so, at least from broadcast_receiver_due_ms()
 * on. */
#define BROADCAST_TICK_MS 5
void broadcast_receiver_tick(struct broadcast_receiver *r, int64_t now_ms);
/* Nothing is due before. Input may bring it forward. */
int64_t broadcast_receiver_due_ms(const struct broadcast_receiver *r);

/* Ask for nothing that is missing, or begin to. */
enum receiver_repair { REPAIR_HELD, REPAIR_ON };
void broadcast_receiver_repair(struct broadcast_receiver *r, enum receiver_repair repair);

/* What a snapshot had all of: numbers of (@sender, @boot_id, @worker) up to @complete. Remembered for when that process
 * is met. */
void broadcast_receiver_complete(
	struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned worker, uint64_t complete);

struct receiver_view {
	enum { SENDER_UNKNOWN, SENDER_UNPROVEN, SENDER_BELIEVED } state;
	uint64_t boot_id;
	unsigned workers; /* its numbers are of 0..workers */
	uint64_t missing; /* numbers */
};
struct receiver_view broadcast_receiver_view(const struct broadcast_receiver *r, unsigned sender);
/* When something fresh came last; INT64_MIN: never. */
int64_t broadcast_receiver_heard_ms(const struct broadcast_receiver *r, unsigned sender);
/* Every number of its worker up to this one is here. */
uint64_t broadcast_receiver_heard(const struct broadcast_receiver *r, unsigned sender, unsigned worker);

/* The clock of a sender, for everyone who hears times of it (links, which ask it too). A new boot id resets it. */
struct peer_clock *broadcast_receiver_clock(struct broadcast_receiver *r, unsigned sender);

#endif
