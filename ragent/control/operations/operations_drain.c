/* operations_drain.c: an operator's actions on a whole agent: show, drain, undrain, weight.
 */
#include <stdlib.h>

#include "net/report/log.h"
#include "ragent/control/http/control_exchange.h"
#include "ragent/control/http/control_json.h"
#include "ragent/control/operations/gather.h"
#include "ragent/control/operations/operations.h"

static json_t *drain_json(const struct drain_report *d)
{
	return json_pack("{s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state", d->state, "reason", d->reason,
		"elapsed_ms", integer_json(d->elapsed_ms), "total", integer_json(d->total), "left",
		integer_json(d->left), "moved", integer_json(d->moved), "rested", integer_json(d->rested), "ended",
		integer_json(d->ended), "longest_pause_us", integer_json(d->longest_pause_us), "summed_pause_us",
		integer_json(d->summed_pause_us));
}

static json_t *agent_in_full_json(const struct operations *o, int agent)
{
	struct agents *agents = o->shared->agents;
	struct drain_report drain;
	struct agent_status s;

	agents_status(agents, agent, &s);
	drain_describe(agents_drain_of(agents, agent), worker_now_ms(o->main),
		agents_share(agents, agent, AGENT_OWNERSHIPS), &drain);
	return json_pack("{s:s, s:s, s:s?, s:o, s:f, s:{s:i, s:i, s:i}, s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "name",
		s.name, "state", s.state, "version", *s.version ? s.version : NULL, "clock_offset_ms",
		s.clock == AGENT_CLOCK_KNOWN ? json_integer(s.clock_offset_ms) : json_null(), "weight", s.weight,
		"links", "up", (int)s.links_up, "suspect", (int)s.links_suspect, "total",
		(int)(o->worker_count * agents_conf(agents, agent)->workers), "connections",
		integer_json(s.connections), "handshakes", integer_json(s.handshakes), "sessions",
		integer_json(s.sessions), "busy_permille", (int)s.busy_permille, "handshake_us", (int)s.handshake_us,
		"drain", drain_json(&drain), "failing_backends", text_json(s.failing_backends));
}

static void drain_answer(const struct operations *o, int agent, struct control_request *r, unsigned status)
{
	request_answer(r, status, agent_in_full_json(o, agent));
}

/* NO_AGENT: the client got the error. */
static int drain_find(const struct operations *o, const char *name, struct control_request *r)
{
	int agent = agents_find(o->shared->agents, name);

	if (agent == NO_AGENT)
		request_fail(r, MHD_HTTP_NOT_FOUND, "no agent of that name");
	return agent;
}

void operations_agents(struct operations *o, const struct control_input *in, struct control_request *r)
{
	json_t *list = json_array();

	for (unsigned a = 0; a < agents_count(o->shared->agents); a++)
		list = array_append(list, agent_in_full_json(o, (int)a));
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "agents", list));
}

void operations_agent(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const int agent = drain_find(o, in->agent, r);

	if (agent != NO_AGENT)
		drain_answer(o, agent, r, MHD_HTTP_OK);
}

/* A drain. It begins on every worker before the answer. */
struct draining {
	const struct operations *operations;
	struct control_request *request;
	int agent;
};

static void ask_drain(struct gather_part *p)
{
	mover_look(&p->rw->home.mover);
	gather_answer(p);
}

static void answer_drain(struct gather *g)
{
	struct draining *d = g->ctx;

	drain_answer(d->operations, d->agent, d->request, MHD_HTTP_ACCEPTED);
	free(d);
}

void operations_drain(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const uint32_t timeout_ms = in->timeout_ms ? in->timeout_ms : o->shared->self->moves.drain_timeout_ms;
	const int agent = drain_find(o, in->agent, r);
	struct draining *d = agent == NO_AGENT ? NULL : malloc(sizeof *d);

	if (agent == NO_AGENT)
		return;
	log_event(LOG_INFO, NULL, "drain", "agent=%s timeout_ms=%u", in->agent, timeout_ms);
	agents_drain(o->shared->agents, agent, DRAIN_BY_OPERATOR, worker_now_ms(o->main), timeout_ms);
	if (d) {
		*d = (struct draining){ .operations = o, .request = r, .agent = agent };
		if (gather_start(o->main, o->workers, o->worker_count, ask_drain, answer_drain, d))
			return;
	}
	free(d);
	drain_answer(o, agent, r, MHD_HTTP_ACCEPTED); /* the workers will see it at their next tick */
}

void operations_undrain(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const int agent = drain_find(o, in->agent, r);

	if (agent == NO_AGENT)
		return;
	if (agents_undrain(o->shared->agents, agent) < 0) {
		request_fail(r, MHD_HTTP_CONFLICT, "no operator drains it");
		return;
	}
	log_event(LOG_INFO, NULL, "undrain", "agent=%s", in->agent);
	drain_answer(o, agent, r, MHD_HTTP_OK);
}

void operations_weight(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const int agent = drain_find(o, in->agent, r);

	if (agent == NO_AGENT)
		return;
	log_event(LOG_INFO, NULL, "weight", "agent=%s weight=%g", in->agent, in->weight);
	agents_set_weight(o->shared->agents, agent, in->weight);
	drain_answer(o, agent, r, MHD_HTTP_OK);
}
