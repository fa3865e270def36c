/* operations_log_level.c: changes RAgent's own level at once, and asks the agents to change theirs. */
#include <stdio.h>
#include <string.h>

#include "net/log.h"
#include "ragent/control/agents_asked.h"

static struct control_log_level own_level(const struct operations *o)
{
	return (struct control_log_level){ .node = o->shared->self->name,
		.level = log_level_name(log_level_now()),
		.configured = log_level_name(log_level_configured()) };
}

static struct control_log_level level_of(const struct agents_asked *a, unsigned agent)
{
	const struct agent_answer *from = &a->answers[agent];
	struct control_log_level out = { .node = asked_name(a, agent),
		.error = asked_fault(from, CSSL__LINK_RESPONSE__WHAT_LOG_LEVEL) };

	if (!out.error) {
		out.level = from->response->log_level->level;
		out.configured = from->response->log_level->configured;
	}
	return out;
}

static void answer(struct agents_asked *a)
{
	struct control_log_level at[AGENTS_MAX + 1];
	size_t count = 0;

	if (a->whom == ASK_ALL)
		at[count++] = own_level(a->operations);
	for (unsigned i = 0; i < a->count; i++)
		if (a->whom == ASK_ALL || i == a->first)
			at[count++] = level_of(a, i);
	control_answer_log_levels(a->request, at, count);
}

void operations_log_level(void *ctx, const struct control_log_change *change, struct control_request *r)
{
	const struct operations *o = ctx;
	const int is_own = change->node && strcmp(change->node, o->shared->self->name) == 0;
	const int agent = change->node ? agents_find(o->shared->agents, change->node) : NO_AGENT;
	struct agents_asked *a;

	if (change->node && !is_own && agent == NO_AGENT) {
		control_fail(r, CONTROL_NOT_FOUND, "no process of that name");
		return;
	}
	if (change->level && agent == NO_AGENT)
		log_level_change(change->level);
	if (is_own) {
		const struct control_log_level own = own_level(o);
		control_answer_log_levels(r, &own, 1);
		return;
	}
	a = asked_create(o, r, CSSL__LINK_REQUEST__WHAT_LOG_LEVEL, answer);
	if (!a)
		return;
	snprintf(a->name, sizeof a->name, "%s", change->level ? change->level : "");
	a->log_level.level = a->name;
	a->whom = agent == NO_AGENT ? ASK_ALL : ASK_THAT;
	a->first = agent == NO_AGENT ? 0 : (unsigned)agent;
	asked_start(a);
}
