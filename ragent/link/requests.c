/* requests.c: a list of waiting requests; it is always short. */
#include "ragent/link/requests.h"

#include <stdlib.h>

#include "net/loop/wheel.h"
#include "net/memory/container_of.h"
#include "ragent/link/link.h"

struct request {
	LIST_ENTRY(request) entry;
	struct link *link;
	uint64_t token;
	struct deadline deadline;
	request_done *done;
	void *ctx;
};

static void request_finish(struct request *q, Cssl__LinkResponse *response, const char *error)
{
	LIST_REMOVE(q, entry);
	deadline_cancel(&q->deadline);
	q->done(q->ctx, link_agent(q->link), response, error);
	free(q);
}

static void request_on_deadline(struct deadline *d)
{
	request_finish(container_of(d, struct request, deadline), NULL, "no answer in time");
}

void requests_send(struct requests *r, struct link *l, Cssl__LinkRequest *message, request_done *done, void *ctx)
{
	struct request *q = calloc(1, sizeof *q);

	if (!q) {
		done(ctx, link_agent(l), NULL, "out of memory");
		return;
	}
	*q = (struct request){
		.link = l, .token = ++r->next_token, .deadline.fn = request_on_deadline, .done = done, .ctx = ctx
	};
	LIST_INSERT_HEAD(&r->pending, q, entry);
	message->token = q->token;
	if (link_send_message(l, 0, FRAME_REQUEST, &message->base) < 0) {
		request_finish(q, NULL, "its link is lost");
		return;
	}
	deadline_set(r->worker, &q->deadline, REQUEST_TIMEOUT_MS);
}

void requests_answered(struct requests *r, struct link *l, Cssl__LinkResponse *response)
{
	struct request *q = LIST_FIRST(&r->pending);

	while (q && (q->token != response->token || q->link != l))
		q = LIST_NEXT(q, entry);
	if (q)
		request_finish(q, response, NULL);
	else
		cssl__link_response__free_unpacked(response, NULL);
}

void requests_end(struct requests *r, const char *error)
{
	while (!LIST_EMPTY(&r->pending))
		request_finish(LIST_FIRST(&r->pending), NULL, error);
}

void requests_link_lost(struct requests *r, const struct link *l)
{
	struct request *next;

	for (struct request *q = LIST_FIRST(&r->pending); q; q = next) {
		next = LIST_NEXT(q, entry);
		if (q->link == l)
			request_finish(q, NULL, "its link is lost");
	}
}
