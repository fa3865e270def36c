/* link.h: this agent's end of one link from a RAgent worker: frames in and out, its streams, and the carriers that they
 * are for connections. Its worker's thread only. When the link is lost every stream on it is: their connections stop
 * sealing at once, reset their backends and wipe their live parts (law 7); RAgent takes them over.
 */
#ifndef CSSL_SSLAGENT_LINK_H
#define CSSL_SSLAGENT_LINK_H

#include "proto/link.pb-c.h"
#include "proto/opening.h"
#include "sslagent/carrier/carrier_home.h"

struct link;

/* A link whose opening is done, on its way from the main loop to its worker. Owned: link_begin() frees it. */
struct link_arrival {
	int fd;
	struct link_keys keys;
	struct link_hello peer;
	int memory;     /* what the link's bytes go through; -1: the socket */
	uint8_t *early; /* bytes behind the opening */
	size_t early_len;
};

/* Begin to serve it; on failure the connection is closed and logged. */
void link_begin(struct carrier_home *home, struct link_arrival *arrival);
void link_arrival_destroy(struct link_arrival *arrival); /* wipes; does not close descriptors */

/* Give this agent nothing new (LEAVING). */
void link_say_leaving(struct link *l);
/* Close, as if lost. All streams are forgotten. */
void link_close(struct link *l);
/* Bytes that wait to be taken by the network. */
size_t link_queued(const struct link *l);
/* Place of the next one in the worker's list. */
struct link **link_next(struct link *l);

/* Answer a REQUEST. The link may be gone when the answer is ready, so requests remember its number (unique in a
 * worker). */
uint64_t link_number(const struct link *l);
void link_respond(struct link *l, const Cssl__LinkResponse *response);

#endif
