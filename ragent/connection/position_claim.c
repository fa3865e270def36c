/* position_claim.c: reads the numbers of a frame's message. */
#include "ragent/connection/position_claim.h"

#include "proto/error.h"

int position_claim_read(struct position_claim *out, const Cssl__LinkLive *live)
{
	const Cssl__Position *p = live->position;

	if (!p)
		return CSSL_E_TRUNCATED;
	*out = (struct position_claim){
		.client_records = p->client_records,
		.read_sequence = p->read_sequence,
		.server_records = p->server_records,
		.write_sequence = p->write_sequence,
		.read_generation = p->read_generation,
		.write_generation = p->write_generation,
		.offset = p->offset,
		.read_closed = live->read_closed ? 1 : 0,
		.checkpoint = live->at_checkpoint ? CLAIM_AT_CHECKPOINT : CLAIM_AWAY_FROM_CHECKPOINT,
	};
	return 0;
}
