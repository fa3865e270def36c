/* connection_agent.c: frames from agents. Only frames of the current stream have an effect; others are dropped and
 * counted. An agent breaks the link protocol by a frame that the state does not allow, or that contradicts committed
 * records. Then the result is negative, and the link ends.
 */
#include <string.h>

#include "net/points/audit.h"
#include "net/points/mutant.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/link_words.h"
#include "ragent/connection/connection_clear.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"

/* --- records --- */

static void agent_follow_copies(struct connection *c)
{
	if (!copies_commit(&c->now.copies, &c->home->blocks, &c->now.position))
		return;
	c->now.copied_ms = connection_now_ms(c);
	counter_add(&c->home->counters.copies_current, 1);
}

static int agent_follow_consumed(struct connection *c)
{
	int r = kept_consume(&c->busy->kept, c->now.position.now.client_records);

	if (r == 0)
		connection_trim_replay(c, 0);
	return r;
}

/* Keeps what the successor of a lost owner needs to know of the answer. */
static void agent_follow_answer(struct connection *c, uint8_t flags)
{
	if (flags & (FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT))
		exposure_progress(&c->busy->exposure);
	if (flags & FRAME_CHECKPOINT && c->busy->note.current && connection_service(c)->loss != SERVICE_RESOLVES_LOSS)
		note_drop(&c->busy->note, &c->home->blocks);
}

/* The owner was asked to freeze the connection, and still works on it: the client does not wait yet. */
static void agent_note_work(struct connection *c)
{
	if (c->now.state == CONNECTION_MOVING)
		connection_owner_goes(c);
}

/* The client of a lost owner waited, and now gets its next record. */
static void agent_end_pause(struct connection *c)
{
	struct ragent_counters *n = &c->home->counters;
	uint64_t pause_ms = connection_now_ms(c) - c->busy->pause_began_ms;

	time_counters_add(&n->takeover_pauses_2ms, takeover_buckets, pause_ms * 1000);
	counter_add(&n->takeover_pause_ms, pause_ms);
	c->busy->pause_began_ms = 0;
}

/* 0 if the frame holds whole records and nothing else; or negative. */
static int agent_scan_data(const struct connection *c, const struct frame *f, struct tls_record_run *run)
{
	struct tls_record_header bad;

	if (f->flags & (FRAME_PLAINTEXT | FRAME_RECORDS_FOLLOW) || c->now.server_side != SERVER_OPEN)
		return CSSL_E_STATE;
	if (fault_at("records.received", NULL, NULL) == FAULT_FAIL)
		return CSSL_E_STATE;
	int r = tls_record_scan_run(f->payload, f->len, f->len, run, &bad);
	if (r < 0 || run->len != f->len)
		return r < 0 ? r : CSSL_E_TRUNCATED;
	return 0;
}

static bool ends_generation(const struct frame *f)
{
	return f->type == FRAME_DATA && f->flags & FRAME_LAST_OF_WRITE_GENERATION;
}

static void agent_audit(const struct connection *c, const struct frame *f)
{
	if (f->type == FRAME_DATA && c->now.position.stage == POSITION_LIVE)
		audit_accepted(c->id.bytes, c->now.epoch, f->payload, f->len);
}

/* Before the slot says so, a record does not count as accepted: if this process dies, the next one knows nothing of it.
 * Either the client has none of its bytes, or the connection cannot go to another owner. But the owner hears at once
 * that a generation has ended, so that counts at once. */
static void agent_audit_saved(const struct connection *c, const struct frame *f, int result)
{
	if (result == 0 && c->now.state != CONNECTION_CLOSING && !ends_generation(f))
		agent_audit(c, f);
}

