/* operations_moves.c: an operator moves a connection, or lets it rest. Every worker checks whether the connection is
 * its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/container_of.h"
#include "ragent/control/operations.h"

/* The part of one worker, and its result. */
struct moving_part {
	struct move_order order;
	struct gather_part *part;
	struct move_result result;
	char reason[160];
};

static void on_moved(struct move_order *o, const struct move_result *r)
{
	struct moving_part *m = container_of(o, struct moving_part, order);

	m->result = *r;
	snprintf(m->reason, sizeof m->reason, "%s", r->reason ? r->reason : "");
	m->part->result = m;
	gather_answer(m->part);
}

static void ask(struct gather_part *p)
{
	const struct selection *s = p->gather->ctx;
	struct connection *c = p->rw->home.connections;
	const struct move_wish wish = { .target = s->target, .cause = CSSL__CAUSE__CAUSE_MOVE };

	while (c && !page_matches(c, &s->query))
		c = connection_next(c);
	struct moving_part *part = c ? calloc(1, sizeof *part) : NULL;
	if (!part) {
		gather_answer(p);
		return;
	}
	part->order.done = on_moved;
	part->part = p;
	if (s->target == NO_AGENT)
		connection_order_rest(c, &part->order);
	else
		connection_order_move(c, &wish, &part->order);
}

static void answer_done(const struct selection *s, const struct move_result *r)
{
	const struct agents *agents = s->operations->shared->agents;
	const struct control_moved moved = {
		.from = agents_name(agents, r->from),
		.to = agents_name(agents, r->to),
		.epoch = r->epoch,
		.pause_us = r->pause_us,
	};

	if (r->to == NO_AGENT)
		control_answer_rest(s->request, &moved);
	else
		control_answer_move(s->request, &moved);
}

static void answer(struct gather *g)
{
	struct selection *s = g->ctx;
	struct moving_part *found = NULL;

	for (unsigned i = 0; i < g->count; i++)
		if (g->parts[i].result)
			found = g->parts[i].result;
	if (!found)
		control_fail(s->request, CONTROL_NOT_FOUND, "no such connection");
	else if (found->result.outcome == MOVE_DONE)
		answer_done(s, &found->result);
	else
		control_fail(s->request,
			found->result.outcome == MOVE_CONFLICT ? CONTROL_CONFLICT : CONTROL_UNAVAILABLE, "%s",
			found->reason);
	free(found);
	selection_free(s);
}

static void order(const struct operations *o, const struct connection_id *id, int target, struct control_request *r)
{
	operations_select(o, r, &(const struct control_query){ .id = id },
		(struct selection){ .ask = ask, .answer = answer, .target = target });
}

void operations_move(void *ctx, const struct connection_id *id, const char *agent, struct control_request *r)
{
	const struct operations *o = ctx;
	int target = agents_find(o->shared->agents, agent);

	if (target == NO_AGENT)
		control_fail(r, CONTROL_NOT_FOUND, "no agent of that name");
	else
		order(o, id, target, r);
}

void operations_rest(void *ctx, const struct connection_id *id, struct control_request *r)
{
	order(ctx, id, NO_AGENT, r);
}
