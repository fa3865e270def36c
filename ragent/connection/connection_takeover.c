/* connection_takeover.c: carries out what takeover.h decides about a connection when the link of its owner or
 * adopter is lost.
 *
 * If another agent has to do something, the connection first has no owner (state RESTING). It waits for its turn
 * (pace.h), for an agent to be up, or, if nothing is open, for the client's next record.
 */
#include "net/log.h"
#include "ragent/connection/connection_internal.h"
#include "ragent/connection/takeover.h"

#define WAKE_RETRY_MS     100u
#define WAKE_ATTEMPTS_MAX 50u /* so many attempts to find an agent that is up */

bool connection_needs_owner(const struct connection *c)
{
	return (c->busy && kept_len(&c->busy->kept) > 0) || c->now.tail == TAIL_VIOLATION ||
	       c->now.position.response != POSITION_AT_CHECKPOINT || connection_service(c)->rest == SERVICE_NEVER_RESTS;
}

/* --- to an agent --- */

static void wake_in(struct connection *c, uint64_t in_ms)
{
	if (++c->now.attempts <= WAKE_ATTEMPTS_MAX)
		connection_set_deadline(c, in_ms);
	else
		connection_end(c, END_NO_AGENT, END_RESET);
}

void connection_wake_later(struct connection *c)
{
	wake_in(c, WAKE_RETRY_MS);
}

void connection_wake_in_turn(struct connection *c)
{
	wake_in(c, pace_delay_ms(&c->home->takeovers, connection_now_ms(c)));
}

/* The client of a lost owner begins to wait. */
static void pause_begins(struct connection *c)
{
	if (c->now.cause == CSSL__CAUSE__CAUSE_TAKEOVER && c->busy->pause_began_ms == 0)
		c->busy->pause_began_ms = connection_now_ms(c);
}

static void wake_except(struct connection *c, int except)
{
	/* where connections do not follow an address, the last owner still has open backend connections */
	int wanted = front_hands_off(c->front) || c->now.owner == except ? NO_AGENT : c->now.owner;
	struct link *l = connection_find_adopter(c, wanted, except);

	pause_begins(c);
	connection_owner_is_missed(c);
	if (l)
		connection_adopt_on(c, l);
	else
		connection_wake_later(c);
}

void connection_wake(struct connection *c)
{
	wake_except(c, NO_AGENT);
}

/* The pause that the client noticed is over. */
void connection_pause_ends(struct connection *c)
{
	struct ragent_counters *n = &c->home->counters;
	uint64_t pause_ms = connection_now_ms(c) - c->busy->pause_began_ms;

	time_counters_add(&n->takeover_pauses_2ms, takeover_buckets, pause_ms * 1000);
	counter_add(&n->takeover_pause_ms, pause_ms);
	c->busy->pause_began_ms = 0;
}

/* --- what the adopter is told --- */

Cssl__ResponseState connection_response_state(const struct connection *c)
{
	static const Cssl__ResponseState states[] = {
		[POSITION_AT_CHECKPOINT] = CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT,
		[POSITION_NOTHING_DELIVERED] = CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED,
		[POSITION_PARTLY_DELIVERED] = CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED,
	};
	const struct position *p = &c->now.position;

	const bool replays = position_replays_from(p, c->busy->kept.first_record);
	const bool resolves = connection_service(c)->loss == SERVICE_RESOLVES_LOSS;

	if (c->now.cause != CSSL__CAUSE__CAUSE_TAKEOVER)
		return states[p->response];
	/* before the count of losses: without its records, a service that resolves the loss repeats nothing that might
	 * be the reason of the losses; it can only ask */
	if (resolves && p->response != POSITION_AT_CHECKPOINT && !replays)
		return CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE;
	if (c->busy->exposure.losses >= EXPOSURE_LOSSES_MAX)
		return CSSL__RESPONSE_STATE__RESPONSE_POISONED;
	if (p->response == POSITION_NOTHING_DELIVERED && !replays)
		return CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE;
	return states[p->response];
}

/* --- the loss --- */

/* Note what the lost agent may have done, and how many were lost. */
static void note_loss(struct connection *c, enum peer_fate fate)
{
	const struct kept kept = connection_kept(c);
	const uint64_t answered = c->now.position.checkpoint.client_records;
	const uint64_t sent = kept.consumed_record + kept_sent_records(&kept);

	if (!c->busy || connection_phase(c) == CONNECTION_HANDSHAKING) /* no backend knows of an open request */
		return;
	exposure_add(&c->busy->exposure, answered, sent, fate);
	if (connection_phase(c) == CONNECTION_ADOPTING) { /* it had the request, but died before its answer */
		exposure_count_silent_loss(&c->busy->exposure);
		return;
	}
	if (sent > answered || c->now.position.response != POSITION_AT_CHECKPOINT)
		exposure_count_loss(&c->busy->exposure);
}

static void warn_of_poison(const struct connection *c)
{
	char text[ADDRESS_TEXT_MAX];

	if (!c->busy || c->busy->exposure.losses != EXPOSURE_LOSSES_MAX)
		return;
	counter_add(&c->home->counters.takeovers_poisoned, 1);
	log_event(LOG_WARNING, &c->id, "request met two losses",
		"listener=%s client=%s owner=%s effect=\"no third agent gets it, because it may be what kills them\"",
		c->front->conf->name, connection_client_text(c, text), agents_name(connection_agents(c), c->now.owner));
}

