/* connection_takeover.c: what becomes of a connection when the link of its owner, or of its adopter, is lost.
 * takeover.h decides; here the facts are gathered and the decision is carried out.
 */
#include "net/log.h"
#include "ragent/connection_internal.h"
#include "ragent/takeover.h"

#define WAKE_RETRY_MS     100u
#define WAKE_ATTEMPTS_MAX 50u /* so long a record waits for an agent to come up */

int connection_has_news(const struct connection *c)
{
	return kept_len(&c->kept) > 0 || c->tail == TAIL_VIOLATION;
}

void connection_wake(struct connection *c)
{
	struct link *l = connection_find_adopter(c, c->affinity_agent, NO_AGENT);

	if (l) {
		c->attempts = 0;
		connection_adopt_on(c, l);
	} else if (++c->attempts <= WAKE_ATTEMPTS_MAX) {
		connection_set_deadline(c, WAKE_RETRY_MS);
	} else {
		connection_end(c, END_NO_AGENT, END_RESET);
	}
}

static int link_is_exposed(const struct conf_agent *a)
{
	return a->link_protection == LINK_TRUSTED && !address_is_local((const struct sockaddr *)&a->link);
}

static void gather_facts(const struct connection *c, int lost, struct takeover_facts *f)
{
	/* a KEPT or HANDED_OFF that broke off half-way counts as none */
	f->stage = c->state == CONNECTION_HANDSHAKING ? POSITION_HANDSHAKE : (enum position_stage)c->position.stage;
	f->response = (enum position_response)c->position.response;
	f->server_records = c->position.server_records;
	f->response_records = c->position.response_records;
	f->response_bytes = c->position.response_bytes;
	f->sent_records = kept_sent_records(&c->kept);
	f->unsent_records = c->kept.next_record - c->kept.first_record - f->sent_records;
	f->copy = c->copies.current ? TAKEOVER_HAS_COPY : TAKEOVER_NO_COPY;
	f->link = link_is_exposed(agents_conf(connection_agents(c), lost)) ? TAKEOVER_LINK_EXPOSED
									   : TAKEOVER_LINK_PRIVATE;
	f->protocol_version = c->agreed ? c->agreed->protocol_version : 0;
	f->from_start = c->kept.first_record == 0 ? TAKEOVER_ALL_KEPT : TAKEOVER_SOME_DROPPED;
}

static void restart(struct connection *c)
{
	if (c->restarts++ > 0) { /* this hello may be what kills agents */
		connection_end(c, END_AGENT_LOST, END_RESET);
		return;
	}
	counter_add(&c->home->counters.takeovers_restarted, 1);
	connection_begin_anew(c);
	connection_open(c, NO_AGENT);
}

static void rest(struct connection *c)
{
	counter_add(&c->home->counters.takeovers_rested, 1);
	connection_release_frozen(c);
	connection_assign(c, NO_AGENT);
	c->attempts = 0;
	c->cause = CSSL__CAUSE__CAUSE_TAKEOVER;
	c->backend = CSSL__BACKEND_HALF__BACKEND_NONE;
	connection_to(c, CONNECTION_RESTING);
	connection_report_move(c, &(struct move_result){ .outcome = MOVE_CONFLICT, .reason = "its owner was lost" });
}

static void owner_lost(struct connection *c, int agent)
{
	struct takeover_facts facts;

	gather_facts(c, agent, &facts);
	enum takeover what = takeover_decide(&facts);
	log_event(LOG_INFO, &c->id, "owner lost", "agent=%s state=%s takeover=%s",
		agents_name(connection_agents(c), agent), connection_state_name(c->state), takeover_name(what));
	switch (what) {
	case TAKEOVER_RESTART: restart(c); break;
	case TAKEOVER_ADOPT:
		rest(c);
		connection_wake(c);
		break;
	case TAKEOVER_REST:
		rest(c);
		connection_drain_if_idle(c);
		break;
	case TAKEOVER_END:
		counter_add(&c->home->counters.takeovers_ended, 1);
		connection_end(c, END_AGENT_LOST, END_RESET);
		break;
	}
}

void connection_on_stream_lost(void *holder, struct link *l, uint32_t stream)
{
	struct connection *c = holder;

	if (l == c->frozen.link && stream == c->frozen.stream) {
		connection_lose_place(c, &c->frozen);
		return;
	}
	if (l != c->current.link || stream != c->current.stream)
		return;
	link_wait_cancel(&c->waiter);
	connection_lose_place(c, &c->current);
	owner_lost(c, link_agent(l));
}
