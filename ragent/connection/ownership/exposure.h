/* exposure.h: what the next owner has to know of the losses of earlier owners: which client records they may have
 * given to a backend, whether they may still do that, and how often the same request met a loss without an answer.
 * Pure.
 */
#pragma once

#include <stdint.h>

#include "ragent/link/peer_process.h"

/* A request that was open at the loss of two owners is not given to a third: it may be what kills them. */
#define EXPOSURE_LOSSES_MAX      2u
/* An agent that is lost before it reported that it adopted may not have seen the request: so many of these count as
 * one loss. */
#define EXPOSURE_SILENT_PER_LOSS 3u

/* Embedded; zero: no owner was lost. */
struct exposure {
	uint64_t records; /* number of the first client record that no lost owner got */
	uint8_t fate;   /* enum peer_fate of the owners that got records without an answer: dead only if all of them are
			 */
	uint8_t losses; /* losses with something open, since the last progress */
	uint8_t silent; /* losses of adopters before they reported anything, not yet counted in @losses */
};

/* What the lost owner had. */
enum exposure_loss {
	LOSS_OF_NOTHING_OPEN,
	LOSS_OF_A_REQUEST, /* it certainly had a request that is open */
	/* it was lost before it reported anything: perhaps it was killed together with others, perhaps by what it was
	 * given */
	LOSS_BEFORE_ANY_WORD
};
/* An owner is lost. It got the records below number @sent. Those below @answered are answered. */
void exposure_add(struct exposure *e, uint64_t answered, uint64_t sent, enum peer_fate fate, enum exposure_loss loss);
/* A part of an answer came, or all requests are answered. */
static inline void exposure_progress(struct exposure *e)
{
	e->losses = e->silent = 0;
}
