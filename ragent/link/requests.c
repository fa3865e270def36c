/* requests.c: a list of waiting requests; it is always short. */
#include "ragent/link/requests.h"

#include <stdlib.h>

#include "net/container_of.h"
#include "net/timer.h"

struct request {
	struct request *next;
	struct requests *home;
	struct link *link;
	uint64_t token;
	struct deadline deadline;
	request_done *done;
	void *ctx;
};

static void finish(struct request *q, Cssl__LinkResponse *response, const char *error)
{
	struct request **at = &q->home->pending;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	deadline_cancel(&q->deadline);
	q->done(q->ctx, link_agent(q->link), response, error);
	free(q);
}

static void on_deadline(struct deadline *d)
{
	finish(container_of(d, struct request, deadline), NULL, "no answer in time");
}

void requests_send(struct requests *r, struct link *l, Cssl__LinkRequest *message, request_done *done, void *ctx)
{
	struct request *q = calloc(1, sizeof *q);

	if (!q) {
		done(ctx, link_agent(l), NULL, "out of memory");
		return;
	}
	*q = (struct request){
		.next = r->pending, .home = r, .link = l, .token = ++r->next_token, .done = done, .ctx = ctx
	};
	q->deadline.fn = on_deadline;
	r->pending = q;
	message->token = q->token;
	if (link_send_message(l, 0, FRAME_REQUEST, &message->base) < 0) {
		finish(q, NULL, "its link is lost");
		return;
	}
	deadline_set(r->worker, &q->deadline, REQUEST_TIMEOUT_MS);
}

void requests_answered(struct requests *r, struct link *l, Cssl__LinkResponse *response)
{
	struct request *q = r->pending;

	while (q && (q->token != response->token || q->link != l))
		q = q->next;
	if (q)
		finish(q, response, NULL);
	else
		cssl__link_response__free_unpacked(response, NULL);
}

void requests_end(struct requests *r, const char *error)
{
	while (r->pending)
		finish(r->pending, NULL, error);
}

void requests_link_lost(struct requests *r, const struct link *l)
{
	struct request *next;

	for (struct request *q = r->pending; q; q = next) {
		next = q->next;
		if (q->link == l)
			finish(q, NULL, "its link is lost");
	}
}
