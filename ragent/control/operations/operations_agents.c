/* operations_agents.c: operations that ask agents: counters, key rotation, reload and log level of every agent; a
 * revocation. One agent gets it and tells the others; if it does not answer, the next one gets it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/report/log.h"
#include "ragent/control/http/control_exchange.h"
#include "ragent/control/http/control_json.h"
#include "ragent/control/operations/agents_asked.h"
#include "ragent/control/operations/control_answers.h"
#include "ragent/control/operations/control_metrics.h"

/* --- counters --- */

static size_t own_counters(const struct operations *o, struct counted *at)
{
	const size_t count = ragent_counter_count();

	for (size_t i = 0; i < count; i++) {
		at[i] = (struct counted){ *ragent_counter_row(i), counter_get(counter_at(&o->counters, i)) };
		for (unsigned w = 0; w < o->worker_count; w++)
			at[i].value += counter_get(counter_at(&o->workers[w]->home.counters, i));
	}
	return count;
}

static size_t counters_seen(const struct operations *o, unsigned agent, struct counted *at)
{
	const size_t count = ownership_counter_count();

	for (size_t i = 0; i < count; i++) {
		at[i] = (struct counted){ *ownership_counter_row(i), 0 };
		for (unsigned w = 0; w < o->worker_count; w++)
			at[i].value += counter_get(counter_at(&o->workers[w]->home.of_agents[agent], i));
	}
	return count;
}

static void agent_counters(const struct agent_answer *from, struct counted *at, struct counter_set *out)
{
	const Cssl__LinkResponse__Counters *c = from->response->counters;

	for (size_t i = 0; i < c->n_counter; i++) {
		const Cssl__LinkResponse__Counters__Counter *row = c->counter[i];
		agents_clean_text(row->name);
		agents_clean_text(row->help);
		at[i] = (struct counted){ { row->name, row->help, row->gauge ? COUNTER_GAUGE : COUNTER_MONOTONIC },
			row->value };
	}
	for (size_t i = 0; i < c->n_certificate; i++)
		agents_clean_text(c->certificate[i]->name);
	out->count = c->n_counter;
	out->certificates = c->certificate;
	out->certificate_count = c->n_certificate;
}

static const char *counters_fault(const struct agent_answer *a)
{
	return asked_fault(a, CSSL__LINK_RESPONSE__WHAT_COUNTERS);
}

