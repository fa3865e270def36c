/* agents.h: the agents of the cluster as this process knows them: what their LOAD frames say, how many of their links
 * are up, how many of our connections are with them. Shared by all workers; all calls from any thread.
 */
#ifndef CSSL_RAGENT_AGENTS_H
#define CSSL_RAGENT_AGENTS_H

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "proto/rendezvous.h"
#include "ragent/dispatch/drain.h"

#define AGENTS_MAX        256u
#define NO_AGENT          (-1)
#define AGENT_VERSION_MAX 32u /* longer ones are cut; with the terminating zero */

struct agents;

/* @conf outlives them. NULL: out of memory, or more than AGENTS_MAX. */
struct agents *agents_create(const struct conf *conf);
void agents_destroy(struct agents *a);

unsigned agents_count(const struct agents *a);
const struct conf_agent *agents_conf(const struct agents *a, int agent);
/* "none" for NO_AGENT. */
const char *agents_name(const struct agents *a, int agent);
/* NO_AGENT: no agent of that name. */
int agents_find(const struct agents *a, const char *name);

/* A link to the agent became usable or is so no more. The first one that is up, or a new boot, forgets what the agent
 * had said about itself, LEAVING too; what an operator said stays. */
void agents_link_up(struct agents *a, int agent, uint64_t boot_id);
void agents_link_down(struct agents *a, int agent);
/* A link that is up fell silent, or speaks again. */
void agents_link_suspect(struct agents *a, int agent);
void agents_link_recovered(struct agents *a, int agent);

struct agent_load {
	uint64_t connections, sessions;
	uint32_t handshake_us;
	uint16_t busy_permille;
	enum { AGENT_NOT_READY, AGENT_READY } ready;
	const char *version; /* valid in the call only; "": it does not say */
	enum agent_clock { AGENT_CLOCK_UNKNOWN, AGENT_CLOCK_KNOWN } clock;
	int64_t clock_offset_ms; /* its time of day less ours, late by the way of its word */
};
void agents_set_load(struct agents *a, int agent, const struct agent_load *load);

/* Drain it: it gets nothing new from now on. An operator's drain lasts until agents_undrain(), over its boots; that of
 * an agent which said LEAVING until its next boot. A drain that is under way gets the new deadline. */
void agents_drain(struct agents *a, int agent, enum drain_reason reason, uint64_t now_ms, uint64_t timeout_ms);
/* 0, or CSSL_E_STATE: no operator drains it. One that leaves by itself goes on to do so. */
int agents_undrain(struct agents *a, int agent);
/* Its drain, whatever the state of that. */
struct drain *agents_drain_of(struct agents *a, int agent);

/* Its share of new work and of addresses, > 0. */
void agents_set_weight(struct agents *a, int agent, double weight);

/* What an agent said about itself, and an operator about it, to the process before this one. Believed behind
 * agents_link_up(), which forgets it. A weight of the cluster file that is new counts more than what was said before.
 */
struct agent_word {
	uint64_t boot_id, sessions;
	uint32_t handshake_us, busy_permille;
	uint8_t ready, leaving;
	double weight, weight_in_file;
	struct drain_word drain;
};
void agents_word(const struct agents *a, int agent, struct agent_word *out);
void agents_believe(struct agents *a, int agent, const struct agent_word *word);

/* Ready and not draining: 1 or 0. */
int agents_take_new(const struct agents *a, int agent);

/* Another number each time an agent begins or ceases to take new work, or weights change: then connections may belong
 * elsewhere. */
uint64_t agents_generation(const struct agents *a);

/* What our connections have with an agent. */
enum agent_share {
	AGENT_HANDSHAKES,  /* under way */
	AGENT_CONNECTIONS, /* whose application data is, or after the hand-off will be, there */
	AGENT_OWNERSHIPS,  /* streams: what it owns, makes the handshake of, or holds frozen */
	AGENT_SHARE_COUNT
};
void agents_enter(struct agents *a, int agent, enum agent_share share);
void agents_leave(struct agents *a, int agent, enum agent_share share);
uint64_t agents_share(const struct agents *a, int agent, enum agent_share share);

/* An agent that could be chosen, as policies see it. */
struct candidate {
	int agent;
	struct rendezvous_node node; /* hash of its name, weight */
	uint64_t connections, handshakes;
	uint32_t handshake_us;
};
void agents_candidate(const struct agents *a, int agent, struct candidate *out);

/* For the status. */
struct agent_status {
	const char *name, *state; /* up, suspect, lost, joining, draining, drained, leaving */
	double weight;
	unsigned links_up, links_suspect;
	uint64_t connections, handshakes, sessions;
	unsigned busy_permille;
	uint32_t handshake_us;
	char version[AGENT_VERSION_MAX]; /* its last word; "": it said none since its start */
	enum agent_clock clock;          /* KNOWN only while a link is up */
	int64_t clock_offset_ms;
};
void agents_status(const struct agents *a, int agent, struct agent_status *out);

#endif
