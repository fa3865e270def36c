/* operations_agents.c: operations that ask agents: counters, key rotation, reload of every agent; a revocation. One
 * agent gets it and tells the others; if it does not answer, the next one gets it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "ragent/control/agents_asked.h"

/* --- counters --- */

static struct control_counter zero_of(const struct counter_row *row)
{
	return (struct control_counter){ .name = row->name,
		.help = row->help,
		.kind = row->kind == COUNTER_GAUGE ? CONTROL_GAUGE : CONTROL_COUNTER };
}

static size_t own_counters(const struct operations *o, struct control_counter *at)
{
	size_t count = ragent_counter_count();

	for (size_t i = 0; i < count; i++) {
		at[i] = zero_of(ragent_counter_row(i));
		at[i].value = ragent_counter_value(&o->counters, i);
		for (unsigned w = 0; w < o->worker_count; w++)
			at[i].value += ragent_counter_value(&o->workers[w]->home.counters, i);
	}
	return count;
}

static size_t counters_seen(const struct operations *o, unsigned agent, struct control_counter *at)
{
	size_t count = ownership_counter_count();

	for (size_t i = 0; i < count; i++) {
		at[i] = zero_of(ownership_counter_row(i));
		for (unsigned w = 0; w < o->worker_count; w++)
			at[i].value += ownership_counter_value(&o->workers[w]->home.of_agents[agent], i);
	}
	return count;
}

static void agent_counters(const struct agent_answer *from, struct control_counter *at, struct control_counters *out)
{
	const Cssl__LinkResponse__Counters *c = from->response->counters;

	for (size_t i = 0; i < c->n_counter; i++) {
		const Cssl__LinkResponse__Counters__Counter *row = c->counter[i];
		agents_clean_text(row->name);
		agents_clean_text(row->help);
		at[i] = (struct control_counter){ row->name, row->help, row->gauge ? CONTROL_GAUGE : CONTROL_COUNTER,
			row->value };
	}
	for (size_t i = 0; i < c->n_certificate; i++)
		agents_clean_text(c->certificate[i]->name);
	out->count = c->n_counter;
	out->certificates = c->certificate;
	out->certificate_count = c->n_certificate;
}

static const char *fault_of(const struct agent_answer *a)
{
	return asked_fault(a, CSSL__LINK_RESPONSE__WHAT_COUNTERS);
}

struct counter_sets {
	const struct control_counters *at;
	size_t count;
};

static void tell_counters(struct agents_asked *a, const struct counter_sets *sets)
{
	control_answer_counters(a->request, sets->at, sets->count);
}

static void tell_certificates(struct agents_asked *a, const struct counter_sets *sets)
{
	control_answer_certificates(a->request, sets->at + 1, sets->count - 1);
}

static void tell_metrics_with(struct control_request *r, const struct control_status *s, void *ctx)
{
	const struct counter_sets *sets = ctx;

	control_answer_metrics(r, s, sets->at, sets->count);
}

static void tell_metrics(struct agents_asked *a, const struct counter_sets *sets)
{
	operations_tell_status(a->operations, a->request, tell_metrics_with, (void *)sets);
}

static void collect(struct agents_asked *a, void (*tell)(struct agents_asked *a, const struct counter_sets *sets))
{
	size_t rows = ragent_counter_count() + a->count * ownership_counter_count();

	for (unsigned i = 0; i < a->count; i++)
		rows += fault_of(&a->answers[i]) ? 0 : a->answers[i].response->counters->n_counter;
	struct control_counters *sets = calloc(a->count + 1, sizeof *sets);
	struct control_counter *at = calloc(rows, sizeof *at), *next = at;
	if (!sets || !at) {
		control_fail(a->request, CONTROL_INTERNAL, "out of memory");
	} else {
		sets[0] = (struct control_counters){ .at = next, .count = own_counters(a->operations, next) };
		next += sets[0].count;
		for (unsigned i = 0; i < a->count; i++) {
			const struct agent_answer *from = &a->answers[i];
			sets[i + 1] = (struct control_counters){
				.agent = asked_name(a, i), .at = next, .error = fault_of(from)
			};
			if (!sets[i + 1].error)
				agent_counters(from, next, &sets[i + 1]);
			next += sets[i + 1].count;
			sets[i + 1].seen = next;
			sets[i + 1].seen_count = counters_seen(a->operations, i, next);
			next += sets[i + 1].seen_count;
		}
		tell(a, &(struct counter_sets){ sets, a->count + 1 });
	}
	free(sets);
	free(at);
}

/* The same answers of the agents, told in several ways. */
#define TELL(ask, answer, tell)                                                                                        \
	static void answer(struct agents_asked *a)                                                                     \
	{                                                                                                              \
		collect(a, tell);                                                                                      \
	}                                                                                                              \
	void ask(void *ctx, struct control_request *r)                                                                 \
	{                                                                                                              \
		struct operations *o = ctx;                                                                            \
		counter_set(&o->counters.log_lines_lost, log_dropped());                                               \
		asked_start(asked_create(o, r, CSSL__LINK_REQUEST__WHAT_COUNTERS, answer));                            \
	}