/* @tell makes an answer of all sets; RAgent's own set is the first, and those of the agents follow. */
static void counters_collect(struct agents_asked *a,
	void (*tell)(const struct agents_asked *a, const struct counter_set *sets, size_t count))
{
	size_t rows = ragent_counter_count() + a->count * ownership_counter_count();

	for (unsigned i = 0; i < a->count; i++)
		rows += counters_fault(&a->answers[i]) ? 0 : a->answers[i].response->counters->n_counter;
	struct counter_set *sets = calloc(a->count + 1, sizeof *sets);
	struct counted *at = calloc(rows, sizeof *at), *next = at;
	if (!sets || !at) {
		request_fail(a->request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	} else {
		sets[0] = (struct counter_set){ .at = next, .count = own_counters(a->operations, next) };
		next += sets[0].count;
		for (unsigned i = 0; i < a->count; i++) {
			const struct agent_answer *from = &a->answers[i];
			struct counter_set *set = &sets[i + 1];
			*set = (struct counter_set){
				.agent = asked_name(a, i), .at = next, .error = counters_fault(from)
			};
			if (!set->error)
				agent_counters(from, next, set);
			next += set->count;
			set->seen = next;
			set->seen_count = counters_seen(a->operations, i, next);
			next += set->seen_count;
		}
		tell(a, sets, a->count + 1);
	}
	free(sets);
	free(at);
}

static json_t *counters_json(const struct counted *at, size_t count)
{
	json_t *out = json_object();

	for (size_t i = 0; i < count; i++)
		json_object_set_new(out, at[i].row.name, integer_json(at[i].value));
	return out;
}

static json_t *error_json(const char *error)
{
	return json_pack("{s:o}", "error", text_json(error));
}

static void tell_counters(const struct agents_asked *a, const struct counter_set *sets, size_t count)
{
	json_t *agents = json_object(), *seen = json_object();

	for (const struct counter_set *s = sets + 1; s < sets + count; s++) {
		json_object_set_new(agents, s->agent, s->error ? error_json(s->error) : counters_json(s->at, s->count));
		json_object_set_new(seen, s->agent, counters_json(s->seen, s->seen_count));
	}
	request_answer(a->request, MHD_HTTP_OK,
		json_pack("{s:o, s:o, s:o}", "ragent", counters_json(sets[0].at, sets[0].count), "agents", agents,
			"of_agents", seen));
}

static void tell_certificates(const struct agents_asked *a, const struct counter_set *sets, size_t count)
{
	json_t *list = json_array(), *failed = json_object();

	for (const struct counter_set *s = sets + 1; s < sets + count; s++) {
		if (s->error)
			json_object_set_new(failed, s->agent, text_json(s->error));
		for (size_t c = 0; c < s->certificate_count; c++)
			list = array_append(list, certificate_json(s->agent, s->certificates[c]));
	}
	request_answer(a->request, MHD_HTTP_OK, json_pack("{s:o, s:o}", "certificates", list, "failed", failed));
}

static void tell_metrics(const struct agents_asked *a, const struct counter_set *sets, size_t count)
{
	request_answer_text(a->request, METRICS_CONTENT_TYPE, metrics_text(a->operations, sets, count));
}

/* The same answers of the agents, told in several ways. */
#define TELL(name)                                                                                                     \
	static void answer_##name(struct agents_asked *a)                                                              \
	{                                                                                                              \
		counters_collect(a, tell_##name);                                                                      \
	}                                                                                                              \
	void operations_##name(struct operations *o, const struct control_input *in, struct control_request *r)        \
	{                                                                                                              \
		counter_set(&o->counters.log_lines_lost, log_dropped());                                               \
		asked_start(asked_about(o, r, CSSL__LINK_REQUEST__WHAT_COUNTERS, NULL, answer_##name));                \
	}
TELL(counters)
TELL(metrics)
TELL(certificates)

/* --- rotate, reload --- */

/* 503 when any process failed: a script sees the status, a person reads the names. */
static void answer_nodes(struct agents_asked *a)
{
	json_t *done = json_array(), *failed = json_object();
	const char *node = NULL;

	for (unsigned i = 0; i <= a->count; i++) {
		const char *name = i < a->count ? asked_name(a, i) : a->operations->shared->self->name;
		const char *error = i < a->count ? a->answers[i].error : a->own_error;
		if (*error)
			json_object_set_new(failed, name, text_json(error));
		else if (i < a->count)
			done = array_append(done, json_string(name));
		node = *error && !node ? name : node;
	}
	request_answer(a->request, node ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK,
		json_pack("{s:o*, s:o, s:o}", "error", node ? json_sprintf("not done by %s", node) : NULL, "done", done,
			"failed", failed));
}

void operations_rotate(struct operations *o, const struct control_input *in, struct control_request *r)
{
	asked_start(asked_about(o, r, CSSL__LINK_REQUEST__WHAT_ROTATE, NULL, answer_nodes));
}

void operations_reload(struct operations *o, const struct control_input *in, struct control_request *r)
{
	struct agents_asked *a = asked_about(o, r, CSSL__LINK_REQUEST__WHAT_RELOAD, NULL, answer_nodes);

	if (a && o->reload(o->owner, a->own_error, sizeof a->own_error) == 0)
		a->own_error[0] = '\0';
	asked_start(a);
}

/* --- log level: RAgent's own changes at once, and agents are asked to change theirs --- */

static json_t *level_json(const char *level, const char *configured)
{
	return json_pack("{s:s, s:s}", "level", level, "configured", configured);
}

static json_t *own_level_json(void)
{
	return level_json(log_level_name(log_level_now()), log_level_name(log_level_configured()));
}

/* A change that failed is an error; a level that could not be read is not. */
static void answer_levels(struct agents_asked *a)
{
	json_t *levels = json_object();
	const char *silent = NULL;

	if (a->whom == ASK_ALL)
		json_object_set_new(levels, a->operations->shared->self->name, own_level_json());
	for (unsigned i = 0; i < a->count; i++) {
		const char *name = asked_name(a, i);
		const char *error = asked_fault(&a->answers[i], CSSL__LINK_RESPONSE__WHAT_LOG_LEVEL);
		const Cssl__LinkResponse__LogLevel *level = error ? NULL : a->answers[i].response->log_level;
		if (a->whom == ASK_THAT && i != a->first) /* it was not asked, so its silence is no failure */
			continue;
		silent = error && !silent ? name : silent;
		json_object_set_new(
			levels, name, error ? error_json(error) : level_json(level->level, level->configured));
	}
	if (silent && *a->message->log_level->level)
		request_answer(a->request, MHD_HTTP_SERVICE_UNAVAILABLE,
			json_pack("{s:s+, s:o}", "error", "not done by ", silent, "levels", levels));
	else
		request_answer(a->request, MHD_HTTP_OK, json_pack("{s:o}", "levels", levels));
}

void operations_log_level(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const char *self = o->shared->self->name;
	const bool is_own = in->node && strcmp(in->node, self) == 0;
	const int agent = in->node ? agents_find(o->shared->agents, in->node) : NO_AGENT;
	Cssl__LinkRequest__LogLevel level = CSSL__LINK_REQUEST__LOG_LEVEL__INIT;
	struct agents_asked *a;

	if (in->node && !is_own && agent == NO_AGENT) {
		request_fail(r, MHD_HTTP_NOT_FOUND, "no process of that name");
		return;
	}
	if (in->level && agent == NO_AGENT) /* RAgent's own changes even if an agent then fails: 503 names that one */
		log_level_change(in->level);
	if (is_own) {
		request_answer(r, MHD_HTTP_OK, json_pack("{s:{s:o}}", "levels", self, own_level_json()));
		return;
	}
	level.level = (char *)in->level;
	a = asked_about(o, r, CSSL__LINK_REQUEST__WHAT_LOG_LEVEL, &level.base, answer_levels);
	if (!a)
		return;
	a->whom = agent == NO_AGENT ? ASK_ALL : ASK_THAT;
	a->first = agent == NO_AGENT ? 0 : (unsigned)agent;
	asked_start(a);
}

/* --- revoke --- */

static bool is_named(char *const *names, size_t count, const char *name)
{
	while (count > 0 && strcmp(names[count - 1], name) != 0)
		count--;
	return count > 0;
}

static json_t *names_json(char *const *names, size_t count)
{
	json_t *out = json_array();

	for (size_t i = 0; i < count; i++)
		out = array_append(out, json_string(names[i]));
	return out;
}

/* Agents that were asked before and stayed silent have not confirmed either. */
static void answer_revoke(struct agents_asked *a)
{
	const struct agent_answer *from = asked_last(a);
	const char *fault = asked_fault(from, CSSL__LINK_RESPONSE__WHAT_REVOKED);

	if (fault) {
		request_fail(a->request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", fault);
		return;
	}
	const Cssl__LinkResponse__Revoked *v = from->response->revoked;
	json_t *unconfirmed = names_json(v->unconfirmed, v->n_unconfirmed);
	for (unsigned i = 0; i < a->count; i++) {
		const char *name = asked_name(a, i);
		if (a->answers[i].asked == ASKED && !is_named(v->confirmed, v->n_confirmed, name) &&
			!is_named(v->unconfirmed, v->n_unconfirmed, name))
			unconfirmed = array_append(unconfirmed, json_string(name));
	}
	request_answer(a->request, MHD_HTTP_OK,
		json_pack("{s:o, s:o, s:o}", "sessions", integer_json(v->sessions), "confirmed",
			names_json(v->confirmed, v->n_confirmed), "unconfirmed", unconfirmed));
}

void operations_revoke(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const Cssl__SessionFilter *f = &in->filter;
	Cssl__LinkRequest__Revoke m;

	cssl__link_request__revoke__init(&m);
	m.which_case = in->revoke_by;
	if (m.which_case == CSSL__LINK_REQUEST__REVOKE__WHICH_CLIENT_ADDRESS &&
		f->client_prefix < 8 * f->client_address.len)
		m.which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_MATCHING;
	switch (m.which_case) {
	case CSSL__LINK_REQUEST__REVOKE__WHICH_SESSION_ID:
		m.session_id = (ProtobufCBinaryData){ SESSION_ID_LEN, (uint8_t *)in->session_id };
		break;
	case CSSL__LINK_REQUEST__REVOKE__WHICH_FAMILY_ID: m.family_id = f->family_id; break;
	case CSSL__LINK_REQUEST__REVOKE__WHICH_SERVER_NAME: m.server_name = f->server_name; break;
	case CSSL__LINK_REQUEST__REVOKE__WHICH_CLIENT_ADDRESS: m.client_address = f->client_address; break;
	case CSSL__LINK_REQUEST__REVOKE__WHICH_ALL: m.all = 1; break;
	default: m.matching = (Cssl__SessionFilter *)f;
	}
	struct agents_asked *a = asked_about(o, r, CSSL__LINK_REQUEST__WHAT_REVOKE, &m.base, answer_revoke);
	if (a)
		a->whom = ASK_ONE;
	asked_start(a);
}
