/* dispatch.h: chooses the agent of a handshake, and the agent of the application data (the affinity agent of the
 * client's address), among the agents that this worker can give new work. All workers share the policies of a listener,
 * so that "even" means even over the process.
 */
#pragma once

#include <stdatomic.h>

#include "conf/conf.h"
#include "proto/session_id.h"
#include "ragent/dispatch/links.h"

/* --- policies: one interface, a table of functions. Each listener has one policy for full handshakes and one for
 * resumptions. Thread-safe --- */

struct policy;

/* @affinity_bound: an agent gets by affinity at most this many times its share of the handshakes under way
 * (CONF_LOCAL); 0: no limit. NULL: out of memory. */
struct policy *policy_create(enum conf_policy kind, double affinity_bound);
void policy_destroy(struct policy *p);

/* Choose among @count > 0 candidates: an index into them. @affinity: index of the affinity agent, or -1. */
size_t policy_pick(struct policy *p, const struct candidate *candidates, size_t count, int affinity);

const char *policy_name(enum conf_policy kind);

/* --- affinity: rendezvous hashing over the candidates, with bounded load, so that one address of a big NAT cannot
 * overload one agent. Pure --- */

/* Index of the affinity agent of @client, -1 without candidates. @bound 0: unbounded; else (>= 1.0) no agent gets more
 * than @bound times its fair share by weight of all connections, the new one included. */
int affinity_pick(const struct candidate *candidates, size_t count, const struct client_address *client, double bound);

/* --- a listener of the cluster file: its settings and its policies. Made and bound before the workers run; then only
 * the policies and the gauge change, and these are thread-safe --- */

struct front {
	size_t index; /* among the listeners of the cluster file */
	const struct conf_listener *conf;
	struct policy *handshake, *resumption;
	/* like @handshake, with its own turns. A client before STARTTLS asks twice, once for each: if both used the
	 * same turns, every second agent would get no handshake */
	struct policy *preamble;
	_Atomic uint64_t connections;
	uint32_t beyond;                /* so many of its connections may come above limits.connections */
	struct sockaddr_storage *bound; /* by the first worker: its addresses, with real ports instead of 0 */
	size_t bound_count;
};

/* The listener @index of @all, which outlives it. 0 or CSSL_E_NO_MEMORY (then it can still be cleared). */
int front_init(struct front *f, size_t index, const struct conf *all);
void front_clear(struct front *f);

/* May this listener's connections change their owner? */
bool front_moves(const struct front *f);
/* Do they go to the affinity agent after the handshake (CSSL-SF)? */
bool front_hands_off(const struct front *f);

/* --- a connection's first records: whether they are TLS, and whether the client offers a resumption. Pure --- */

enum hello_offer { HELLO_FULL, HELLO_RESUMING };

#define HELLO_INCOMPLETE 1

/* 0 with *offer: dispatch. The handshake agent answers a malformed or endless hello, so that is HELLO_FULL.
 * HELLO_INCOMPLETE: more bytes are needed. CSSL_E_TYPE: not TLS. CSSL_E_TOO_LONG: it claims more bytes than a hello
 * may have. @scratch: CLIENT_HELLO_MAX bytes. */
int hello_look(const uint8_t *data, size_t len, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN],
	uint8_t *scratch, enum hello_offer *offer);

/* --- choices --- */

struct dispatch {
	int handshake_agent;
	int affinity_agent; /* the handshake agent itself where connections do not move */
};

/* @except: an agent that just refused, or NO_AGENT; chosen again only if there is no other. 0, or CSSL_E_NOT_FOUND: no
 * agent is up. */
int dispatch_hello(struct links *links, struct front *front, const struct client_address *client, enum hello_offer kind,
	int except, struct dispatch *out);

/* Choose the agent that speaks with a client in clear before STARTTLS, by the handshake policy with counts of its own.
 * @except as above. NO_AGENT: no agent is up. */
int dispatch_preamble(struct links *links, struct front *front, const struct client_address *client, int except);

/* Choose the next owner of a connection; @except is the last owner. Where connections follow their client's address it
 * is the affinity agent, elsewhere the choice of the handshake policy. NO_AGENT: no agent is up. */
int dispatch_owner(struct links *links, struct front *front, const struct client_address *client, int except);

/* The affinity agent of a connection of @owner: @owner itself when no other agent is better. */
int dispatch_home(struct links *links, struct front *front, const struct client_address *client, int owner);