/* At once, on another agent. If that one is lost as well, several died together. Their other links report it soon,
 * and the agents that are left then are alive. */
static void restart(struct connection *c, int lost)
{
	counter_add(&c->home->counters.takeovers_restarted, 1);
	connection_begin_anew(c);
	if (c->now.restarts++ == 0)
		connection_send_open(c, lost);
	else
		connection_open_later(c);
}

/* Continue where the client's last answer ended, if all records from there on are still kept. */
static void go_back_to_checkpoint(struct connection *c)
{
	if (!c->busy || !position_replays_from(&c->now.position, c->busy->kept.first_record))
		return;
	counter_add(&c->home->counters.records_replayed, c->busy->kept.consumed_record - c->busy->kept.first_record);
	position_return(&c->now.position);
	kept_return(&c->busy->kept);
	connection_read_less(c, stream_kept(&c->busy->client));
}

/* Until another agent adopts it, or until the client's next record. */
static void lose_owner(struct connection *c)
{
	connection_release_frozen(c);
	connection_assign(c, NO_AGENT);
	if (c->busy)
		c->busy->move_answer = MOVE_ANSWER_NOT_DUE;
	c->now.attempts = 0;
	c->now.cause = CSSL__CAUSE__CAUSE_TAKEOVER;
	c->now.backend = CSSL__BACKEND_HALF__BACKEND_NONE;
	go_back_to_checkpoint(c);
	connection_owe_queued(c);
	connection_left_by_a_loss(c);
	connection_to(c, CONNECTION_RESTING);
	connection_report_move(c, &(struct move_result){ .outcome = MOVE_CONFLICT, .reason = "its owner was lost" });
}

static void stay_at_rest(struct connection *c)
{
	counter_add(&c->home->counters.takeovers_rested, 1);
	if (c->now.tail == TAIL_FIN) /* only the lost owner knew of it */
		connection_end(c, END_CLIENT_CLOSED, END_ORDERLY);
	else
		connection_drain_if_idle(c);
}

/* Do not choose another link of the lost agent, even if RAgent has not seen its end yet. */
static void take_over(struct connection *c, int lost)
{
	uint64_t delay_ms = pace_delay_ms(&c->home->takeovers, connection_now_ms(c));

	counter_add(&c->home->counters.takeovers_adopted, 1);
	pause_begins(c);
	connection_owner_goes(c);
	if (delay_ms == 0) {
		wake_except(c, lost);
		return;
	}
	counter_add(&c->home->counters.takeovers_delayed, 1);
	wake_in(c, delay_ms);
}

static void end_lost(struct connection *c)
{
	counter_add(&c->home->counters.takeovers_ended, 1);
	connection_end(c, END_AGENT_LOST, END_RESET);
}

void connection_owner_lost(struct connection *c, int agent, enum peer_fate fate)
{
	note_loss(c, fate);
	enum takeover what = takeover_decide(c, agents_conf(connection_agents(c), agent));
	log_event(LOG_INFO, &c->id, "owner lost", "agent=%s state=%s takeover=%s",
		agents_name(connection_agents(c), agent), connection_state_name(c->now.state), takeover_name(what));
	warn_of_poison(c);
	if (what == TAKEOVER_ALERT && !connection_find_adopter(c, NO_AGENT, NO_AGENT))
		what = TAKEOVER_END; /* no agent is left to send the alert */
	switch (what) {
	case TAKEOVER_RESTART: restart(c, agent); break;
	case TAKEOVER_REFUSE:
		counter_add(&c->home->counters.takeovers_ended, 1);
		connection_refuse(c, END_AGENT_LOST, TLS_ALERT_INTERNAL_ERROR);
		break;
	case TAKEOVER_REST:
		lose_owner(c);
		stay_at_rest(c);
		break;
	case TAKEOVER_ADOPT:
	case TAKEOVER_ALERT:
		lose_owner(c);
		take_over(c, agent);
		break;
	case TAKEOVER_OVER: connection_end(c, END_DONE, END_ORDERLY); break;
	case TAKEOVER_END: end_lost(c); break;
	}
}

static void current_lost(struct connection *c, struct link *l)
{
	if (c->busy)
		link_wait_cancel(&c->busy->waiter);
	connection_lose_place(c, &c->now.current);
	if (connection_waits_for_owner(c, l))
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
		counter_add(&c->home->counters.takeovers_ended, 1);
		connection_end(c, END_AGENT_LOST, END_RESET);
		return;
	}
	/* a compact one stays compact while it rests, unless it needs an owner at once */
	if (connection_needs_owner(c) && connection_expand_or_end(c) < 0)
		return;
	if (c->now.state == CONNECTION_FINISHING)
		connection_send_finish(c, (enum end_reason)c->now.end_reason);
	else
		connection_owner_lost(c, link_agent(l), link_fate(l));
}

void connection_on_stream_lost(void *holder, struct link *l, uint32_t stream)
{
	struct connection *c = holder;

	if (c->busy && l == c->busy->frozen.link && stream == c->busy->frozen.stream)
		connection_lose_place(c, &c->busy->frozen);
	if (l != c->now.current.link || stream != c->now.current.stream)
		return;
	current_lost(c, l);
	connection_save_if_changed(c);
}
