/* agents.h: the state of all agents in this process: the content of their LOAD frames, the number of their links that
 * are up, and the number of our connections at each. Shared by all workers; all calls from any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "proto/rendezvous.h"
#include "ragent/dispatch/drain.h"

#define AGENTS_MAX        256u
#define NO_AGENT          (-1)
#define AGENT_VERSION_MAX 32u /* longer ones are cut; with the terminating zero */
#define AGENT_FAILING_MAX 256u

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

/* What an agent says goes to people and other programs, and an agent may be hostile: quotes, backslashes and control
 * characters become '?'. */
void agents_clean_text(char *text);

/* A link to the agent came up, or is lost. The first link that is up, or a new boot, deletes the agent's own words,
 * LEAVING too. An operator's words stay. */
void agents_link_up(struct agents *a, int agent, uint64_t boot_id);
void agents_link_down(struct agents *a, int agent);
/* A link that is up became silent, or speaks again. */
void agents_link_suspect(struct agents *a, int agent);
void agents_link_recovered(struct agents *a, int agent);

struct agent_load {
	uint64_t connections, sessions;
	uint32_t handshake_us;
	uint16_t busy_permille;
	enum { AGENT_NOT_READY, AGENT_READY } ready;
	enum { AGENT_HAS_BACKENDS, AGENT_CUT_OFF } backends; /* CUT_OFF: none answers */
	const char *version;                                 /* valid in the call only; "": the agent sent none */
	const char *failing_backends;                        /* likewise; name, address and error of each */
	enum agent_clock { AGENT_CLOCK_UNKNOWN, AGENT_CLOCK_KNOWN } clock;
	int64_t clock_offset_ms; /* its time of day minus ours, too low by the delay of its message */
};
void agents_set_load(struct agents *a, int agent, const struct agent_load *load);

/* Drain the agent: it gets no new work from now on. An operator's drain lasts until agents_undrain(), even after a new
 * boot. The drain of an agent that said LEAVING lasts until its next boot. A drain under way gets the new deadline. */
void agents_drain(struct agents *a, int agent, enum drain_reason reason, uint64_t now_ms, uint64_t timeout_ms);
/* 0, or CSSL_E_STATE: no operator drains it. An agent that leaves by itself still leaves. */
int agents_undrain(struct agents *a, int agent);
/* The agent's drain, in any state. */
struct drain *agents_drain_of(struct agents *a, int agent);

/* Its share of new work and of addresses, > 0. */
void agents_set_weight(struct agents *a, int agent, double weight);

/* The words of an agent and of an operator about it, told to the process before this one. Set them after
 * agents_link_up(), which deletes them. A changed weight of the cluster file counts more than the earlier weight.
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

/* Ready and not draining. */
bool agents_take_new(const struct agents *a, int agent);

/* This number changes when an agent begins or stops to take new work, or when weights change. Then connections may
 * belong to other agents. */
uint64_t agents_generation(const struct agents *a);

/* Counts of our connections at an agent. */
enum agent_share {
	AGENT_HANDSHAKES,  /* under way */
	AGENT_CONNECTIONS, /* connections whose application data is at this agent, or will be after the hand-off */
	AGENT_OWNERSHIPS,  /* streams that it owns, makes the handshake of, or holds frozen */
	AGENT_SHARE_COUNT
};
void agents_enter(struct agents *a, int agent, enum agent_share share);
void agents_leave(struct agents *a, int agent, enum agent_share share);
uint64_t agents_share(const struct agents *a, int agent, enum agent_share share);

/* An agent that a policy may choose. */
struct candidate {
	int agent;
	struct rendezvous_node node; /* hash of its name, weight */
	uint64_t connections, handshakes;
	uint32_t handshake_us;
};
void agents_candidate(const struct agents *a, int agent, struct candidate *out);

/* For the status. */
struct agent_status {
	const char *name, *state; /* ready, no backend, suspect, lost, joining, draining, drained, leaving */
	double weight;
	unsigned links_up, links_suspect;
	uint64_t connections, handshakes, sessions;
	unsigned busy_permille;
	uint32_t handshake_us;
	char version[AGENT_VERSION_MAX]; /* the last one it sent; "": it sent none since its start */
	char failing_backends[AGENT_FAILING_MAX];
	enum agent_clock clock; /* KNOWN only while a link is up */
	int64_t clock_offset_ms;
};
void agents_status(const struct agents *a, int agent, struct agent_status *out);
