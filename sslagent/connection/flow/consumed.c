/* consumed.c: decides which of the client's records are consumed, and when the carrier is told.
 *
 * A record counts as consumed when the backend's socket has taken its plaintext. The carrier is told with the next
 * records to the client, after half a window, or after REPORT_DELAY_MS, whichever comes first.
 *
 * The connection's deadline is for reports first: when none is due, it is that of the head that did not end
 * (from_client.c), or the time when a client that changes its keys too often may go on.
 */
#include "sslagent/connection/flow/consumed.h"

#include "sslagent/connection/connection_life.h"
#include "sslagent/connection/conversation.h"
#include "sslagent/counters.h"

#define REPORT_DELAY_MS 20u

void consumed_report(struct connection *c)
{
	uint8_t flags = conversation_at_checkpoint(c) ? FRAME_CHECKPOINT : 0;

	if (c->consumed.report == REPORT_NOTHING)
		return;
	if (flags & FRAME_CHECKPOINT)
		conversation_reach_checkpoint(c);
	c->consumed.pace_told = c->consumed.pace;
	if (c->consumed.pace == CLIENT_WAITS)
		flags |= FRAME_CLIENT_WAITS;
	c->consumed.report = REPORT_NOTHING;
	c->consumed.reported_bytes = c->consumed.reached.record_bytes;
	deadline_cancel(&c->deadline);
	consumed_arm(c);
	c->carrier->ops->consumed(c->carrier, &c->consumed.reached.position, flags);
}

/* --- a client that changes its keys too often --- */

/* It is read only as fast as it may change them: after such a KeyUpdate its next record waits. Were its connection
 * ended at once, the next one would cost a handshake, which is dearer than what the limit spares. One that goes on like
 * that is ended (live.h).
 *
 * The carrier is told, so that RAgent reads nothing more of the client meanwhile. It is told again when records are
 * opened, unless the next one that is here already makes the client wait again.
 *
 * A successor opens what the lost owner had got without waiting; a tenth KeyUpdate among it ends the connection. Then
 * it waits as the owner had to.
 */

uint64_t consumed_wait_ms(const struct connection *c)
{
	return live_key_update_wait_ms(c->live, worker_now_ms(c->home->worker));
}

void consumed_judge_pace(struct connection *c)
{
	if (!connection_serves(c) || consumed_wait_ms(c) == 0)
		return;
	c->consumed.pace = CLIENT_WAITS;
	count(COUNT_KEY_UPDATES_PACED);
	consumed_arm(c);
}

void consumed_tell_pace(struct connection *c)
{
	if (c->consumed.pace == c->consumed.pace_told)
		return;
	c->consumed.report = REPORT_NOW;
	consumed_report(c);
}

void consumed_arm(struct connection *c)
{
	const uint64_t now_ms = worker_now_ms(c->home->worker);

	if (c->consumed.report != REPORT_NOTHING || !connection_serves(c))
		return;
	uint64_t at_ms = c->consumed.pace == CLIENT_WAITS ? now_ms + consumed_wait_ms(c) : UINT64_MAX;
	if (c->head_until_ms && c->head_until_ms < at_ms)
		at_ms = c->head_until_ms;
	if (at_ms == UINT64_MAX)
		deadline_cancel(&c->deadline);
	else
		deadline_set(c->home->worker, &c->deadline, at_ms > now_ms ? at_ms - now_ms : 1);
}

/* --- marks --- */

static void consumed_note(struct connection *c, enum consumed_report urgency)
{
	if (c->consumed.reached.record_bytes - c->consumed.reported_bytes >= c->home->window_len / 2)
		urgency = REPORT_NOW;
	if (urgency == REPORT_NOW) {
		c->consumed.report = REPORT_NOW;
		consumed_report(c);
		return;
	}
	if (c->consumed.report == REPORT_NOTHING) {
		c->consumed.report = REPORT_WITH_NEXT_DATA;
		deadline_set(c->home->worker, &c->deadline, REPORT_DELAY_MS);
	}
}

void consumed_written(struct connection *c)
{
	enum consumed_report urgency = REPORT_WITH_NEXT_DATA;
	const struct consumed_mark *from = &c->consumed.reached, *to = &c->consumed.newest;
	const uint32_t generation = from->position.read_generation;

	if (c->consumed.awaited.to_backend > c->written ||
		(from->record_bytes == to->record_bytes && from->position.offset == to->position.offset))
		return;
	c->consumed.reached = c->consumed.awaited;
	if (c->consumed.newest.to_backend <= c->written)
		c->consumed.reached = c->consumed.newest;
	c->consumed.awaited = c->consumed.newest;
	if (c->consumed.reached.position.read_generation != generation)
		urgency = REPORT_NOW; /* makes the copy current */
	consumed_note(c, urgency);
}

static struct consumed_mark consumed_here(const struct connection *c)
{
	struct live_position at = live_position(c->live);

	return (struct consumed_mark){
		.to_backend = c->to_backend,
		.record_bytes = c->record_bytes,
		.position = { .client_records = c->client_records - live_unfinished(c->live),
			.offset = c->skip,
			.read_sequence = at.read_sequence - (connection_holds(c) ? 1 : 0),
			.read_generation = at.read_generation },
	};
}

void consumed_opened(struct connection *c)
{
	c->consumed.newest = consumed_here(c);
	if (c->consumed.awaited.to_backend <= c->written)
		c->consumed.awaited = c->consumed.newest;
	consumed_written(c);
}

void consumed_stand_here(struct connection *c)
{
	c->consumed.newest = consumed_here(c);
	c->consumed.awaited = c->consumed.reached = c->consumed.newest; /* KEPT or SSL_ID has told it */
	c->consumed.reported_bytes = c->record_bytes;
}
