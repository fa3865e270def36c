/* live_pair.h: the two ends of an invented connection after its handshake: the agent's live, and a client that can
 * forge any record and reads with a live in the client's role. For tests and fuzzers of the record layer. */
#pragma once

#include "sslagent/tls/live.h"
#include "tests/lib/record_forge.h"

struct live_pair {
	const struct cipher_suite *suite;
	struct live_pool *pool;
	struct live_part part; /* as at the end of the handshake */
	struct live *agent;    /* epoch 1 */
	struct live *reader;   /* the client's reading side */
	struct record_forge *client;
};

/* 0 or negative; keys are fixed bytes. @max_fragment as in struct live_part. */
int live_pair_start(struct live_pair *p, uint16_t suite, uint16_t max_fragment);
void live_pair_stop(struct live_pair *p);

struct live_position live_part_position(const struct live_part *part);
/* The part with the two directions exchanged. */
struct live_part live_part_mirror(const struct live_part *part);

/* live_open() of the record that [bytes, bytes + len) is. Negative, too: it is none, and no carrier would give it. */
int live_open_bytes(struct live *l, uint8_t *bytes, size_t len, uint64_t now_ms, struct live_record *out);