static int agent_in_data(struct connection *c, const struct frame *f, const void *message)
{
	struct tls_record_run run;

	int r = agent_scan_data(c, f, &run);
	if (r < 0)
		return r;
	if (connection_exceeds_window(c, f->len))
		return 0;
	/* law 3: committed before they are queued, so what the client can get is counted */
	r = position_commit(&c->now.position, f->flags, run.records, run.len);
	if (r < 0)
		return r;
	if (ends_generation(f))
		agent_audit(c, f);
	connection_fault_at(c, "records.committed");
	if (connection_pass_on(c, f) < 0)
		return 0;
	agent_note_work(c);
	connection_count_records(c, RECORDS_OF_SERVER, &run);
	if (f->flags & FRAME_LAST_RECORD)
		c->now.server_side = SERVER_SAID_LAST;
	agent_follow_copies(c);
	agent_follow_answer(c, f->flags);
	if (c->busy->pause_began_ms)
		agent_end_pause(c);
	if (f->flags & FRAME_LAST_OF_WRITE_GENERATION) /* law 6: the owner seals nothing before it hears of it */
		connection_acknowledge(c, ACCEPTED_NOW);
	r = agent_follow_consumed(c);
	if (r == 0 && f->flags & FRAME_CHECKPOINT)
		connection_drain_if_idle(c);
	return r;
}

static int agent_in_consumed(struct connection *c, const struct frame *f, const void *message)
{
	struct frame_consumed consumed;
	int r = frame_consumed_read(f, &consumed);

	if (r == 0)
		r = position_consume(&c->now.position, &consumed, f->flags);
	if (r == 0)
		r = agent_follow_consumed(c);
	if (r < 0)
		return r;
	agent_follow_copies(c);
	agent_note_work(c);
	agent_follow_answer(c, f->flags);
	connection_set_pace(c, f->flags & FRAME_CLIENT_WAITS ? CLIENT_WAITS : CLIENT_GOES_ON);
	if (f->flags & FRAME_CHECKPOINT)
		connection_drain_if_idle(c);
	return 0;
}

static int agent_in_fin(struct connection *c, const struct frame *f, const void *message)
{
	if (c->now.server_side == SERVER_FIN || c->now.server_side == SERVER_CLOSE_NOTIFY)
		return CSSL_E_STATE;
	c->now.server_side = f->flags & FRAME_AUTHENTICATED ? SERVER_CLOSE_NOTIFY : SERVER_FIN;
	stream_shutdown(&c->busy->client);
	return 0;
}

static int agent_in_end(struct connection *c, const struct frame *f, const void *message)
{
	struct drain *drain = agents_drain_of(connection_agents(c), link_agent(c->now.current.link));
	uint8_t reason = f->payload[0];

	if (reason >= END_REASON_COUNT) /* a reason of a later release: it does not cost the link and all its streams */
		reason = END_INTERNAL;
	c->home->cause = link_cause(c->now.current.link, c->now.current.stream);
	connection_release_current(c); /* the agent has forgotten the stream, so it needs no CLOSE */
	if (c->now.state == CONNECTION_FINISHING &&
		c->now.end_reason != END_BACKEND_TIMEOUT) /* the client may be at fault */
		reason = c->now.end_reason;
	if (reason == END_SHUTTING_DOWN && drain_state(drain) == DRAIN_UNDER_WAY)
		drain_note_ended(drain); /* mail that could not leave a drained agent was told so */
	connection_end(c, (enum end_reason)reason, f->flags & FRAME_ABORT ? END_RESET : END_ORDERLY);
	c->home->cause = "";
	return 0;
}

/* --- ownership --- */

static int agent_keep_agreed(struct connection *c, const Cssl__Handshake *h)
{
	if (!h)
		return 0;
	if (c->now.agreed)
		return CSSL_E_RANGE;
	int r = agreed_read(&c->home->blocks, h, &c->now.agreed);
	if (r < 0)
		return r;
	counter_add(c->now.agreed->resumed ? &connection_counts(c)->handshakes_resumed
					   : &connection_counts(c)->handshakes_full,
		1);
	return 0;
}

