/* operations_ends.c: selects connections. An operator ends them, or keeps clients out: each worker ends those of its
 * own, and agents hear which networks are blocked, because nobody else sees the clients of their own listeners.
 */
#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "proto/error.h"
#include "ragent/control/agents_asked.h"

static int has_listener(const struct ragent_shared *s, const char *name)
{
	for (size_t f = 0; f < s->front_count; f++)
		if (strcmp(s->fronts[f].conf->name, name) == 0)
			return 1;
	return 0;
}

void selection_free(struct selection *s)
{
	page_query_clear(&s->query);
	free(s);
}

void operations_select(const struct operations *o, struct control_request *r, const struct control_query *q,
	struct selection selection)
{
	const char *nobody = q->agent && agents_find(o->shared->agents, q->agent) == NO_AGENT ? "no agent of that name"
			     : q->listener && !has_listener(o->shared, q->listener) ? "no listener of that name"
										    : NULL;
	struct selection *s = nobody ? NULL : calloc(1, sizeof *s);

	if (nobody) {
		control_fail(r, CONTROL_NOT_FOUND, "%s", nobody);
		return;
	}
	if (s) {
		*s = selection;
		s->operations = o;
		s->request = r;
		if (page_query_set(&s->query, q) == 0 &&
			gather_start(o->main, o->workers, o->worker_count, s->ask, s->answer, s))
			return;
		selection_free(s);
	}
	control_fail(r, CONTROL_INTERNAL, "out of memory");
}

/* --- ends --- */

static void ask(struct gather_part *p)
{
	struct selection *s = p->gather->ctx;
	struct connection *next;

	for (struct connection *c = s->what == UNBLOCKS ? NULL : p->rw->home.connections; c; c = next) {
		next = connection_next(c);
		if (page_matches(c, &s->query))
			s->ended +=
				(unsigned)connection_end_by_operator(c, s->what == BLOCKS ? END_RESET : END_ORDERLY);
	}
	gather_answer(p);
}

static void answer_blocked(struct agents_asked *a)
{
	const char *unconfirmed[AGENTS_MAX];
	size_t count = 0;

	for (unsigned i = 0; i < a->count; i++)
		if (a->answers[i].error[0] && agents_conf(a->operations->shared->agents, (int)i)->direct_count)
			unconfirmed[count++] = asked_name(a, i);
	control_answer_block(a->request, a->ended, unconfirmed, count);
}

static void tell_agents(const struct selection *s)
{
	const struct operations *o = s->operations;
	struct agents_asked *a = asked_create(o, s->request, CSSL__LINK_REQUEST__WHAT_BLOCKED, answer_blocked);

	if (!a)
		return;
	a->ended = s->ended;
	a->message.blocked.data = a->blocked;
	a->message.blocked.len = blocked_pack(o->shared->blocked, worker_now_ms(o->main), a->blocked);
	asked_start(a);
}

static void answer(struct gather *g)
{
	struct selection *s = g->ctx;

	if (s->what != ENDS_ORDERLY)
		tell_agents(s);
	else if (s->query.exact && s->ended == 0)
		control_fail(s->request, CONTROL_NOT_FOUND, "no such connection, or it ends already");
	else
		control_answer_number(s->request, "ended", s->ended);
	selection_free(s);
}

void operations_end(void *ctx, const struct control_query *q, struct control_request *r)
{
	operations_select(ctx, r, q, (struct selection){ .ask = ask, .answer = answer });
}

void operations_block(void *ctx, const struct address_net *net, uint32_t for_s, struct control_request *r)
{
	const struct operations *o = ctx;
	const uint64_t for_ms = for_s == UINT32_MAX ? BLOCKED_FOR_GOOD : for_s * UINT64_C(1000);
	char text[ADDRESS_TEXT_MAX], seconds[16] = "unlimited";

	if (o->shared->is_given) {
		control_fail(r, CONTROL_UNAVAILABLE, "another process takes its place: ask again");
		return;
	}
	const int failed = blocked_set(o->shared->blocked, net, for_ms, worker_now_ms(o->main));
	if (failed == CSSL_E_FULL) {
		control_fail(r, CONTROL_CONFLICT, "%u networks are blocked, which is the most", BLOCKED_MAX);
	} else if (failed) {
		control_fail(r, CONTROL_NOT_FOUND, "it is not blocked");
	} else {
		if (for_s < UINT32_MAX)
			snprintf(seconds, sizeof seconds, "%u", for_s);
		log_event(LOG_INFO, NULL, for_s ? "network blocked" : "network unblocked", "network=%s seconds=%s",
			address_net_format(net, text), seconds);
		operations_select(o, r, &(const struct control_query){ .client = net },
			(struct selection){ .ask = ask, .answer = answer, .what = for_s ? BLOCKS : UNBLOCKS });
	}
}

void operations_blocks(void *ctx, struct control_request *r)
{
	const struct operations *o = ctx;

	control_answer_blocks(r, o->shared->blocked, worker_now_ms(o->main));
}
