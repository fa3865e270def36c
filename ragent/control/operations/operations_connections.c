/* operations_connections.c: each worker is asked about the connections that match (a gather, whose data are in one
 * struct that the last step frees). An operator lists, moves and ends them, lets one rest, or keeps clients out: then
 * agents hear which networks are blocked, too, because nobody else sees the clients of their own listeners.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/control/http/control_exchange.h"
#include "ragent/control/http/control_json.h"
#include "ragent/control/operations/agents_asked.h"
#include "ragent/control/operations/control_answers.h"
#include "ragent/control/operations/page.h"

struct selection {
	struct operations *operations;
	struct control_request *request;
	struct control_query query;
	void (*ask)(struct gather_part *p);
	void (*answer)(struct gather *g); /* frees it */
	int target;                       /* of a move; NO_AGENT: to rest */
	enum { ENDS_ORDERLY, BLOCKS, UNBLOCKS } what;
	_Atomic uint64_t ended;
};
/* @selection: all but the first three. */
static void selection_begin(
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
		s->query = *q; /* its strings end with the call, those of agents and listeners do not */
		s->query.agent = agent == NO_AGENT ? NULL : agents_name(o->shared->agents, agent);
		s->query.listener = listener ? listener->name : NULL;
		if (gather_start(o->main, o->workers, o->worker_count, s->ask, s->answer, s))
			return;
		free(s);
	}
	request_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
}

/* --- a page, or one --- */

static void ask_page(struct gather_part *p)
{
	const struct selection *s = p->gather->ctx;

	p->result = page_create(p->rw, &s->query);
	gather_answer(p);
}

static json_t *connections_page_json(const struct page *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->count; i++)
		list = array_append(list, connection_json(&p->rows[i]));
	return json_pack("{s:o, s:o}", "connections", list, "next",
		p->more == PAGE_GOES_ON ? hex_json(p->rows[p->count - 1].id.bytes, CONNECTION_ID_LEN) : json_null());
}

static void answer_connections(struct gather *g)
{
	struct selection *s = g->ctx;
	struct page *all = page_merge(g, s->query.limit);

	if (!all)
		request_fail(s->request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	else if (s->query.ids != QUERY_ONE)
		request_answer(s->request, MHD_HTTP_OK, connections_page_json(all));
	else if (all->count > 0)
		request_answer(s->request, MHD_HTTP_OK, connection_json(&all->rows[0]));
	else
		request_fail(s->request, MHD_HTTP_NOT_FOUND, "no such connection");
	page_destroy(all);
	free(s);
}

void operations_connections(struct operations *o, const struct control_input *in, struct control_request *r)
{
	selection_begin(o, r, &in->query, (struct selection){ .ask = ask_page, .answer = answer_connections });
}

/* --- moves: every worker checks whether the connection is its own --- */

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

static void ask_move(struct gather_part *p)
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
	connection_order(c, &wish, &part->order);
}

static void answer_moved(const struct selection *s, const struct move_result *r)
{
	const struct agents *agents = s->operations->shared->agents;
	const bool rests = r->to == NO_AGENT;

	request_answer(s->request, MHD_HTTP_OK,
		json_pack("{s:s, s:s*, s:I, s:o*}", "from", agents_name(agents, r->from), "to",
			rests ? NULL : agents_name(agents, r->to), "epoch", (json_int_t)r->epoch, "pause_us",
			rests ? NULL : integer_json(r->pause_us)));
}

static void answer_move(struct gather *g)
{
	struct selection *s = g->ctx;
	struct moving_part *found = NULL;

	for (unsigned i = 0; i < g->count; i++)
		if (g->parts[i].result)
			found = g->parts[i].result;
	if (!found)
		request_fail(s->request, MHD_HTTP_NOT_FOUND, "no such connection");
	else if (found->result.outcome == MOVE_DONE)
		answer_moved(s, &found->result);
	else
		request_fail(s->request,
			found->result.outcome == MOVE_CONFLICT ? MHD_HTTP_CONFLICT : MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
			found->reason);
	free(found);
	free(s);
}

static void move_begin(struct operations *o, const struct control_input *in, int target, struct control_request *r)
{
	selection_begin(
		o, r, &in->query, (struct selection){ .ask = ask_move, .answer = answer_move, .target = target });
}

void operations_move(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const int target = agents_find(o->shared->agents, in->agent);

	if (target == NO_AGENT)
		request_fail(r, MHD_HTTP_NOT_FOUND, "no agent of that name");
	else
		move_begin(o, in, target, r);
}

void operations_rest(struct operations *o, const struct control_input *in, struct control_request *r)
{
	move_begin(o, in, NO_AGENT, r);
}

/* --- ends --- */

static void ask_end(struct gather_part *p)
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

static void blocks_tell(const struct selection *s)
{
	struct operations *o = s->operations;
	uint8_t blocked[BLOCKED_PACKED_MAX];
	Cssl__LinkRequest message = CSSL__LINK_REQUEST__INIT;

	message.what_case = CSSL__LINK_REQUEST__WHAT_BLOCKED;
	message.blocked.data = blocked;
	message.blocked.len = blocked_pack(o->shared->blocked, worker_now_ms(o->main), blocked);
	struct agents_asked *a = asked_create(o, s->request, &message, answer_blocked);
	if (a)
		a->ended = s->ended;
	asked_start(a);
}

static void answer_end(struct gather *g)
{
	struct selection *s = g->ctx;

	if (s->what != ENDS_ORDERLY)
		blocks_tell(s);
	else if (s->query.ids == QUERY_ONE && s->ended == 0)
		request_fail(s->request, MHD_HTTP_NOT_FOUND, "no such connection, or it ends already");
	else
		request_answer(s->request, MHD_HTTP_OK, json_pack("{s:o}", "ended", integer_json(s->ended)));
	free(s);
}

void operations_end(struct operations *o, const struct control_input *in, struct control_request *r)
{
	selection_begin(o, r, &in->query, (struct selection){ .ask = ask_end, .answer = answer_end });
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
		selection_begin(o, r, &(const struct control_query){ .client = in->net },
			(struct selection){
				.ask = ask_end, .answer = answer_end, .what = in->for_s ? BLOCKS : UNBLOCKS });
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
