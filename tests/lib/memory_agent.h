/* memory_agent.h: one connection's TLS side of an agent in memory: handshake, export, then the record layer that echoes
 * what it reads. With memory_client it is a whole connection in one process. */
#pragma once

#include "conf/conf.h"
#include "sslagent/tls/handshake.h"
#include "sslagent/tls/live.h"
#include "tests/lib/memory_client.h"
#include "tests/lib/memory_source.h"
#include "tests/lib/test_pki.h"

/* The part of a cluster file with one listener, "web", filled in by hand. Change conf fields before
 * memory_cluster_start. */
#define MEMORY_CERTIFICATES_MAX 4
struct memory_conf {
	struct conf conf;
	struct conf_listener listener;
	struct conf_certificate certificates[MEMORY_CERTIFICATES_MAX];
	char *names[MEMORY_CERTIFICATES_MAX];
	struct conf_alpn alpn[4];
	struct conf_mark marks[2 * MEMORY_CERTIFICATES_MAX + 1];
};
void memory_conf_fill(struct memory_conf *c, struct test_identity *const identities[], size_t count);

enum memory_agent_state { AGENT_SHAKES, AGENT_IS_PARKED, AGENT_OWNS, AGENT_FAILED };

struct memory_agent {
	const struct tls_listener *listener;
	struct live_pool *pool;
	struct handshake *handshake;
	struct live *live;
	enum memory_agent_state state;
	struct session_facts facts; /* after the export */
	struct handshake_facts handshake_facts;
	struct live_part part; /* as exported */
	uint8_t certificate[SESSION_DER_MAX];
	size_t certificate_len;
	char error[160];
	int violation; /* what live_open said */
	uint64_t now_ms;
	uint8_t *input; /* bytes of a record that is not whole */
	size_t input_len;
	uint8_t *output;
	size_t output_len, output_cap;
};

int memory_agent_start(struct memory_agent *a, struct tls_contexts *contexts, struct live_pool *pool);
void memory_agent_stop(struct memory_agent *a);

/* From the client: handshake records, then data, which comes back as it is (in records of at most live_fragment_max).
 */
void memory_agent_feed(struct memory_agent *a, const uint8_t *bytes, size_t len);
/* A parked handshake goes on: its pull has ended so. */
void memory_agent_continue(struct memory_agent *a, enum session_answer answer);
/* Freeze, encode, decode, continue in @pool under the next epoch. */
void memory_agent_move(struct memory_agent *a, struct live_pool *pool, enum live_start start);
void memory_agent_update_keys(struct memory_agent *a);
void memory_agent_close(struct memory_agent *a);
/* Seal as it is. */
void memory_agent_say(struct memory_agent *a, const void *data, size_t len);

/* Carry bytes both ways until nothing moves; at most @step bytes at a time (0: all). Reads what the client got into
 * @got. Returns its bytes. */
size_t memory_exchange(struct memory_client *c, struct memory_agent *a, size_t step, uint8_t *got, size_t cap);
