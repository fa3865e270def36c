/* opening_pair.h: both sides of an opening in one process, message by message. */
#pragma once

#include "proto/opening.h"

#define HEX_1 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_2 "f0e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f"

struct message {
	uint8_t bytes[OPENING_MESSAGE_MAX];
	size_t len;
};

/* A RAgent and an agent with the same link.key. Tests change the members that they need before both_begin(). */
struct both {
	struct key_ring ragent_ring, agent_ring;
	struct link_hello ragent, agent;
	enum link_role expected_by_ragent, expected_by_agent;
	unsigned key;
	struct opening *initiator, *responder;
};

struct both both(void);
void both_begin(struct both *b);
void both_end(struct both *b);
void ring_make(struct key_ring *ring, const char *text);

extern const struct message nothing;

/* Give it a whole message. Its answer goes to @out. */
int give(struct opening *o, const struct message *in, struct message *out);
/* All three messages of an undisturbed opening. */
void run(struct both *b, struct message m[static 3]);
/* The error of the side that refuses, for an opening that must not succeed. */
int refusal(struct both *b);
