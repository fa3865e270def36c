/* broadcast_receiver_internal.h: the state of a receiver, for its two files only: broadcast_receiver.c takes what
 * comes, broadcast_questions.c asks for what is missing. */
#ifndef CSSL_SSLAGENT_BROADCAST_RECEIVER_INTERNAL_H
#define CSSL_SSLAGENT_BROADCAST_RECEIVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "sslagent/cluster/broadcast_message.h"
#include "sslagent/cluster/broadcast_receiver.h"
#include "sslagent/cluster/heard.h"

#define NEVER INT64_MIN

#define CHALLENGE_LIFE_MS 1000  /* an answer that takes longer proves too little about the clock */
#define CLOCK_LIFE_MS     30000 /* then it is time for a fresh question */
#define PROBED_EVERY_MS   5     /* so often it asks for a proof of its own */
#define STALE_MS          5000  /* an older question, answer or heartbeat was held back */

/* Complete numbers, from a snapshot, of a process that was not met yet. */
struct complete_before {
	uint64_t boot_id;
	uint64_t complete[SENDER_THREADS_MAX];
};

struct sender {
	uint64_t boot_id, previous_boot_id;
	unsigned workers;
	unsigned key_count, key_in_use;
	struct heard_key *keys[KEYS_HELD]; /* as they were given */
	struct heard_numbers *numbers;     /* of workers 0..workers; NULL: never met */
	struct complete_before *before;    /* NULL: no snapshot named it */
	struct peer_clock clock;
	int64_t heard_ms, clock_asked_ms;
	uint8_t challenge[CHALLENGE_LEN];
	int64_t challenge_ms, probe_at_ms; /* NEVER: none */
	int64_t probed_ms;                 /* by the sender; NEVER: not yet */
	int64_t probe_every_ms;
	int64_t ask_at_ms, ask_every_ms, round_trip_ms;
};

struct broadcast_receiver {
	struct broadcast_receiver_ops ops;
	void *ctx;
	unsigned sender_count;
	_Atomic int64_t due_ms; /* nothing is due before; changes under the lock */
	pthread_mutex_t lock;   /* of what follows */
	struct table keys;      /* of all senders */
	enum receiver_repair repair;
	struct sender senders[];
};

static inline void receiver_lock(const struct broadcast_receiver *r)
{
	pthread_mutex_lock(&((struct broadcast_receiver *)r)->lock);
}

static inline void receiver_unlock(const struct broadcast_receiver *r)
{
	pthread_mutex_unlock(&((struct broadcast_receiver *)r)->lock);
}

/* The rest under the lock. */

/* Does the receiver believe datagrams under this key? */
bool sender_believes(const struct sender *s, const struct heard_key *k);

/* From now on ask for a proof, if one is needed. */
void questions_probe(struct broadcast_receiver *r, struct sender *s, int64_t now_ms);
/* The proof came. */
void questions_proven(struct sender *s);
/* More numbers are missing, or missing ones begin to come. */
void questions_ask_soon(struct broadcast_receiver *r, struct sender *s, int64_t now_ms);

#endif
