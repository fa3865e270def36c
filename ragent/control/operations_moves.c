/* operations_moves.c: an operator moves a connection, or lets it rest. Every worker checks whether the connection is
 * its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/container_of.h"
#include "ragent/control/control_answers.h"
#include "ragent/control/page.h"

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
	const int rests = r->to == NO_AGENT;

	request_answer(s->request, MHD_HTTP_OK,
		json_pack("{s:s, s:s*, s:I, s:o*}", "from", agents_name(agents, r->from), "to",
			rests ? NULL : agents_name(agents, r->to), "epoch", (json_int_t)r->epoch, "pause_us",
			rests ? NULL : integer_json(r->pause_us)));
}

static void answer(struct gather *g)
{
	struct selection *s = g->ctx;
	struct moving_part *found = NULL;

	for (unsigned i = 0; i < g->count; i++)
		if (g->parts[i].result)
			found = g->parts[i].result;
	if (!found)
		request_fail(s->request, MHD_HTTP_NOT_FOUND, "no such connection");
	else if (found->result.outcome == MOVE_DONE)
		answer_done(s, &found->result);
	else
		request_fail(s->request,
			found->result.outcome == MOVE_CONFLICT ? MHD_HTTP_CONFLICT : MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
			found->reason);
	free(found);
	free(s);
}

static void order(struct operations *o, const struct control_input *in, int target, struct control_request *r)
{
	operations_select(o, r, &in->query, (struct selection){ .ask = ask, .answer = answer, .target = target });
}

void operations_move(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const int target = agents_find(o->shared->agents, in->agent);

	if (target == NO_AGENT)
		request_fail(r, MHD_HTTP_NOT_FOUND, "no agent of that name");
	else
		order(o, in, target, r);
}

void operations_rest(struct operations *o, const struct control_input *in, struct control_request *r)
{
	order(o, in, NO_AGENT, r);
}
