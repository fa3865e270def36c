/* operations_sessions.c: the cluster's sessions. When every agent holds all sessions, one agent is asked for a page:
 * the one that holds most, or the next if it does not answer. With broadcast.replicas each session is at some agents
 * only: then all agents are asked and their pages merged. For a count or a single session all agents are always asked.
 */
#include <stdlib.h>

#include "ragent/control/http/control_exchange.h"
#include "ragent/control/http/control_json.h"
#include "ragent/control/operations/agents_asked.h"
#include "ragent/control/operations/control_answers.h"
#include "ragent/control/operations/session_merge.h"

static const char *sessions_fault(const struct agent_answer *a)
{
	return asked_fault(a, CSSL__LINK_RESPONSE__WHAT_SESSIONS);
}

static bool are_spread(const struct operations *o)
{
	return o->shared->conf->broadcast.replicas > 0;
}

/* --- a page --- */

static json_t *sessions_page_json(const struct merged_session *at, size_t count, enum merged_more more)
{
	const Cssl__Session *last = NULL;
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const Cssl__Session *s = at[i].session;
		if (!session_is_whole(s))
			continue;
		list = array_append(list, session_json(s, at[i].hits, at[i].expires_s));
		last = s;
	}
	return json_pack("{s:o, s:o}", "sessions", list, "next",
		more == MERGED_GOES_ON && last ? hex_json(last->session_id.data, SESSION_ID_LEN) : json_null());
}

static void answer_sessions(struct agents_asked *a)
{
	const Cssl__LinkResponse__Sessions *pages[AGENTS_MAX];
	struct merged_session *merged = calloc(a->message->sessions->limit, sizeof *merged);
	enum merged_more more;
	size_t count = 0;

	for (unsigned i = 0; i < a->count; i++)
		if (!sessions_fault(&a->answers[i]))
			pages[count++] = a->answers[i].response->sessions;
	if (!merged) {
		request_fail(a->request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	} else if (count == 0) {
		request_fail(a->request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", sessions_fault(asked_last(a)));
	} else {
		const size_t rows = session_merge(pages, count, a->message->sessions->limit, merged, &more);
		request_answer(a->request, MHD_HTTP_OK, sessions_page_json(merged, rows, more));
	}
	free(merged);
}

/* An agent that just came back does not have all sessions yet. */
static unsigned holds_most(const struct agents *agents)
{
	struct agent_status best = { 0 }, s;
	unsigned found = 0;

	for (unsigned i = 0; i < agents_count(agents); i++) {
		agents_status(agents, (int)i, &s);
		if (s.links_up == 0 || s.sessions <= best.sessions)
			continue;
		best = s;
		found = i;
	}
	return found;
}

void operations_sessions(struct operations *o, const struct control_input *in, struct control_request *r)
{
	Cssl__LinkRequest__Sessions m = CSSL__LINK_REQUEST__SESSIONS__INIT;

	m.filter = (Cssl__SessionFilter *)&in->filter;
	m.limit = in->limit;
	if (in->session == SESSION_GIVEN)
		m.after = (ProtobufCBinaryData){ SESSION_ID_LEN, (uint8_t *)in->session_id };
	struct agents_asked *a = asked_about(o, r, CSSL__LINK_REQUEST__WHAT_SESSIONS, &m.base, answer_sessions);
	if (a && !are_spread(o)) {
		a->whom = ASK_ONE;
		a->first = holds_most(o->shared->agents);
	}
	asked_start(a);
}

/* --- a count --- */

/* With replicas one holder counts each session: add the counts. Else all agents hold the same sessions, except new
 * ones: take the highest count. */
static uint64_t add_count(const struct agents_asked *a, uint64_t total, const Cssl__LinkResponse__SessionCount *one)
{
	if (are_spread(a->operations))
		return total + one->counted;
	return one->sessions > total ? one->sessions : total;
}

static void answer_count(struct agents_asked *a)
{
	json_t *agents = json_object(), *silent = json_object();
	uint64_t total = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const char *fault = asked_fault(&a->answers[i], CSSL__LINK_RESPONSE__WHAT_SESSION_COUNT);
		if (fault) {
			json_object_set_new(silent, asked_name(a, i), text_json(fault));
			continue;
		}
		const Cssl__LinkResponse__SessionCount *one = a->answers[i].response->session_count;
		json_object_set_new(agents, asked_name(a, i), integer_json(one->sessions));
		total = add_count(a, total, one);
	}
	const bool is_answered = json_object_size(agents) > 0;
	json_t *answer =
		json_pack("{s:o, s:o, s:o}", "sessions", integer_json(total), "agents", agents, "silent", silent);
	if (is_answered) {
		request_answer(a->request, MHD_HTTP_OK, answer);
		return;
	}
	json_decref(answer);
	request_fail(a->request, MHD_HTTP_SERVICE_UNAVAILABLE, "no agent answered");
}

void operations_session_count(struct operations *o, const struct control_input *in, struct control_request *r)
{
	Cssl__LinkRequest__SessionCount m = CSSL__LINK_REQUEST__SESSION_COUNT__INIT;

	m.filter = cssl__session_filter__get_packed_size(&in->filter) ? (Cssl__SessionFilter *)&in->filter : NULL;
	asked_start(asked_about(o, r, CSSL__LINK_REQUEST__WHAT_SESSION_COUNT, &m.base, answer_count));
}

/* --- one --- */

static json_t *holder_json(const char *agent, const Cssl__Session *s)
{
	return json_pack("{s:s, s:o, s:o}", "agent", agent, "hits", integer_json(s->hits), "expires_s",
		integer_json(s->expires_s));
}

/* Each agent counts its own hits: add them. */
static void answer_session(struct agents_asked *a)
{
	json_t *holders = json_array(), *missing = json_array(), *silent = json_object();
	const Cssl__Session *found = NULL;
	uint32_t hits = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const char *name = asked_name(a, i), *fault = sessions_fault(&a->answers[i]);
		const Cssl__LinkResponse__Sessions *page = fault ? NULL : a->answers[i].response->sessions;
		if (fault) {
			json_object_set_new(silent, name, text_json(fault));
		} else if (page->n_session == 0) {
			missing = array_append(missing, json_string(name));
		} else {
			found = page->session[0];
			hits += found->hits;
			holders = array_append(holders, holder_json(name, found));
		}
	}
	json_t *who = json_pack("{s:o, s:o, s:o}", "holders", holders, "missing", missing, "silent", silent);
	if (!found || !session_is_whole(found)) {
		request_fail(a->request, MHD_HTTP_NOT_FOUND, "no agent that answered holds such a session");
	} else {
		json_t *one = session_json(found, hits, found->expires_s);
		json_object_update(one, who);
		request_answer(a->request, MHD_HTTP_OK, one);
	}
	json_decref(who);
}

void operations_session(struct operations *o, const struct control_input *in, struct control_request *r)
{
	Cssl__SessionFilter only = CSSL__SESSION_FILTER__INIT;
	Cssl__LinkRequest__Sessions m = CSSL__LINK_REQUEST__SESSIONS__INIT;

	only.session_id = (ProtobufCBinaryData){ SESSION_ID_LEN, (uint8_t *)in->session_id };
	m.filter = &only;
	m.limit = 1;
	asked_start(asked_about(o, r, CSSL__LINK_REQUEST__WHAT_SESSIONS, &m.base, answer_session));
}
