/* connection_loss.c: the link to a connection's owner broke, or it had an owner when the process before died. The owner
 * keeps its stream for a while (proto/frame.h: REATTACH), and the connection waits in state REATTACHING until the link
 * to it is up again. The agent of a handshake, one that was told to adopt the connection, and one that speaks with the
 * client in clear count as owners here.
 *
 * Then both sides make up for what the other one lacks. The owner sends the frames that no image has, and those whose
 * bytes the client has not got: of a frame that the image has, only the bytes are used that the kernel had not taken; a
 * later one counts as any frame, but the client gets no byte of it twice. This side sends the client's records that the
 * owner did not get. Nobody owned the connection meanwhile but the owner: no next epoch, no doubt.
 *
 * If nobody waits, or in vain, the owner is lost: this file carries out what takeover.h decides. If another agent has
 * to do something, the connection first has no owner (state RESTING).
 */
#include <string.h>

#include "net/report/log.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/connection/takeover.h"

/* --- its owner is lost --- */

/* Note what the lost agent may have done, and how many were lost. */
static void loss_note(struct connection *c, enum peer_fate fate)
{
	const struct kept kept = connection_kept(c);
	const uint64_t answered = c->now.position.checkpoint.client_records;
	const uint64_t sent = kept.consumed_record + kept_sent_records(&kept);
	enum exposure_loss loss = LOSS_OF_NOTHING_OPEN;

	if (!c->busy || connection_phase(c) == CONNECTION_HANDSHAKING) /* no backend knows of an open request */
		return;
	if (connection_phase(c) == CONNECTION_ADOPTING) /* it had the request, but died before its answer */
		loss = LOSS_BEFORE_ANY_WORD;
	else if (sent > answered || c->now.position.response != POSITION_AT_CHECKPOINT)
		loss = LOSS_OF_A_REQUEST;
	exposure_add(&c->busy->exposure, answered, sent, fate, loss);
}

static void loss_warn_of_poison(const struct connection *c)
{
	char text[ADDRESS_TEXT_MAX];

	if (!c->busy || c->busy->exposure.losses != EXPOSURE_LOSSES_MAX)
		return;
	counter_add(&c->home->counters.takeovers_poisoned, 1);
	log_event(LOG_WARNING, &c->id, "request met two losses",
		"listener=%s client=%s owner=%s effect=\"no third agent gets it, because it may be what kills them\"",
		c->front->conf->name, connection_client_text(c, text), agents_name(connection_agents(c), c->now.owner));
}

/* Continue where the client's last answer ended, if all records from there on are still kept. */
static void loss_go_back_to_checkpoint(struct connection *c)
{
	if (!c->busy || !position_replays_from(&c->now.position, c->busy->kept.first_record))
		return;
	counter_add(&c->home->counters.records_replayed, c->busy->kept.consumed_record - c->busy->kept.first_record);
	position_return(&c->now.position);
	kept_return(&c->busy->kept);
	connection_read_less(c);
}

/* Until another agent adopts it, or until the client's next record. */
static void loss_leave_without_owner(struct connection *c)
{
	loss_go_back_to_checkpoint(c);
	connection_owe_queued(c);
	connection_to_rest(c, OWNERSHIP_TAKEOVER,
		&(struct move_result){ .outcome = MOVE_CONFLICT, .reason = "its owner was lost" });
}

static void loss_stay_at_rest(struct connection *c)
{
	counter_add(&c->home->counters.takeovers_rested, 1);
	if (c->now.tail == TAIL_FIN) /* only the lost owner knew of it */
		connection_end(c, END_CLIENT_CLOSED, END_ORDERLY);
	else
		connection_drain_if_idle(c);
}

static void loss_end(struct connection *c)
{
	counter_add(&c->home->counters.takeovers_ended, 1);
	connection_end(c, END_AGENT_LOST, END_RESET);
}

static const char *const takeover_names[] = {
	[TAKEOVER_RESTART] = "restart",
	[TAKEOVER_REFUSE] = "refuse",
	[TAKEOVER_REST] = "rest",
	[TAKEOVER_ADOPT] = "adopt",
	[TAKEOVER_ALERT] = "alert",
	[TAKEOVER_OVER] = "over",
	[TAKEOVER_END] = "end",
};

