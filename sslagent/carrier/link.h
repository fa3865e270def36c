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

/* A link whose opening is complete, on its way from the main loop to its worker. The owner passes it to
 * link_begin(), which frees it. */
struct link_arrival {
	int fd;
	struct link_keys keys;
	struct link_hello peer;
	int memory;     /* carries the link's bytes; -1: the socket does */
	uint8_t *early; /* bytes that came after the opening */
	size_t early_len;
};

/* Begin to serve it. On failure the connection is closed and the failure logged. */
void link_begin(struct carrier_home *home, struct link_arrival *arrival);
void link_arrival_destroy(struct link_arrival *arrival); /* wipes; does not close descriptors */

/* Ask RAgent to give this agent no new connections (LEAVING). */
void link_say_leaving(struct link *l);
/* Close it, as if it was lost. All streams are forgotten. */
void link_close(struct link *l);
/* Bytes that the network has not taken yet. */
size_t link_queued(const struct link *l);
/* The name of its RAgent. */
const char *link_ragent(const struct link *l, uint64_t *boot_id);
/* The pointer to the next link in the worker's list. */
struct link **link_next(struct link *l);

/* Answer a REQUEST. The link may be gone when the answer is ready, so requests remember its number (unique in a
 * worker). */
uint64_t link_number(const struct link *l);
void link_respond(struct link *l, const Cssl__LinkResponse *response);

#endif
