/* position.c: counts committed records. */
#include "ragent/connection/ownership/position.h"

#include "net/points/mutant.h"
#include "proto/error.h"

#define SEQUENCE_END                                                                                                   \
	(UINT64_C(1) << 48) /* nonces of TLS 1.2 AES-GCM have room for no more; TLS 1.3 changes keys long before */

static void position_reach_checkpoint(struct position *p)
{
	p->checkpoint = p->now;
	p->response = POSITION_AT_CHECKPOINT;
	p->response_records = 0;
	p->response_bytes = 0;
}

static int position_commit_sequence(struct position *p, uint8_t flags, unsigned records)
{
	if (p->stage == POSITION_HANDSHAKE)
		return flags & FRAME_LAST_OF_WRITE_GENERATION ? CSSL_E_RANGE : 0;
	if (p->write_sequence + records > SEQUENCE_END)
		return CSSL_E_RANGE;
	if (!(flags & FRAME_LAST_OF_WRITE_GENERATION)) {
		p->write_sequence += mutant("records-miscounted") ? 1 : records;
		return 0;
	}
	if (records != 1 || p->write_generation == UINT32_MAX)
		return CSSL_E_RANGE;
	p->write_generation++;
	p->write_sequence = 0;
	return 0;
}

int position_commit(struct position *p, uint8_t flags, unsigned records, size_t len)
{
	int r = position_commit_sequence(p, flags, records);

	if (r < 0)
		return r;
	p->server_records += records;
	if (flags & FRAME_RESPONSE_BYTES) {
		p->response = POSITION_PARTLY_DELIVERED;
		p->response_records += records;
		p->response_bytes += len;
	}
	if (flags & FRAME_CHECKPOINT)
		position_reach_checkpoint(p);
	return 0;
}

/* No record has more bytes than an offset can say. */
static bool position_may_go_to(const struct position_mark *from, const struct position_mark *to, uint32_t offset)
{
	if (offset > UINT16_MAX || to->client_records < from->client_records ||
		to->read_generation < from->read_generation)
		return false;
	if (to->client_records == from->client_records && offset < from->offset)
		return false;
	return to->read_generation != from->read_generation || to->read_sequence >= from->read_sequence;
}

/* More is consumed than before: something is open. */
static void position_leave_checkpoint(struct position *p)
{
	if (p->response == POSITION_AT_CHECKPOINT)
		p->response = POSITION_NOTHING_DELIVERED;
}

int position_consume(struct position *p, const struct frame_consumed *c, uint8_t flags)
{
	const struct position_mark to = {
		.client_records = c->client_records,
		.read_sequence = c->read_sequence,
		.read_generation = c->read_generation,
		.offset = (uint16_t)c->offset,
		.read_closed = p->now.read_closed,
	};

	if (!position_may_go_to(&p->now, &to, c->offset))
		return CSSL_E_RANGE;
	const bool more = to.client_records > p->now.client_records || to.offset > p->now.offset;
	p->now = to;
	if (flags & FRAME_CHECKPOINT)
		position_reach_checkpoint(p);
	else if (more)
		position_leave_checkpoint(p);
	return 0;
}

int position_claim(struct position *p, const Cssl__LinkLive *live)
{
	const Cssl__Position *c = live->position;
	const bool first = p->stage == POSITION_HANDSHAKE;

	if (!c)
		return CSSL_E_TRUNCATED;
	const struct position_mark to = {
		.client_records = c->client_records,
		.read_sequence = c->read_sequence,
		.read_generation = c->read_generation,
		.offset = (uint16_t)c->offset,
		.read_closed = live->read_closed ? 1 : 0,
	};
	if (c->server_records != p->server_records || c->write_sequence > SEQUENCE_END ||
		!position_may_go_to(&p->now, &to, c->offset))
		return CSSL_E_MISMATCH;
	if (!first && (c->write_generation != p->write_generation || c->write_sequence != p->write_sequence))
		return CSSL_E_MISMATCH;
	p->stage = POSITION_LIVE;
	p->now = to;
	p->write_generation = c->write_generation;
	p->write_sequence = c->write_sequence;
	if (first) /* records of the handshake are not part of a request */
		p->checkpoint = to;
	if (live->at_checkpoint)
		position_reach_checkpoint(p);
	else
		position_leave_checkpoint(p);
	return 0;
}
