/* agents_asked.c: questions to workers and to agents. */
#include "ragent/control/agents_asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/log.h"

/* --- workers: parts travel through their mailboxes and back. Only the main loop counts them --- */

static void part_is_in(struct gather *g)
{
	if (--g->waiting > 0)
		return;
	g->done(g);
	free(g);
}

static void on_answer(struct worker *w, void *arg)
{
	struct gather_part *p = arg;

	part_is_in(p->gather);
}

void gather_answer(struct gather_part *p)
{
	/* fails only when the process ends or is out of memory: then the request waits until its client gives up */
	if (worker_post(p->gather->main, on_answer, p) < 0)
		log_event(LOG_WARNING, NULL, "control answer lost", "worker=%u effect=\"the request gets a time-out\"",
			worker_index(p->rw->home.worker));
}

static void on_ask(struct worker *w, void *arg)
{
	struct gather_part *p = arg;

	p->gather->ask(p);
}

struct gather *gather_start(struct worker *main, struct ragent_worker *const *workers, unsigned count,
	void (*ask)(struct gather_part *p), void (*done)(struct gather *g), void *ctx)
{
	struct gather *g = calloc(1, sizeof *g + count * sizeof g->parts[0]);

	if (!g)
		return NULL;
	*g = (struct gather){
		.main = main, .ask = ask, .done = done, .ctx = ctx, .count = count, .waiting = count + 1
	};
	for (unsigned i = 0; i < count; i++) {
		g->parts[i] = (struct gather_part){ .gather = g, .rw = workers[i] };
		if (worker_post(workers[i]->home.worker, on_ask, &g->parts[i]) < 0)
			g->waiting--;
	}
	part_is_in(g);
	return g;
}

/* --- agents: one object carries a question from the main loop to the first worker and to agents, and the answers
 * back --- */

static void asked_free(struct agents_asked *a)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->answers[i].response)
			cssl__link_response__free_unpacked(a->answers[i].response, NULL);
	free(a);
}

static ProtobufCBinaryData copy_of(uint8_t *to, const uint8_t *from, size_t len)
{
	if (from)
		memcpy(to, from, len);
	return (ProtobufCBinaryData){ from ? len : 0, to };
}

void asked_filter(struct agents_asked *a, const struct control_session_query *q)
{
	Cssl__SessionFilter *f = &a->filter;

	a->client = q->client;
	snprintf(a->name, sizeof a->name, "%s", q->server_name ? q->server_name : "");
	f->server_name = a->name;
	f->client_address = (ProtobufCBinaryData){ a->client.len, a->client.bytes };
	f->client_prefix = a->client.prefix;
	f->protocol_version = q->protocol_version;
	f->cipher_suite = q->cipher_suite;
	f->min_age_s = q->min_age_s;
	f->max_age_s = q->max_age_s;
	f->family_id = copy_of(a->family_id, q->family_id, FAMILY_ID_LEN);
	f->client_certificate = copy_of(a->client_certificate, q->client_certificate, CONTROL_CERTIFICATE_LEN);
}

ProtobufCBinaryData asked_session(struct agents_asked *a, const uint8_t id[static SESSION_ID_LEN])
{
	return copy_of(a->session_id, id, SESSION_ID_LEN);
}

/* --- on the first worker --- */

static void one_is_in(struct agents_asked *a)
{
	if (--a->waiting == 0)
		gather_answer(a->part);
}

static void on_response(void *ctx, int agent, Cssl__LinkResponse *response, const char *error);

/* Ask the next agent, if there is one. */
static void ask_next(struct agents_asked *a)
{
	struct ragent_worker *rw = a->part->rw;

	while (a->next < a->count) {
		unsigned agent = (a->first + a->next++) % a->count;
		struct link *l = links_any_open(&rw->home.links, (int)agent);
		if (!l) {
			snprintf(a->answers[agent].error, sizeof a->answers[agent].error, "not up");
			if (a->whom == ASK_THAT)
				return;
			continue;
		}
		a->answers[agent].asked = ASKED;
		a->waiting++;
		requests_send(&rw->requests, l, &a->message, on_response, a);
		return;
	}
}

static void on_response(void *ctx, int agent, Cssl__LinkResponse *response, const char *error)
{
	struct agents_asked *a = ctx;
	struct agent_answer *answer = &a->answers[agent];

	answer->response = response;
	if (!response && a->whom == ASK_ONE)
		ask_next(a);
	if (!error && response->error && response->error[0])
		error = response->error;
	snprintf(answer->error, sizeof answer->error, "%s", error ? error : "");
	one_is_in(a);
}

static void ask_agents(struct gather_part *p)
{
	struct agents_asked *a = p->gather->ctx;

	a->part = p;
	p->result = a;
	a->waiting = 1;
	do
		ask_next(a);
	while (a->whom == ASK_ALL && a->next < a->count);
	one_is_in(a);
}

/* --- on the main loop --- */

static void on_all_in(struct gather *g)
{
	struct agents_asked *a = g->ctx;

	if (g->parts[0].result)
		a->answer(a);
	else
		request_fail(a->request, MHD_HTTP_SERVICE_UNAVAILABLE, "this process is stopping");
	asked_free(a);
}

/* The number of a case is that of its field, and all that are messages have their pointer in one place. */
static void init_message(struct agents_asked *a, Cssl__LinkRequest__WhatCase what)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(&cssl__link_request__descriptor, what);

	cssl__link_request__init(&a->message);
	a->message.what_case = what;
	if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
		protobuf_c_message_init(field->descriptor, &a->counters);
		a->message.counters = &a->counters;
	}
}

struct agents_asked *asked_create(struct operations *o, struct control_request *r, Cssl__LinkRequest__WhatCase what,
	void (*answer)(struct agents_asked *a))
{
	unsigned count = agents_count(o->shared->agents);
	struct agents_asked *a = calloc(1, sizeof *a + count * sizeof a->answers[0]);

	if (!a) {
		request_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
		return NULL;
	}
	a->operations = o;
	a->request = r;
	a->answer = answer;
	a->count = count;
	init_message(a, what);
	cssl__session_filter__init(&a->filter);
	return a;
}

void asked_start(struct agents_asked *a)
{
	const struct operations *o = a ? a->operations : NULL;

	if (!a || gather_start(o->main, o->workers, 1, ask_agents, on_all_in, a))
		return;
	request_fail(a->request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	asked_free(a);
}

const char *asked_name(const struct agents_asked *a, unsigned agent)
{
	return agents_name(a->operations->shared->agents, (int)agent);
}

const char *asked_fault(const struct agent_answer *a, Cssl__LinkResponse__WhatCase expected)
{
	if (!a || a->error[0])
		return a ? a->error : "no agent answered";
	return a->response && a->response->what_case == expected ? NULL : "a strange answer";
}

const struct agent_answer *asked_last(const struct agents_asked *a)
{
	const struct agent_answer *from = NULL;

	for (unsigned i = 0; i < a->count; i++)
		if (a->answers[(a->first + i) % a->count].response)
			from = &a->answers[(a->first + i) % a->count];
	return from;
}
