/* exposure.h: what the losses of a connection's earlier owners mean for the next one: which client records they may
 * have given to a backend, whether they may still do so, and how often the same request has met a loss without an
 * answer. Pure.
 */
#ifndef CSSL_RAGENT_EXPOSURE_H
#define CSSL_RAGENT_EXPOSURE_H

#include <stdint.h>

#include "ragent/link/peer_process.h"

/* A request that cost two owners does not get a third: it may be what kills them. */
#define EXPOSURE_LOSSES_MAX      2u
/* Who is lost before it said that it adopted need not have seen the request: of those so many are one loss. */
#define EXPOSURE_SILENT_PER_LOSS 3u

/* Embedded; zero: no owner was lost. */
struct exposure {
	uint64_t records; /* number of the first client record that no lost owner got */
	uint8_t fate;     /* enum peer_fate of those who got records that are not answered: dead when all are */
	uint8_t losses;   /* with something open, since the last progress */
	uint8_t silent;   /* losses of who was to adopt and said nothing, not counted in @losses yet */
};

/* An owner is lost that got the records below number @sent; those below @answered are answered. */
void exposure_add(struct exposure *e, uint64_t answered, uint64_t sent, enum peer_fate fate);
/* It was lost with a request open that it was known to have. */
void exposure_count_loss(struct exposure *e);
/* It was lost before it said anything: with others that were killed at the same moment, or by what it was given. */
void exposure_count_silent_loss(struct exposure *e);
/* Something of an answer came, or all is answered. */
static inline void exposure_progress(struct exposure *e)
{
	e->losses = e->silent = 0;
}

#endif
