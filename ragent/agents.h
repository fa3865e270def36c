/* agents.h: the agents of the cluster as this process knows them: what their LOAD frames say, how many of their links
 * are up, how many of our connections are with them. Shared by all workers; all calls from any thread.
 */
#ifndef CSSL_RAGENT_AGENTS_H
#define CSSL_RAGENT_AGENTS_H

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "proto/rendezvous.h"

#define AGENTS_MAX 256u
#define NO_AGENT   (-1)

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
 * had said about itself. */
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
};
void agents_set_load(struct agents *a, int agent, const struct agent_load *load);
void agents_set_leaving(struct agents *a, int agent);

/* Ready and not leaving: 1 or 0. */
int agents_take_new(const struct agents *a, int agent);

/* What our connections have with an agent. */
enum agent_share {
	AGENT_HANDSHAKES, /* under way */
	AGENT_CONNECTIONS /* whose application data is, or after the hand-off will be, there */
};
void agents_enter(struct agents *a, int agent, enum agent_share share);
void agents_leave(struct agents *a, int agent, enum agent_share share);

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
	const char *name, *state; /* up, suspect, lost, joining, leaving */
	unsigned links_up, links_suspect;
	uint64_t connections, handshakes, sessions;
	unsigned busy_permille;
	uint32_t handshake_us;
};
void agents_status(const struct agents *a, int agent, struct agent_status *out);

#endif