static void loss_take_over(struct connection *c, int agent, enum peer_fate fate)
{
	loss_note(c, fate); /* first, because the decision counts this loss */
	enum takeover what = takeover_decide(c, agents_conf(connection_agents(c), agent));
	log_event(LOG_INFO, &c->id, "owner lost", "agent=%s state=%s takeover=%s",
		agents_name(connection_agents(c), agent), connection_state_name(c->now.state), takeover_names[what]);
	loss_warn_of_poison(c);
	if (what == TAKEOVER_ALERT &&
		dispatch_owner(&c->home->links, c->front, &c->endpoints.client, NO_AGENT) == NO_AGENT)
		what = TAKEOVER_END; /* no agent is left to send the alert */
	switch (what) {
	case TAKEOVER_RESTART: connection_open_anew(c, agent); break;
	case TAKEOVER_REFUSE:
		counter_add(&c->home->counters.takeovers_ended, 1);
		connection_refuse(c, END_AGENT_LOST, TLS_ALERT_INTERNAL_ERROR);
		break;
	case TAKEOVER_REST:
		loss_leave_without_owner(c);
		loss_stay_at_rest(c);
		break;
	case TAKEOVER_ADOPT:
	case TAKEOVER_ALERT:
		loss_leave_without_owner(c);
		connection_adopt_lost(c, agent);
		break;
	case TAKEOVER_OVER: connection_end(c, END_DONE, END_ORDERLY); break;
	case TAKEOVER_END: loss_end(c); break;
	}
}

/* --- wait for it --- */

static bool loss_has_state_to_wait(const struct connection *c)
{
	if (c->now.state == CONNECTION_HANDSHAKING)
		return c->now.position.stage == POSITION_HANDSHAKE;
	return connection_is_in(c,
		IN(PREAMBLE) | IN(RELAYED) | IN(OWNED) | IN(MOVING) | IN(ADOPTING) | IN(FINISHING) | IN(REATTACHING));
}

static bool loss_waits_for_owner(struct connection *c, const struct link *l)
{
	if (!loss_has_state_to_wait(c) || !link_comes_again(l))
		return false;
	if (connection_expand_or_end(c) < 0) /* it may have no socket any more */
		return true;
	if (c->now.state == CONNECTION_MOVING)
		connection_owner_keeps(c, "the link to its owner broke, so the connection stays there");
	if (c->now.state != CONNECTION_REATTACHING) {
		c->busy->resumes = c->now.state;
		connection_to(c, CONNECTION_REATTACHING);
	}
	connection_save(c);
	return true;
}

static void loss_of_current(struct connection *c, struct link *l)
{
	if (loss_waits_for_owner(c, l))
		return;
	if (c->now.state == CONNECTION_REATTACHING) {
		connection_reattach_failed(c);
		return;
	}
	if (connection_speaks_clear(c)) {
		connection_preamble_lost(c, link_agent(l));
		return;
	}
	/* the agent did not send again all that the process before had: nobody else has these bytes */
	if (c->busy && c->busy->again.next && connection_lacks_bytes(c)) {
		loss_end(c);
		return;
	}
	/* a compact one stays compact while it rests, unless it needs an owner at once */
	if (connection_needs_owner(c) && connection_expand_or_end(c) < 0)
		return;
	if (c->now.state == CONNECTION_FINISHING)
		connection_send_finish(c, (enum end_reason)c->now.end_reason);
	else
		loss_take_over(c, link_agent(l), link_fate(l));
}

void connection_on_stream_lost(void *holder, struct link *l, uint32_t stream)
{
	struct connection *c = holder;

	if (!connection_lose_stream(c, l, stream))
		return;
	loss_of_current(c, l);
	connection_save_if_changed(c);
}

/* --- ask for it --- */

static bool reattach_waits_for(const struct connection *c, const struct link *l)
{
	return c->now.state == CONNECTION_REATTACHING && !c->now.current.link &&
	       c->now.account.stream.agent == link_agent(l) &&
	       c->now.account.stream.agent_worker == link_agent_worker(l);
}

static void reattach_ask(struct connection *c, struct link *l)
{
	const struct stream_name *s = &c->now.account.stream;
	struct frame_reattach r = { .stream = s->id, .epoch = c->now.epoch };
	uint8_t payload[FRAME_REATTACH_LEN];
	uint32_t stream = 0;

	if (link_outlived(l))
		stream = link_stream_begin(l, c);
	if (stream == 0) {
		connection_reattach_failed(c);
		return;
	}
	c->busy->again = (struct again){ 0 }; /* of a link that broke, too, before all had come again */
	c->now.current = (struct place){ l, stream };
	agents_enter(connection_agents(c), link_agent(l), AGENT_OWNERSHIPS);
	memcpy(r.connection_id, c->id.bytes, sizeof r.connection_id);
	frame_reattach_write(payload, &r);
	link_send(l, stream, FRAME_REATTACH, 0, payload, sizeof payload);
}

void connection_reattach_all(struct connection_home *home, struct link *l, enum reattach_how how)
{
	struct connection *next;

	for (struct connection *c = home->reattaching ? home->connections : NULL; c; c = next) {
		next = c->next;
		if (!reattach_waits_for(c, l))
			continue;
		connection_work_begins(c); /* this may be the first that happens to it after a death */
		if (how == REATTACH_BY_ASKING)
			reattach_ask(c, l);
		else
			connection_reattach_failed(c);
		connection_work_ends(home);
	}
}

