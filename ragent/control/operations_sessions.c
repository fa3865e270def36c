/* operations_sessions.c: the cluster's sessions. When every agent holds all sessions, one agent is asked for a page:
 * the one that holds most, or the next if it does not answer. With broadcast.replicas each session is at some agents
 * only: then all agents are asked and their pages merged. For a count or a single session all agents are always asked.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ragent/control/agents_asked.h"
#include "ragent/control/session_merge.h"

static ProtobufCBinaryData bytes_of(const void *data, size_t len)
{
	return (ProtobufCBinaryData){ len, (uint8_t *)data };
}

static int says_nothing(const struct control_session_query *q)
{
	return !q->server_name && q->client.len == 0 && q->protocol_version == 0 && q->cipher_suite == 0 &&
	       q->min_age_s == 0 && q->max_age_s == 0 && !q->family_id && !q->client_certificate;
}

static void fill_sessions(struct agents_asked *a, unsigned limit)
{
	a->sessions.filter = &a->filter;
	a->sessions.limit = limit;
}

/* --- answers of agents --- */

static void take_address(const ProtobufCBinaryData *from, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	if (from->len == sizeof v4->sin_addr) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, from->data, from->len);
	} else if (from->len == sizeof v6->sin6_addr) {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, from->data, from->len);
	}
}

/* Copies the names, with a NUL at the end. 0 or -1. */
static int take_session(const Cssl__Session *from, char (*names)[NAME_MAX_LEN + 1], struct control_session *out)
{
	if (from->session_id.len != SESSION_ID_LEN || from->family_id.len != FAMILY_ID_LEN ||
		from->server_name.len > NAME_MAX_LEN || from->alpn.len > NAME_MAX_LEN ||
		(from->client_certificate.len != 0 && from->client_certificate.len != CONTROL_CERTIFICATE_LEN))
		return -1;
	snprintf(names[0], sizeof names[0], "%.*s", (int)from->server_name.len, (const char *)from->server_name.data);
	snprintf(names[1], sizeof names[1], "%.*s", (int)from->alpn.len, (const char *)from->alpn.data);
	*out = (struct control_session){
		.server_name = names[0],
		.alpn = names[1],
		.listener = from->listener,
		.origin = from->origin,
		.protocol_version = (uint16_t)from->protocol_version,
		.cipher_suite = (uint16_t)from->cipher_suite,
		.age_s = from->age_s,
		.family_age_s = from->family_age_s,
		.expires_s = from->expires_s,
		.hits = from->hits,
	};
	memcpy(out->id, from->session_id.data, SESSION_ID_LEN);
	memcpy(out->family_id, from->family_id.data, FAMILY_ID_LEN);
	if (from->client_certificate.len > 0)
		memcpy(out->client_certificate, from->client_certificate.data, CONTROL_CERTIFICATE_LEN);
	take_address(&from->client_address, &out->client);
	return 0;
}

static const Cssl__LinkResponse__Sessions *page_of(const struct agent_answer *a)
{
	return asked_fault(a, CSSL__LINK_RESPONSE__WHAT_SESSIONS) ? NULL : a->response->sessions;
}

static int are_spread(const struct operations *o)
{
	return o->shared->conf->broadcast.replicas > 0;
}

/* --- a page --- */

struct rows {
	const Cssl__LinkResponse__Sessions **pages;
	struct merged_session *merged;
	struct control_session *at;
	char (*names)[NAME_MAX_LEN + 1];
	size_t page_count, count;
	enum merged_more more;
};

static void rows_free(struct rows *r)
{
	free(r->names);
	free(r->at);
	free(r->merged);
	free(r->pages);
}

/* 0 or -1: out of memory; call rows_free() in both cases. */
static int rows_alloc(struct rows *r, const struct agents_asked *a)
{
	const size_t limit = a->sessions.limit;

	*r = (struct rows){ .pages = calloc(a->count + 1, sizeof *r->pages),
		.merged = calloc(limit, sizeof *r->merged),
		.at = calloc(limit, sizeof *r->at),
		.names = calloc(2 * limit, sizeof *r->names) };
	return r->pages && r->merged && r->at && r->names ? 0 : -1;
}

static void rows_merge(struct rows *r, const struct agents_asked *a)
{
	for (unsigned i = 0; i < a->count; i++)
		if (page_of(&a->answers[i]))
			r->pages[r->page_count++] = page_of(&a->answers[i]);
	const size_t merged = session_merge(r->pages, r->page_count, a->sessions.limit, r->merged, &r->more);
	for (size_t i = 0; i < merged; i++) {
		struct control_session *row = &r->at[r->count];
		if (take_session(r->merged[i].session, &r->names[2 * r->count], row) < 0)
			continue;
		row->hits = r->merged[i].hits;
		row->expires_s = r->merged[i].expires_s;
		r->count++;
	}
}