TELL(operations_counters, answer_counters, tell_counters)
TELL(operations_metrics, answer_metrics, tell_metrics)
TELL(operations_certificates, answer_certificates, tell_certificates)

/* --- rotate, reload --- */

static void answer_nodes(struct agents_asked *a)
{
	struct control_node_result at[AGENTS_MAX + 1];

	for (unsigned i = 0; i < a->count; i++)
		at[i] = (struct control_node_result){ asked_name(a, i),
			a->answers[i].error[0] ? a->answers[i].error : NULL };
	if (a->own_error[0])
		at[a->count] = (struct control_node_result){ a->operations->shared->self->name, a->own_error };
	control_answer_nodes(a->request, at, a->count + (a->own_error[0] != '\0'));
}

void operations_rotate(void *ctx, struct control_request *r)
{
	asked_start(asked_create(ctx, r, CSSL__LINK_REQUEST__WHAT_ROTATE, answer_nodes));
}

void operations_reload(void *ctx, struct control_request *r)
{
	const struct operations *o = ctx;
	struct agents_asked *a = asked_create(ctx, r, CSSL__LINK_REQUEST__WHAT_RELOAD, answer_nodes);

	if (a && o->reload(o->owner, a->own_error, sizeof a->own_error) == 0)
		a->own_error[0] = '\0';
	asked_start(a);
}

/* --- revoke --- */

static int is_named(char *const *names, size_t count, const char *name)
{
	while (count > 0 && strcmp(names[count - 1], name) != 0)
		count--;
	return count > 0;
}

/* Agents that were asked before and stayed silent have not confirmed either. */
static void tell_revoked(struct agents_asked *a, const Cssl__LinkResponse__Revoked *v)
{
	const char **unconfirmed = calloc(v->n_unconfirmed + a->count, sizeof *unconfirmed);
	size_t count = 0;

	if (!unconfirmed) {
		control_fail(a->request, CONTROL_INTERNAL, "out of memory");
		return;
	}
	while (count < v->n_unconfirmed) {
		unconfirmed[count] = v->unconfirmed[count];
		count++;
	}
	for (unsigned i = 0; i < a->count; i++) {
		const char *name = asked_name(a, i);
		if (a->answers[i].asked == ASKED && !is_named(v->confirmed, v->n_confirmed, name) &&
			!is_named(v->unconfirmed, v->n_unconfirmed, name))
			unconfirmed[count++] = name;
	}
	const struct control_revoked revoked = {
		.sessions = v->sessions,
		.confirmed = (const char *const *)v->confirmed,
		.unconfirmed = unconfirmed,
		.confirmed_count = v->n_confirmed,
		.unconfirmed_count = count,
	};
	control_answer_revoke(a->request, &revoked);
	free(unconfirmed);
}

static void answer_revoke(struct agents_asked *a)
{
	const struct agent_answer *from = asked_last(a);
	const char *fault = asked_fault(from, CSSL__LINK_RESPONSE__WHAT_REVOKED);

	if (fault)
		control_fail(a->request, CONTROL_UNAVAILABLE, "%s", fault);
	else
		tell_revoked(a, from->response->revoked);
}

static ProtobufCBinaryData revoked_bytes(struct agents_asked *a, const uint8_t *bytes, size_t len)
{
	memcpy(a->id, bytes, len);
	return (ProtobufCBinaryData){ len, a->id };
}

static void fill_revoke(struct agents_asked *a, const struct control_revocation *what)
{
	Cssl__LinkRequest__Revoke *m = &a->revoke;

	switch (what->which) {
	case CONTROL_REVOKE_SESSION:
		m->which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_SESSION_ID;
		m->session_id = revoked_bytes(a, what->id, what->id_len);
		break;
	case CONTROL_REVOKE_FAMILY:
		m->which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_FAMILY_ID;
		m->family_id = revoked_bytes(a, what->id, FAMILY_ID_LEN);
		break;
	case CONTROL_REVOKE_SERVER_NAME:
		m->which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_SERVER_NAME;
		snprintf(a->name, sizeof a->name, "%s", what->server_name);
		m->server_name = a->name;
		break;
	case CONTROL_REVOKE_CLIENT:
		m->which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_CLIENT_ADDRESS;
		m->client_address = revoked_bytes(a, what->client.bytes, what->client.len);
		break;
	case CONTROL_REVOKE_ALL:
		m->which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_ALL;
		m->all = 1;
		break;
	case CONTROL_REVOKE_MATCHING:
		m->which_case = CSSL__LINK_REQUEST__REVOKE__WHICH_MATCHING;
		m->matching = &a->filter;
		asked_filter(a, &what->matching);
	}
}

void operations_revoke(void *ctx, const struct control_revocation *what, struct control_request *r)
{
	struct agents_asked *a = asked_create(ctx, r, CSSL__LINK_REQUEST__WHAT_REVOKE, answer_revoke);

	if (!a)
		return;
	fill_revoke(a, what);
	a->whom = ASK_ONE;
	asked_start(a);
}
