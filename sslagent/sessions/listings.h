/* listings.h: the listings that are under way, all on one loop: a step of one of them, then a pause. However many
 * operators ask, and however large the store is, they take a part of one CPU and never a long turn of the loop, which
 * handshakes and broadcasts need.
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
	/* On the loop, exactly once, possibly from within listings_add(); 0, or negative: it could not be done. */
	void (*done)(struct listing_job *j, int error);
};

/* On the loop of @w from now on. NULL: out of memory. */
struct listings *listings_create(struct worker *w);
/* What is under way is done with CSSL_E_STATE, and what comes later too. */
void listings_close(struct listings *l);
void listings_destroy(struct listings *l); /* closed, or nothing was ever added; NULL is legal */

void listings_add(struct listings *l, struct listing_job *j);

#endif
