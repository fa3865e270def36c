/* exposure.c: a record number, a fate and a count. */
#include "ragent/connection/ownership/exposure.h"

#include <stdbool.h>

static void exposure_count_loss(struct exposure *e)
{
	if (e->losses < UINT8_MAX)
		e->losses++;
}

static void exposure_count_silent_loss(struct exposure *e)
{
	if (++e->silent < EXPOSURE_SILENT_PER_LOSS)
		return;
	e->silent = 0;
	exposure_count_loss(e);
}

void exposure_add(struct exposure *e, uint64_t answered, uint64_t sent, enum peer_fate fate, enum exposure_loss loss)
{
	bool earlier_matters = e->records > answered;

	if (!earlier_matters)
		e->fate = (uint8_t)fate;
	else if (sent > answered && fate != PEER_DEAD) /* an agent that got no record can do no harm */
		e->fate = (uint8_t)fate;
	if (sent > e->records)
		e->records = sent;
	if (loss == LOSS_BEFORE_ANY_WORD)
		exposure_count_silent_loss(e);
	else if (loss == LOSS_OF_A_REQUEST)
		exposure_count_loss(e);
}
