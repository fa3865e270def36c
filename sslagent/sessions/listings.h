/* listings.h: the listings under way, all on one loop: a step of one listing, then a pause. With any number of
 * operators and any size of the store they take only a part of one CPU. They never take a long turn of the loop,
 * because handshakes and broadcasts need it.
 */
#ifndef CSSL_SSLAGENT_LISTINGS_H
#define CSSL_SSLAGENT_LISTINGS_H

#include "net/worker.h"
#include "sslagent/sessions/session_listing.h"

struct listings;

/* Embedded in the asker's question. */
struct listing_job {
	struct listing_job *next;
	struct session_listing *listing; /* the asker's */
	/* On the loop, exactly once, possibly from within listings_add(); 0, or negative: the listing failed. */
	void (*done)(struct listing_job *j, int error);
};

/* On the loop of @w from now on. NULL: out of memory. */
struct listings *listings_create(struct worker *w);
/* Listings under way end with CSSL_E_STATE, and later ones too. */
void listings_close(struct listings *l);
void listings_destroy(struct listings *l); /* closed, or nothing was ever added; NULL is legal */

void listings_add(struct listings *l, struct listing_job *j);

#endif