void connection_reattach_if_up(struct connection *c)
{
	const struct stream_name *s = &c->now.account.stream;
	const struct links *links = &c->home->links;

	if (c->now.state != CONNECTION_REATTACHING || s->agent < 0 || s->agent_worker >= links->of[s->agent].count)
		return;
	struct link *l = links->of[s->agent].at[s->agent_worker];
	if (link_open(l) && reattach_waits_for(c, l))
		reattach_ask(c, l);
}

static void reattach_wait_anew(struct connection *c)
{
	if (c->now.state == CONNECTION_REATTACHING)
		connection_arm_deadline(c);
}

void connection_reattach_anew(struct connection_home *home)
{
	if (home->reattaching)
		connection_home_each(home, reattach_wait_anew);
}

/* --- in vain --- */

/* The owner may still have it: tell it on the stream that it was asked to use. */
static void reattach_give_up(struct connection *c)
{
	const uint8_t reason = END_AGENT_LOST;

	if (!c->now.current.link)
		return;
	link_send(c->now.current.link, c->now.current.stream, FRAME_CLOSE, 0, &reason, 1);
	connection_release_current(c);
}

/* Only if the client can get all that was committed: only the lost owner had the bytes that RAgent lacks. */
static bool loss_another_can_go_on(const struct connection *c)
{
	return !connection_lacks_bytes(c) && (c->now.copies.current || connection_shakes_hands(c));
}

/* As after the loss of an owner. */
void connection_reattach_failed(struct connection *c)
{
	counter_add(&c->home->counters.reattach_failed, 1);
	reattach_give_up(c);
	if (connection_is_in_clear(c)) {
		if (c->now.state ==
			CONNECTION_REATTACHING) /* or its frames are coming again (connection_stop_reattaching()) */
			connection_to(c, (enum connection_state)c->busy->resumes);
		connection_preamble_lost(c, c->now.account.stream.agent);
	} else if (!loss_another_can_go_on(c)) {
		loss_end(c);
	} else if (c->busy->resumes == CONNECTION_FINISHING) {
		connection_send_finish(c, (enum end_reason)c->now.end_reason);
	} else {
		loss_take_over(c, c->now.account.stream.agent, PEER_FATE_UNKNOWN);
	}
	connection_save_if_changed(c);
}

static bool reattach_is_under_way(const struct connection *c)
{
	const bool amid_again = c->now.current.link && c->busy && c->busy->again.next;

	return c->now.state == CONNECTION_REATTACHING || amid_again;
}

bool connection_home_waits_for_owners(const struct connection_home *home)
{
	const struct connection *c = home->connections;

	while (c && !reattach_is_under_way(c))
		c = c->next;
	return c != NULL;
}

void connection_stop_reattaching(struct connection *c)
{
	if (reattach_is_under_way(c))
		connection_reattach_failed(c);
}

/* --- it goes on --- */

/* The process before may have died before it told the agent to end it. */
static void reattach_go_on(struct connection *c)
{
	const uint8_t reason = c->now.end_reason;

	connection_to(c, (enum connection_state)c->busy->resumes);
	connection_shut_if_due(c);
	if (c->now.state == CONNECTION_FINISHING)
		link_send(c->now.current.link, c->now.current.stream, FRAME_FINISH, 0, &reason, 1);
	if (connection_is_in_clear(c))
		connection_preamble_goes_on(c);
	connection_acknowledge(c, ACCEPTED_NOW);
	connection_send_records(c);
	connection_order_again(c);
	connection_drain_if_idle(c);
}

int connection_in_reattached(struct connection *c, const struct frame *f, const void *message)
{
	struct frame_reattached told;
	int r = frame_reattached_read(f, &told);

	if (r < 0)
		return r;
	/* law 3: its counts have to fit those that were committed here; else another owner begins behind these */
	const uint64_t written = c->now.queued - c->now.account.base; /* or it will be, without the owner */
	if (c->now.queued < c->now.account.base || told.frame == 0 || told.frame > c->now.account.frames + 1 ||
		told.bytes > written || kept_mark_sent_to(&c->busy->kept, told.client_records) < 0) {
		connection_reattach_failed(c);
		return 0;
	}
	connection_again(c, told.frame, told.bytes, written);
	counter_add(&c->home->counters.reattached, 1);
	log_event(LOG_DEBUG, &c->id, "owner goes on", "agent=%s frames=%llu held_from=%llu",
		agents_name(connection_agents(c), c->now.account.stream.agent),
		(unsigned long long)c->now.account.frames, (unsigned long long)told.frame);
	reattach_go_on(c);
	return 0;
}
