/* link.h: this agent's end of one link from a worker of RAgent: frames in and out, its streams, and the carriers
 * that these are for connections. Used from its worker's thread only. When the link is lost, all its streams are
 * lost: their connections stop sealing at once, reset their backends and wipe their live parts (law 7). RAgent then
 * moves them to other agents.
 */
#ifndef CSSL_SSLAGENT_LINK_H
#define CSSL_SSLAGENT_LINK_H

#include "proto/link.pb-c.h"
#include "proto/opening.h"
#include "sslagent/carrier/carrier_home.h"

struct link;

/* A link whose opening is complete, on its way from the main loop to its worker. */
struct link_arrival {
	struct carrier_home *home;
	int fd;
	struct link_keys keys;
	struct link_hello peer;
	int memory;     /* carries the link's bytes; -1: the socket does */
	uint8_t *early; /* bytes that came after the opening */
	size_t early_len;
};

/* Begin to serve it, on its worker's thread. On failure the connection is closed and the failure logged. Takes over
 * @arrival. */
void link_begin(struct link_arrival *arrival);
void link_arrival_destroy(struct link_arrival *arrival); /* closes what it still has */

/* The name of its RAgent. */
const char *link_ragent(const struct link *l, uint64_t *boot_id);
/* Answer a REQUEST with a packed LinkResponse. The link may be gone when the answer is ready, so requests remember its
 * number (carrier_home_find_link()). */
void link_respond(struct link *l, const uint8_t *response, size_t len);

#endif
