/* operations_ends.c: selects connections. An operator ends them, or keeps clients out: each worker ends those of its
 * own, and agents hear which networks are blocked, because nobody else sees the clients of their own listeners.
 */
#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "proto/error.h"
#include "ragent/control/agents_asked.h"
#include "ragent/control/control_answers.h"
#include "ragent/control/page.h"

void operations_select(
	struct operations *o, struct control_request *r, const struct control_query *q, struct selection selection)
{
	const int agent = q->agent ? agents_find(o->shared->agents, q->agent) : NO_AGENT;
	const struct conf_listener *listener = q->listener ? conf_listener_find(o->shared->conf, q->listener) : NULL;
	const char *nobody = q->agent && agent == NO_AGENT ? "no agent of that name"
			     : q->listener && !listener    ? "no listener of that name"
							   : NULL;
	struct selection *s = nobody ? NULL : malloc(sizeof *s);

	if (nobody) {
		request_fail(r, MHD_HTTP_NOT_FOUND, "%s", nobody);
		return;
	}
	if (s) {
		*s = selection;
		s->operations = o;
		s->request = r;
		s->query = *q;
		s->query.agent = agent == NO_AGENT ? NULL : agents_name(o->shared->agents, agent);
		s->query.listener = listener ? listener->name : NULL;
		if (gather_start(o->main, o->workers, o->worker_count, s->ask, s->answer, s))
			return;
		free(s);
	}
	request_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
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
	json_t *unconfirmed = json_array();

	for (unsigned i = 0; i < a->count; i++)
		if (a->answers[i].error[0] && agents_conf(a->operations->shared->agents, (int)i)->direct_count)
			unconfirmed = array_append(unconfirmed, json_string(asked_name(a, i)));
	request_answer(a->request, MHD_HTTP_OK,
		json_pack("{s:o, s:o}", "ended", integer_json(a->ended), "unconfirmed", unconfirmed));
}

static void tell_agents(const struct selection *s)
{
	struct operations *o = s->operations;
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
	else if (s->query.ids == QUERY_ONE && s->ended == 0)
		request_fail(s->request, MHD_HTTP_NOT_FOUND, "no such connection, or it ends already");
	else
		request_answer(s->request, MHD_HTTP_OK, json_pack("{s:o}", "ended", integer_json(s->ended)));
	free(s);
}

void operations_end(struct operations *o, const struct control_input *in, struct control_request *r)
{
	operations_select(o, r, &in->query, (struct selection){ .ask = ask, .answer = answer });
}

/* --- blocks --- */

void operations_block(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const uint64_t for_ms = in->for_s == UINT32_MAX ? BLOCKED_FOR_GOOD : in->for_s * UINT64_C(1000);
	char text[ADDRESS_TEXT_MAX], seconds[16] = "unlimited";

	if (o->shared->is_given) {
		request_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "another process takes its place: ask again");
		return;
	}
	const int failed = blocked_set(o->shared->blocked, &in->net, for_ms, worker_now_ms(o->main));
	if (failed == CSSL_E_FULL) {
		request_fail(r, MHD_HTTP_CONFLICT, "%u networks are blocked, which is the most", BLOCKED_MAX);
	} else if (failed) {
		request_fail(r, MHD_HTTP_NOT_FOUND, "it is not blocked");
	} else {
		if (in->for_s < UINT32_MAX)
			snprintf(seconds, sizeof seconds, "%u", in->for_s);
		log_event(LOG_INFO, NULL, in->for_s ? "network blocked" : "network unblocked", "network=%s seconds=%s",
			address_net_format(&in->net, text), seconds);
		operations_select(o, r, &(const struct control_query){ .client = in->net },
			(struct selection){ .ask = ask, .answer = answer, .what = in->for_s ? BLOCKS : UNBLOCKS });
	}
}

void operations_blocks(struct operations *o, const struct control_input *in, struct control_request *r)
{
	json_t *list = json_array();
	struct blocked_net at[BLOCKED_MAX];
	char text[ADDRESS_TEXT_MAX];
	const size_t count = blocked_list(o->shared->blocked, worker_now_ms(o->main), at);

	for (size_t i = 0; i < count; i++)
		list = array_append(
			list, json_pack("{s:s, s:o}", "network", address_net_format(&at[i].net, text), "ends_in_s",
				      at[i].left_ms == BLOCKED_FOR_GOOD ? json_null()
									: integer_json((at[i].left_ms + 999) / 1000)));
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "blocks", list));
}
