/* dispatch.h: which agent makes a handshake and which one gets the application data (the affinity agent of the client's
 * address), among those that this worker can give something new.
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

/* Who should speak with a client in clear before STARTTLS, by the handshake policy, which counts these by themselves;
 * @except as above. NO_AGENT: nobody is up. */
int dispatch_preamble(struct links *links, struct front *front, const struct client_address *client, int except);

/* Who should own a connection next, @except who had it; NO_AGENT: nobody is up. Where connections follow their client's
 * address its affinity agent, elsewhere whom the handshake policy picks. */
int dispatch_owner(struct links *links, struct front *front, const struct client_address *client, int except);

/* The affinity agent of one that @owner has: @owner itself where that is as good as another. */
int dispatch_home(struct links *links, struct front *front, const struct client_address *client, int owner);

#endif