/* The part that KEPT and HANDED_OFF share: position, sealed copy, agreed values. */
static int agent_take_live(struct connection *c, const Cssl__LinkLive *live)
{
	if ((c->now.state == CONNECTION_HANDSHAKING) != (live->handshake != NULL))
		return CSSL_E_TRUNCATED;
	int r = position_claim(&c->now.position, live);
	if (r == 0)
		r = agent_follow_consumed(c);
	if (r == 0)
		r = copies_offer(&c->now.copies, &c->home->blocks,
			&(struct copy_offer){ live->sealed_copy.data, live->sealed_copy.len,
				live->position->read_generation, live->position->write_generation, COPY_OF_LIVE });
	if (r == 0)
		r = agent_keep_agreed(c, live->handshake);
	if (r < 0)
		return r;
	agent_follow_answer(c, live->at_checkpoint ? FRAME_CHECKPOINT : 0);
	c->now.copied_ms = connection_now_ms(c);
	c->now.backend = (uint8_t)live->backend;
	connection_assign(c, c->now.affinity_agent, NO_AGENT);
	if (c->now.state == CONNECTION_HANDSHAKING)
		connection_say_later(c, LATER_TICKETS);
	return 0;
}

static int agent_in_kept(struct connection *c, const struct frame *f, const void *message)
{
	int r = agent_take_live(c, message);

	if (r < 0)
		return r;
	counter_add(&c->home->counters.handshakes_kept, 1);
	c->now.owner = (int16_t)link_agent(c->now.current.link);
	connection_note_owner(c, c->now.owner, OWNERSHIP_HANDSHAKE);
	connection_to(c, CONNECTION_OWNED);
	connection_resume_reading(c);
	connection_drain_if_idle(c);
	return 0;
}

static int agent_in_handed_off(struct connection *c, const struct frame *f, const void *message)
{
	int r = agent_take_live(c, message);

	if (r == 0 && !c->now.copies.current)
		r = CSSL_E_RANGE; /* without a copy no agent can adopt it */
	if (r < 0)
		return r;
	counter_add(&c->home->counters.handed_off, 1);
	if (c->now.state == CONNECTION_FINISHING) { /* the owner froze it by itself, and can no longer say goodbye */
		connection_send_finish(c, (enum end_reason)c->now.end_reason);
		return 0;
	}
	connection_hand_over(c);
	connection_resume_reading(c);
	return 0;
}

static int agent_in_refused(struct connection *c, const struct frame *f, const void *message)
{
	const Cssl__LinkRefused *refused = message;

	if ((c->now.state == CONNECTION_OWNED || c->now.state == CONNECTION_FINISHING) &&
		c->busy->move_answer != MOVE_ANSWER_OVERDUE)
		return CSSL_E_STATE;
	log_event(LOG_DEBUG, &c->id, "refused", "agent=%s state=%s reason=%s detail=%s",
		agents_name(c->home->shared->agents, link_agent(c->now.current.link)),
		connection_state_name(c->now.state), link_refusal_name(refused->reason), refused->detail);
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_REATTACHING:
	case CONNECTION_ADOPTING: connection_adopt_refused(c, refused->reason); break;
	case CONNECTION_HANDSHAKING: connection_open_refused(c, refused->reason); break;
	default: connection_order_refused(c, refused->order, refused->detail); break;
	}
	return 0;
}

static int agent_in_copy(struct connection *c, const struct frame *f, const void *message)
{
	const Cssl__LinkCopy *copy = message;

	if (fault_at("copy.received", NULL, NULL) == FAULT_FAIL)
		return 0;
	int r = copies_offer(&c->now.copies, &c->home->blocks,
		&(struct copy_offer){
			copy->sealed_copy.data, copy->sealed_copy.len, copy->read_generation, copy->write_generation });
	if (r == 0)
		agent_follow_copies(c);
	return r;
}

static int agent_in_note(struct connection *c, const struct frame *f, const void *message)
{
	const Cssl__LinkDownload *d = message;

	return note_set(&c->busy->note, &c->home->blocks, d->sealed.data, d->sealed.len);
}

/* --- dispatch --- */

