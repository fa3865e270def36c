/* agents_asked.c: one object carries a question from the main loop to the first worker and to agents, and the answers
 * back. */
#include "ragent/control/operations/agents_asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ragent/control/http/control_exchange.h"

static void asked_free(struct agents_asked *a)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->answers[i].response)
			cssl__link_response__free_unpacked(a->answers[i].response, NULL);
	if (a->message)
		cssl__link_request__free_unpacked(a->message, NULL);
	free(a);
}

/* --- on the first worker --- */

static void asked_count(struct agents_asked *a)
{
	if (--a->waiting == 0)
		gather_answer(a->part);
}

static void on_response(void *ctx, int agent, Cssl__LinkResponse *response, const char *error);

/* Ask the next agent, if there is one. */
static void asked_next(struct agents_asked *a)
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
		requests_send(&rw->requests, l, a->message, on_response, a);
		return;
	}
}

static void on_response(void *ctx, int agent, Cssl__LinkResponse *response, const char *error)
{
	struct agents_asked *a = ctx;
	struct agent_answer *answer = &a->answers[agent];

	answer->response = response;
	if (!response && a->whom == ASK_ONE)
		asked_next(a);
	if (!error && response->error && response->error[0])
		error = response->error;
	snprintf(answer->error, sizeof answer->error, "%s", error ? error : "");
	asked_count(a);
}

static void asked_begin(struct gather_part *p)
{
	struct agents_asked *a = p->gather->ctx;

	a->part = p;
	p->result = a;
	a->waiting = 1;
	do
		asked_next(a);
	while (a->whom == ASK_ALL && a->next < a->count);
	asked_count(a);
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

static Cssl__LinkRequest *asked_copy_of(const Cssl__LinkRequest *message)
{
	uint8_t *bytes = malloc(cssl__link_request__get_packed_size(message) + 1);
	Cssl__LinkRequest *copy =
		bytes ? cssl__link_request__unpack(NULL, cssl__link_request__pack(message, bytes), bytes) : NULL;

	free(bytes);
	return copy;
}

struct agents_asked *asked_create(struct operations *o, struct control_request *r, const Cssl__LinkRequest *message,
	void (*answer)(struct agents_asked *a))
{
	unsigned count = agents_count(o->shared->agents);
	struct agents_asked *a = calloc(1, sizeof *a + count * sizeof a->answers[0]);

	if (!a || !(a->message = asked_copy_of(message))) {
		request_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
		free(a);
		return NULL;
	}
	a->operations = o;
	a->request = r;
	a->answer = answer;
	a->count = count;
	return a;
}

/* All parts that are messages have their pointer in one place, and those without content are the same bytes. */
struct agents_asked *asked_about(struct operations *o, struct control_request *r, Cssl__LinkRequest__WhatCase what,
	const ProtobufCMessage *part, void (*answer)(struct agents_asked *a))
{
	Cssl__LinkRequest__Counters nothing = CSSL__LINK_REQUEST__COUNTERS__INIT;
	Cssl__LinkRequest message = CSSL__LINK_REQUEST__INIT;

	message.what_case = what;
	message.counters = part ? (Cssl__LinkRequest__Counters *)part : &nothing;
	return asked_create(o, r, &message, answer);
}

void asked_start(struct agents_asked *a)
{
	const struct operations *o = a ? a->operations : NULL;

	if (!a || gather_start(o->main, o->workers, 1, asked_begin, on_all_in, a))
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
