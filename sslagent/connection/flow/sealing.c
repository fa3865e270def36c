/* sealing.c: an owner's records to the client. The bytes are sealed straight into the carrier's output, as far as the
 * client has room.
 */
#include "sslagent/connection/flow/sealing.h"

#include "net/points/fault.h"
#include "net/points/mutant.h"
#include "sslagent/connection/connection_life.h"
#include "sslagent/connection/conversation.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

uint64_t sealing_credit(const struct connection *c)
{
	uint64_t on_the_way = c->sent - c->drained, window = c->home->window_len;

	if (c->carrier->pace == CARRIER_PAUSED && !mutant("parked-owner-seals"))
		return 0;
	return on_the_way < window ? window - on_the_way : 0;
}

/* Our own KeyUpdate: the copy of the new keys goes first, and nothing is sealed after it before the commit (law 6). */
int sealing_key_update(struct connection *c)
{
	uint8_t record[LIVE_SMALL_RECORD_MAX];
	int r = mutant("copy-not-renewed") ? 0 : succession_send_copy(c, LIVE_AFTER_KEY_UPDATE);

	if (r < 0)
		return r;
	r = connection_send(c, record, live_seal_key_update(c->live, record), 1, FRAME_LAST_OF_WRITE_GENERATION);
	count(COUNT_KEY_UPDATES_SENT);
	if (r == 0 && !carrier_moves(c->carrier))
		live_committed(c->live, live_position(c->live).write_generation); /* no other agent could own it */
	return r;
}

/* The parts of a full record. */
struct full_record {
	size_t fragment, overhead; /* the most plaintext, and all other bytes */
};

/* The credit that comes back in halves of a window is always enough for one. */
static struct full_record full_record_of(const struct connection *c)
{
	const size_t max = live_fragment_max(c->live), overhead = live_overhead(c->live);
	const size_t half = c->home->window_len / 2 - overhead;

	return (struct full_record){ .fragment = max < half ? max : half, .overhead = overhead };
}

size_t sealing_fragment_max(const struct connection *c)
{
	return full_record_of(c).fragment;
}

static size_t records_len(const struct full_record *full, size_t len)
{
	return len + (len + full->fragment - 1) / full->fragment * full->overhead;
}

/* How many of @len bytes fit: their records take at most @room bytes. All of them, or as many full records as there
 * is room for. A short record in the middle of an answer would cost every hop up to the client as much as a full
 * one. */
static size_t sealable(const struct full_record *full, size_t len, uint64_t room)
{
	if (records_len(full, len) <= room)
		return len;
	return (size_t)(room / (full->fragment + full->overhead)) * full->fragment;
}

size_t sealing_room(const struct connection *c, size_t len)
{
	const struct full_record full = full_record_of(c);

	return sealable(&full, len, sealing_credit(c));
}

/* What the frame says of its records is committed with them (law 3). */
static uint8_t sealing_flags(struct connection *c, enum service_piece piece)
{
	uint8_t flags = piece == SERVICE_RESPONSE ? FRAME_RESPONSE_BYTES : 0;

	if (flags)
		c->delivered = DELIVERED_SOME;
	conversation_drop_asked(c);
	if (conversation_at_checkpoint(c)) {
		flags |= FRAME_CHECKPOINT;
		conversation_reach_checkpoint(c);
	}
	return flags;
}

size_t sealing_seal(struct connection *c, const uint8_t *data, size_t len)
{
	const struct full_record full = full_record_of(c);
	uint64_t room = sealing_credit(c);
	size_t most = sealable(&full, len, room < FRAME_PAYLOAD_MAX ? room : FRAME_PAYLOAD_MAX);
	size_t used = 0, out = 0;
	unsigned records = 0;

	if (most == 0)
		return 0;
	succession_leave_note(c, data, len, most);
	consumed_report(c); /* before the frame begins */
	uint8_t *frame = c->carrier->ops->reserve(c->carrier, records_len(&full, most));
	if (!frame) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return 0;
	}
	while (used < most) {
		size_t n = most - used < full.fragment ? most - used : full.fragment;
		ptrdiff_t sealed = live_seal(c->live, data + used, n, frame + out);
		if (sealed < 0)
			break;
		used += n;
		out += (size_t)sealed;
		records++;
	}
	if (records == 0)
		return 0;
	enum service_piece piece = service_from_backend(&c->service, data, used);
	count_by(COUNT_RECORDS_SEALED, records);
	fault_at("answer.sealed", NULL, NULL);
	count_by(COUNT_BYTES_TO_CLIENT, used);
	const uint8_t flags = sealing_flags(c, piece);
	c->carrier->ops->send(c->carrier, out, flags);
	c->sent += out;
	c->server_records += records;
	return used;
}