static const struct {
	int (*fn)(struct connection *c, const struct frame *f, const void *message);
	unsigned states;
	const ProtobufCMessageDescriptor *message; /* its payload; NULL: none */
} frames[256] = {
	[FRAME_DATA] = { agent_in_data, IN(HANDSHAKING) | IN(OWNED) | IN(MOVING) | IN(FINISHING) },
	[FRAME_FIN] = { agent_in_fin, IN(OWNED) | IN(MOVING) | IN(FINISHING) },
	[FRAME_KEPT] = { agent_in_kept, IN(HANDSHAKING), &cssl__link_live__descriptor },
	[FRAME_HANDED_OFF] = { agent_in_handed_off, IN(HANDSHAKING) | IN(OWNED) | IN(MOVING) | IN(FINISHING),
		&cssl__link_live__descriptor },
	[FRAME_ADOPTED] = { connection_in_adopted, IN(ADOPTING), &cssl__link_adopted__descriptor },
	[FRAME_REFUSED] = { agent_in_refused,
		IN(HANDSHAKING) | IN(OWNED) | IN(MOVING) | IN(FINISHING) | IN(ADOPTING) | IN(REATTACHING),
		&cssl__link_refused__descriptor },
	[FRAME_REATTACHED] = { connection_in_reattached, IN(REATTACHING) },
	[FRAME_CONSUMED] = { agent_in_consumed, IN(HANDSHAKING) | IN(OWNED) | IN(MOVING) | IN(FINISHING) },
	[FRAME_DOWNLOAD] = { agent_in_note, IN(OWNED) | IN(MOVING) | IN(FINISHING), &cssl__link_download__descriptor },
	[FRAME_COPY] = { agent_in_copy, IN(OWNED) | IN(MOVING) | IN(FINISHING), &cssl__link_copy__descriptor },
	[FRAME_END] = { agent_in_end, IN(HANDSHAKING) | IN(OWNED) | IN(MOVING) | IN(FINISHING) | IN(ADOPTING) },
};

/* 0, or negative: it may not come now. */
static int agent_check_state(const struct connection *c, const struct frame *f)
{
	if (connection_speaks_clear(c))
		return 0; /* connection_clear_frame() does */
	if (!frames[f->type].fn)
		return CSSL_E_TYPE;
	const bool is_heard = f->type == FRAME_DATA && mutant("stale-stream-heard");
	return is_heard || connection_is_in(c, frames[f->type].states) ? 0 : CSSL_E_STATE;
}

static int agent_take_frame(struct connection *c, const struct frame *f)
{
	if (connection_speaks_clear(c) && f->type != FRAME_END)
		return connection_clear_frame(c, f);
	if (!frames[f->type].message)
		return frames[f->type].fn(c, f, NULL);
	ProtobufCMessage *message = protobuf_c_message_unpack(frames[f->type].message, NULL, f->len, f->payload);
	if (!message)
		return CSSL_E_TRUNCATED;
	int r = frames[f->type].fn(c, f, message);
	protobuf_c_message_free_unpacked(message, NULL);
	return r;
}

static int agent_hear(struct connection *c, struct link *l, const struct frame *f)
{
	bool is_heard = f->type == FRAME_DATA && mutant("stale-stream-heard");

	/* law 2: frames of any other stream may be those of an owner of before */
	if (!is_heard && (l != c->now.current.link || f->stream != c->now.current.stream)) {
		counter_add(&c->home->counters.frames_stale, 1);
		if (f->type == FRAME_END && c->busy && l == c->busy->frozen.link && f->stream == c->busy->frozen.stream)
			connection_release_frozen(c, FROZEN_HEARS_NOTHING); /* it cannot take it back any more */
		return 0;
	}
	if (c->busy && c->busy->again.next && connection_had_frame(c, f))
		return 0;
	int r = agent_check_state(c, f);
	if (r < 0)
		return r;
	/* a fresh copy changes nothing else, so it does not expand a compact connection: when agents' key changes,
	 * they seal the copies of all their connections again */
	if (!c->busy && f->type != FRAME_COPY && connection_expand_or_end(c) < 0)
		return 0;
	if (!c->busy)
		connection_touch(c);
	if (c->now.state != CONNECTION_REATTACHING) /* answers to REATTACH are not counted */
		c->now.account.frames++;
	r = agent_take_frame(c, f);
	connection_weigh(c);
	connection_save(c);
	agent_audit_saved(c, f, r);
	connection_acknowledge(c, ACCEPTED_IF_HELD);
	connection_relieve(c->home);
	return r;
}

int connection_on_frame(void *holder, struct link *l, const struct frame *f)
{
	struct connection *c = holder;
	struct connection_home *home = c->home;

	connection_work_begins(c);
	int r = agent_hear(c, l, f);
	connection_work_ends(home);
	return r;
}
