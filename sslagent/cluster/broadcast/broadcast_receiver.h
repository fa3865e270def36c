/* broadcast_receiver.h: datagrams that this agent gets from the others. It is a part of its own because belief is:
 * bytes and time come in, messages that are new and true go out, and a virtual network shows that.
 *
 * A sender is another agent, named by its index. The receiver opens its datagrams with the keys that it gave over a
 * link. It believes a datagram under a key only
 *
 *   - when the sender gave the key before its first use, or
 *   - from those counters on that the sender named in its answer to this receiver's random challenge.
 *
 * So no receiver takes a recorded datagram for a new one, even when it has just started and remembers nothing. After
 * this check each (key, worker) has a sliding window.
 *
 * The receiver hands each numbered object on at once. It asks for missing numbers until they come, or until their
 * sender says that it has forgotten them. Objects need no order, so none waits in a queue. While this agent joins, it
 * asks for no missing numbers (broadcast_receiver_repair()) until the snapshot has told which numbers it brought.
 *
 * Thread-safe, under a lock of its own. input and tick call the callbacks, on their thread and under this
 * lock: a callback must not call any function here. So who finds a number heard also finds its object where on_message
 * put it.
 */
#pragma once

#include "proto/broadcast.pb-c.h"
#include "sslagent/cluster/broadcast/heard_keys.h"
#include "sslagent/cluster/broadcast/peer_clock.h"

struct broadcast_receiver;

/* Times of a message on this process's clock, never later than they really were. */
struct heard_times {
	int64_t made_ms, family_made_ms;
	int64_t now_ms;
};

struct broadcast_receiver_ops {
	/* Say @m to @sender, by datagram. */
	void (*say)(void *ctx, unsigned sender, Cssl__BroadcastMessage *m);
	/* @sender asks for a proof. Unproven: it may be an old question. Only one in every 5 ms comes here. */
	void (*on_probe)(void *ctx, unsigned sender, const uint8_t *challenge);
	/* Every other message that is believed and new. */
	void (*on_message)(
		void *ctx, unsigned sender, const Cssl__BroadcastMessage *m, const struct heard_times *times);
	/* The sender has forgotten missing numbers. Only a snapshot can bring their objects. */
	void (*on_forgotten)(void *ctx, unsigned sender);
};

/* @senders: the highest number of senders. NULL: out of memory. */
struct broadcast_receiver *broadcast_receiver_create(
	unsigned senders, const struct broadcast_receiver_ops *ops, void *ctx);
void broadcast_receiver_destroy(struct broadcast_receiver *r);

/* A link with @sender opened. When its boot id or its number of workers has changed, it is a new process, from which
 * nothing was heard. @workers: its sealing threads are 0..workers. 0 or CSSL_E_NO_MEMORY. */
int broadcast_receiver_meet(struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned workers);

/* @sender, which was met, gave a key. A known key changes nothing. 0 or negative. */
int broadcast_receiver_add_key(
	struct broadcast_receiver *r, unsigned sender, const struct given_key *key, int64_t now_ms);

/* A datagram. Never fails: a datagram that is not believed is counted and changes nothing. */
void broadcast_receiver_input(struct broadcast_receiver *r, const uint8_t *datagram, size_t len, int64_t now_ms);

/* Send probes and questions that are due. Call it every BROADCAST_TICK_MS or so, at least from
 * broadcast_receiver_due_ms() on. */
#define BROADCAST_TICK_MS 5
void broadcast_receiver_tick(struct broadcast_receiver *r, int64_t now_ms);
/* The time of the next work. Input may bring it forward. */
int64_t broadcast_receiver_due_ms(const struct broadcast_receiver *r);

/* Stop to ask for missing numbers, or begin. */
enum receiver_repair { REPAIR_HELD, REPAIR_ON };
void broadcast_receiver_repair(struct broadcast_receiver *r, enum receiver_repair repair);

/* A snapshot had all numbers of (@sender, @boot_id, @worker) up to @complete. They are kept until that process is met.
 */
void broadcast_receiver_complete(
	struct broadcast_receiver *r, unsigned sender, uint64_t boot_id, unsigned worker, uint64_t complete);

struct receiver_view {
	enum { SENDER_UNKNOWN, SENDER_UNPROVEN, SENDER_BELIEVED } state;
	uint64_t boot_id;
	unsigned workers; /* 0..workers have numbers */
	uint64_t missing; /* numbers */
	int64_t heard_ms; /* time of the last fresh datagram; INT64_MIN: never */
	/* Links use it, too, and ask for it. A new boot id resets it. */
	struct peer_clock clock;
};
struct receiver_view broadcast_receiver_view(const struct broadcast_receiver *r, unsigned sender);
/* Every number of @worker up to this one is here. */
uint64_t broadcast_receiver_heard(const struct broadcast_receiver *r, unsigned sender, unsigned worker);

/* A link asked for the clock: as peer_clock_answered(). */
void broadcast_receiver_clock_answered(
	struct broadcast_receiver *r, unsigned sender, int64_t asked_ms, int64_t remote_ms, int64_t now_ms);
