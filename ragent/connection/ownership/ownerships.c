/* ownerships.c: a ring; the newest entry replaces the oldest. A look-up reads the whole ring, because only operators
 * ask, and rarely. As bytes for another process, the oldest first: connection id (16) | since, ms of the monotonic
 * clock (8) | pause, us (4) | epoch (2) | agent (2) | cause (1).
 */
#include "ragent/connection/ownership/ownerships.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "ragent/dispatch/agents.h"

#define PACKED_LEN 33u

struct ownerships {
	uint64_t noted;
	struct ownership at[OWNERSHIPS_KEPT];
};

struct ownerships *ownerships_create(void)
{
	return calloc(1, sizeof(struct ownerships)); /* pages without entries take no memory */
}

void ownerships_note(struct ownerships *o, const struct ownership *next)
{
	o->at[o->noted++ % OWNERSHIPS_KEPT] = *next;
}

static uint64_t ownerships_oldest(const struct ownerships *o)
{
	return o->noted > OWNERSHIPS_KEPT ? o->noted - OWNERSHIPS_KEPT : 0;
}

size_t ownerships_of(
	const struct ownerships *o, const struct connection_id *id, struct ownership out[static OWNERSHIPS_LISTED])
{
	const uint64_t first = ownerships_oldest(o);
	size_t count = 0;

	for (uint64_t i = o->noted; i > first && count < OWNERSHIPS_LISTED; i--) {
		const struct ownership *found = &o->at[(i - 1) % OWNERSHIPS_KEPT];
		if (memcmp(found->connection.bytes, id->bytes, CONNECTION_ID_LEN) == 0)
			out[count++] = *found;
	}
	for (size_t i = 0; i < count / 2; i++) {
		const struct ownership swapped = out[i];
		out[i] = out[count - 1 - i];
		out[count - 1 - i] = swapped;
	}
	return count;
}

/* --- in another process --- */

size_t ownerships_packed_len(const struct ownerships *o)
{
	return (size_t)(o->noted - ownerships_oldest(o)) * PACKED_LEN;
}

void ownerships_pack(const struct ownerships *o, struct wire_writer *w)
{
	for (uint64_t i = ownerships_oldest(o); i < o->noted; i++) {
		const struct ownership *one = &o->at[i % OWNERSHIPS_KEPT];
		wire_put_bytes(w, one->connection.bytes, CONNECTION_ID_LEN);
		wire_put_u64(w, one->since_ms);
		wire_put_u32(w, one->pause_us);
		wire_put_u16(w, one->epoch);
		wire_put_u16(w, (uint16_t)one->agent);
		wire_put_u8(w, one->cause);
	}
}

/* 0; AGENT_IS_GONE; or negative. */
#define AGENT_IS_GONE 1

static int ownerships_read_one(struct wire_reader *r, const int *agents, unsigned agent_count, struct ownership *out)
{
	const uint8_t *id = wire_bytes(r, CONNECTION_ID_LEN);

	out->since_ms = wire_u64(r);
	out->pause_us = wire_u32(r);
	out->epoch = wire_u16(r);
	out->agent = (int16_t)wire_u16(r);
	out->cause = wire_u8(r);
	if (!r->at)
		return CSSL_E_TRUNCATED;
	if (out->cause >= OWNERSHIP_CAUSE_COUNT || out->agent < NO_AGENT || out->agent >= (int)agent_count)
		return CSSL_E_RANGE;
	memcpy(out->connection.bytes, id, CONNECTION_ID_LEN);
	if (out->agent == NO_AGENT)
		return 0;
	out->agent = (int16_t)agents[out->agent];
	return out->agent == NO_AGENT ? AGENT_IS_GONE : 0;
}

int ownerships_unpack(struct ownerships *o, const int *agents, unsigned agent_count, const uint8_t *in, size_t len)
{
	struct wire_reader checked = wire_reader(in, len), r = checked;
	struct ownership one;

	if (len > (size_t)OWNERSHIPS_KEPT * PACKED_LEN)
		return CSSL_E_RANGE;
	while (wire_left(&checked) > 0) {
		int result = ownerships_read_one(&checked, agents, agent_count, &one);
		if (result < 0)
			return result;
	}
	while (wire_left(&r) > 0)
		if (ownerships_read_one(&r, agents, agent_count, &one) == 0)
			ownerships_note(o, &one);
	return 0;
}