static void answer_page(struct agents_asked *a)
{
	struct rows rows;

	if (rows_alloc(&rows, a) < 0) {
		control_fail(a->request, CONTROL_INTERNAL, "out of memory");
		rows_free(&rows);
		return;
	}
	rows_merge(&rows, a);
	if (rows.page_count == 0)
		control_fail(a->request, CONTROL_UNAVAILABLE, "%s",
			asked_fault(asked_last(a), CSSL__LINK_RESPONSE__WHAT_SESSIONS));
	else
		control_answer_sessions(a->request, rows.at, rows.count,
			rows.more == MERGED_GOES_ON ? CONTROL_MORE : CONTROL_LAST_PAGE);
	rows_free(&rows);
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

void operations_sessions(void *ctx, const struct control_session_query *q, struct control_request *r)
{
	const struct operations *o = ctx;
	struct agents_asked *a = asked_create(o, r, CSSL__LINK_REQUEST__WHAT_SESSIONS, answer_page);

	if (!a)
		return;
	asked_filter(a, q);
	fill_sessions(a, q->limit);
	if (q->after) {
		memcpy(a->after, q->after, SESSION_ID_LEN);
		a->sessions.after = bytes_of(a->after, SESSION_ID_LEN);
	}
	a->whom = are_spread(o) ? ASK_ALL : ASK_ONE;
	a->first = a->whom == ASK_ONE ? holds_most(o->shared->agents) : 0;
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
	struct control_holder at[AGENTS_MAX];
	uint64_t total = 0;
	unsigned answered = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const char *fault = asked_fault(&a->answers[i], CSSL__LINK_RESPONSE__WHAT_SESSION_COUNT);
		at[i] = (struct control_holder){ .agent = asked_name(a, i), .error = fault };
		if (fault)
			continue;
		answered++;
		at[i].sessions = a->answers[i].response->session_count->sessions;
		total = add_count(a, total, a->answers[i].response->session_count);
	}
	if (answered == 0)
		control_fail(a->request, CONTROL_UNAVAILABLE, "no agent answered");
	else
		control_answer_session_count(a->request, total, at, a->count);
}

void operations_session_count(void *ctx, const struct control_session_query *q, struct control_request *r)
{
	struct agents_asked *a = asked_create(ctx, r, CSSL__LINK_REQUEST__WHAT_SESSION_COUNT, answer_count);

	if (!a)
		return;
	asked_filter(a, q);
	a->session_count.filter = says_nothing(q) ? NULL : &a->filter;
	asked_start(a);
}

/* --- one --- */

static void take_holder(struct agents_asked *a, unsigned agent, struct control_holder *out, const Cssl__Session **found)
{
	const struct agent_answer *from = &a->answers[agent];
	const Cssl__LinkResponse__Sessions *page = page_of(from);

	*out = (struct control_holder){ .agent = asked_name(a, agent),
		.error = asked_fault(from, CSSL__LINK_RESPONSE__WHAT_SESSIONS) };
	if (!page || page->n_session == 0)
		return;
	out->sessions = 1;
	out->hits = page->session[0]->hits;
	out->expires_s = page->session[0]->expires_s;
	*found = page->session[0];
}

/* Each agent counts its own hits: add them. */
static void answer_session(struct agents_asked *a)
{
	struct control_holder at[AGENTS_MAX];
	const Cssl__Session *found = NULL;
	struct control_session session;
	char names[2][NAME_MAX_LEN + 1];
	uint32_t hits = 0;

	for (unsigned i = 0; i < a->count; i++) {
		take_holder(a, i, &at[i], &found);
		hits += at[i].hits;
	}
	if (!found || take_session(found, names, &session) < 0) {
		control_fail(a->request, CONTROL_NOT_FOUND, "no agent that answered holds such a session");
	} else {
		session.hits = hits;
		control_answer_session(a->request, &session, at, a->count);
	}
}

void operations_session(void *ctx, const uint8_t id[static SESSION_ID_LEN], struct control_request *r)
{
	struct agents_asked *a = asked_create(ctx, r, CSSL__LINK_REQUEST__WHAT_SESSIONS, answer_session);

	if (!a)
		return;
	memcpy(a->id, id, SESSION_ID_LEN);
	a->filter.session_id = bytes_of(a->id, SESSION_ID_LEN);
	fill_sessions(a, 1);
	asked_start(a);
}
