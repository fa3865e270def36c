/* questions.h: what this agent asks one sender: for a proof that it lives, and for missing numbers. It is a part of its
 * own because time alone decides when a question is repeated: no lock, no bytes of datagrams.
 *
 * It repeats each question, more and more slowly, until the answer comes. The receiver owns one for each sender and
 * calls it under its lock. It reads the members. Times are on this process's clock. */
#pragma once

#include <stdbool.h>

#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/heard_numbers.h"

#define NEVER INT64_MIN

#define CHALLENGE_LIFE_MS 1000  /* an answer that takes longer proves too little about the clock */
#define CLOCK_LIFE_MS     30000 /* then it is time for a fresh question */
#define STALE_MS          5000  /* an older question, answer or heartbeat was held back */

/* What the receiver knows of the sender. */
enum sender_belief { BELIEF_NO_KEY, BELIEF_UNPROVEN, BELIEF_PROVEN };

struct questions {
	uint8_t challenge[CHALLENGE_LEN];
	int64_t challenge_ms, probe_at_ms; /* NEVER: none */
	int64_t probe_every_ms;
	int64_t clock_asked_ms;
	int64_t ask_at_ms, ask_every_ms,
		round_trip_ms; /* ask_at_ms NEVER: nothing is missing, or the sender is silent */
};

/* Nothing was asked yet. */
#define QUESTIONS_NONE                                                                                                 \
	{                                                                                                              \
		.challenge_ms = NEVER, .ask_at_ms = NEVER, .clock_asked_ms = -CLOCK_LIFE_MS                            \
	}

/* From now on ask for a proof, if one is needed. Returns when the next tick is due; INT64_MAX: not for this. */
int64_t questions_probe(struct questions *q, enum sender_belief belief, int64_t now_ms);
/* The proof came. Returns when it was asked for. */
int64_t questions_proven(struct questions *q, int64_t now_ms);
/* More numbers are missing, or missing ones begin to come. Returns when the next tick is due. */
int64_t questions_ask_soon(struct questions *q, int64_t now_ms);

/* Whom to ask, and how. @say says @m to @sender, by datagram; it does not call back. */
struct questioned {
	unsigned sender, workers; /* its threads are 0..workers */
	enum sender_belief belief;
	int64_t heard_ms;                    /* NEVER: not yet */
	const struct heard_numbers *numbers; /* of its threads; NULL: it is not asked for them now */
	void (*say)(void *ctx, unsigned sender, Cssl__BroadcastMessage *m);
	void *ctx;
};
/* Ask what is due. Returns when the next tick is due; INT64_MAX: none. */
int64_t questions_tick(struct questions *q, const struct questioned *of, int64_t now_ms);
