/* operations_drain.c: an operator's actions on a whole agent: show, drain, undrain, weight.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "ragent/control/gather.h"
#include "ragent/control/operations.h"

void operations_describe_agent(const struct operations *o, int agent, struct control_agent *out)
{
	struct agents *agents = o->shared->agents;
	struct agent_status s;

	agents_status(agents, agent, &s);
	*out = (struct control_agent){ .name = s.name,
		.state = s.state,
		.links_up = s.links_up,
		.links = o->worker_count * agents_conf(agents, agent)->workers,
		.connections = s.connections,
		.handshakes = s.handshakes,
		.sessions = s.sessions,
		.busy_permille = s.busy_permille,
		.handshake_us = s.handshake_us,
		.weight = s.weight,
		.links_suspect = s.links_suspect,
		.clock = s.clock == AGENT_CLOCK_KNOWN ? CONTROL_CLOCK_KNOWN : CONTROL_CLOCK_UNKNOWN,
		.clock_offset_ms = s.clock_offset_ms };
	snprintf(out->version, sizeof out->version, "%s", s.version);
	memcpy(out->failing_backends, s.failing_backends, sizeof out->failing_backends);
	drain_describe(agents_drain_of(agents, agent), worker_now_ms(o->main),
		agents_share(agents, agent, AGENT_OWNERSHIPS), &out->drain);
}

static void answer_one(const struct operations *o, int agent, struct control_request *r)
{
	struct control_agent one;

	operations_describe_agent(o, agent, &one);
	control_answer_agents(r, &one, 1);
}

/* NO_AGENT: the client got the error. */
static int find(const struct operations *o, const char *name, struct control_request *r)
{
	int agent = agents_find(o->shared->agents, name);

	if (agent == NO_AGENT)
		control_fail(r, CONTROL_NOT_FOUND, "no agent of that name");
	return agent;
}

static void answer_all(const struct operations *o, struct control_request *r)
{
	const unsigned count = agents_count(o->shared->agents);
	struct control_agent *all = calloc(count + 1, sizeof *all);

	if (!all) {
		control_fail(r, CONTROL_INTERNAL, "out of memory");
		return;
	}
	for (unsigned a = 0; a < count; a++)
		operations_describe_agent(o, (int)a, &all[a]);
	control_answer_agents(r, all, count);
	free(all);
}

void operations_list_agents(void *ctx, const char *name, struct control_request *r)
{
	const struct operations *o = ctx;
	int agent = name ? find(o, name, r) : NO_AGENT;

	if (!name)
		answer_all(o, r);
	else if (agent != NO_AGENT)
		answer_one(o, agent, r);
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

	answer_one(d->operations, d->agent, d->request);
	free(d);
}

void operations_drain(void *ctx, const char *name, uint32_t timeout_ms, struct control_request *r)
{
	const struct operations *o = ctx;
	int agent = find(o, name, r);
	struct draining *d = agent == NO_AGENT ? NULL : malloc(sizeof *d);

	if (agent == NO_AGENT)
		return;
	if (timeout_ms == 0)
		timeout_ms = o->shared->self->moves.drain_timeout_ms;
	log_event(LOG_INFO, NULL, "drain", "agent=%s timeout_ms=%u", name, timeout_ms);
	agents_drain(o->shared->agents, agent, DRAIN_BY_OPERATOR, worker_now_ms(o->main), timeout_ms);
	if (d) {
		*d = (struct draining){ .operations = o, .request = r, .agent = agent };
		if (gather_start(o->main, o->workers, o->worker_count, ask_drain, answer_drain, d))
			return;
	}
	free(d);
	answer_one(o, agent, r); /* the workers will see it at their next tick */
}

void operations_undrain(void *ctx, const char *name, struct control_request *r)
{
	const struct operations *o = ctx;
	int agent = find(o, name, r);

	if (agent == NO_AGENT)
		return;
	if (agents_undrain(o->shared->agents, agent) < 0) {
		control_fail(r, CONTROL_CONFLICT, "no operator drains it");
		return;
	}
	log_event(LOG_INFO, NULL, "undrain", "agent=%s", name);
	answer_one(o, agent, r);
}

void operations_weight(void *ctx, const char *name, double weight, struct control_request *r)
{
	const struct operations *o = ctx;
	int agent = find(o, name, r);

	if (agent == NO_AGENT)
		return;
	log_event(LOG_INFO, NULL, "weight", "agent=%s weight=%g", name, weight);
	agents_set_weight(o->shared->agents, agent, weight);
	answer_one(o, agent, r);
}
