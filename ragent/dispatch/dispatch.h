/* dispatch.h: chooses the agent of a handshake, and the agent of the application data (the affinity agent of the
 * client's address), among the agents that this worker can give new work.
 */
#ifndef CSSL_RAGENT_DISPATCH_H
#define CSSL_RAGENT_DISPATCH_H

#include "ragent/dispatch/front.h"
#include "ragent/dispatch/hello.h"
#include "ragent/dispatch/links.h"

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

#endif
