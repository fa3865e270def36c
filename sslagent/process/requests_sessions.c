/* requests_sessions.c: the main loop makes the listing, and the worker's thread sends the answer. */
#include "sslagent/process/requests_sessions.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/frame.h"
#include "sslagent/process/agent.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/process/requests.h"
#include "sslagent/sessions/session_listing.h"

#define LIMIT_MAX 1000u
#define BYTES_MAX (FRAME_PAYLOAD_MAX - 8192u) /* the last row may be long */

struct question {
	struct agent_worker *home;
	uint64_t link_number;
	Cssl__LinkRequest *request;
	struct session_listing *listing; /* NULL: the whole store is counted at once, or @error has the reason */
	int error;
};

static void question_destroy(struct question *q)
{
	session_listing_destroy(q->listing);
	cssl__link_request__free_unpacked(q->request, NULL);
	free(q);
}

/* --- from the wire --- */

static int take_query(const Cssl__LinkRequest *m, struct session_query *out)
{
	const Cssl__LinkRequest__Sessions *s = m->sessions;

	if (m->what_case == CSSL__LINK_REQUEST__WHAT_SESSION_COUNT) {
		out->filter = m->session_count->filter;
	} else {
		if (s->limit < 1 || s->limit > LIMIT_MAX || (s->after.len != 0 && s->after.len != SESSION_ID_LEN))
			return CSSL_E_RANGE;
		out->limit = s->limit;
		out->bytes_max = BYTES_MAX;
		out->after = s->after.len ? s->after.data : NULL;
		out->filter = s->filter;
	}
	return out->filter ? session_filter_check(out->filter) : 0;
}

/* --- to the wire --- */

static void put_session(Cssl__Session *out, const struct listed_session *row)
{
	const struct session_facts *f = &row->facts;

	cssl__session__init(out);
	out->session_id = bytes_of(f->session_id, f->session_id_len);
	out->family_id = bytes_of(f->family_id, FAMILY_ID_LEN);
	out->server_name = bytes_of(f->server_name, strlen(f->server_name));
	out->alpn = bytes_of(f->alpn, strlen(f->alpn));
	out->client_address = bytes_of(f->client.bytes, f->client.len);
	out->listener = (char *)f->listener;
	out->origin = (char *)f->origin;
	out->protocol_version = f->protocol_version;
	out->cipher_suite = f->cipher_suite;
	out->age_s = row->age_s;
	out->family_age_s = f->family_age_s;
	out->expires_s = row->expires_s;
	out->hits = row->hits;
	out->client_certificate = bytes_of(row->client_certificate, row->client_certificate_len);
}

static void respond_page(struct question *q, Cssl__LinkResponse *response)
{
	Cssl__LinkResponse__Sessions page = CSSL__LINK_RESPONSE__SESSIONS__INIT;
	const struct session_listing *l = q->listing;
	Cssl__Session *at = calloc(l->row_count + 1, sizeof *at);

	page.n_session = l->row_count;
	page.session = calloc(page.n_session + 1, sizeof *page.session);
	if (at && page.session) {
		for (size_t i = 0; i < page.n_session; i++) {
			put_session(&at[i], &l->rows[i]);
			page.session[i] = &at[i];
		}
		if (l->more == LISTING_GOES_ON)
			page.next = bytes_of(l->rows[page.n_session - 1].facts.session_id, SESSION_ID_LEN);
		response->what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
		response->sessions = &page;
	} else {
		response->error = (char *)cssl_strerror(CSSL_E_NO_MEMORY);
	}
	agent_respond(q->home, q->link_number, response);
	free(page.session);
	free(at);
}

static void respond_count(struct question *q, Cssl__LinkResponse *response)
{
	Cssl__LinkResponse__SessionCount count = CSSL__LINK_RESPONSE__SESSION_COUNT__INIT;

	count.sessions = count.counted = cluster_session_count(q->home->connections.cluster, &count.bytes);
	if (q->listing) {
		count.sessions = q->listing->count;
		count.counted = q->listing->counted;
	}
	response->what_case = CSSL__LINK_RESPONSE__WHAT_SESSION_COUNT;
	response->session_count = &count;
	agent_respond(q->home, q->link_number, response);
}

static void respond(struct worker *w, void *arg)
{
	struct question *q = arg;
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;

	response.token = q->request->token;
	if (q->error < 0) {
		response.error = (char *)cssl_strerror(q->error);
		agent_respond(q->home, q->link_number, &response);
	} else if (q->request->what_case == CSSL__LINK_REQUEST__WHAT_SESSIONS) {
		respond_page(q, &response);
	} else {
		respond_count(q, &response);
	}
	question_destroy(q);
}

/* --- the listing --- */

static void on_listed(struct session_listing *l, int error)
{
	struct question *q = l->ctx;

	q->error = error;
	if (agent_post_home(q->home, respond, q) < 0)
		question_destroy(q);
}

static void on_main(struct worker *w, void *arg)
{
	struct question *q = arg;

	q->listing->done = on_listed;
	q->listing->ctx = q;
	listings_add(agent_listings(q->home->agent), q->listing);
}

void agent_request_sessions(struct agent_worker *home, uint64_t link_number, Cssl__LinkRequest *request)
{
	struct session_query query = { .limit = 0 };
	struct question *q = calloc(1, sizeof *q);

	if (!q) {
		cssl__link_request__free_unpacked(request, NULL);
		return;
	}
	*q = (struct question){ .home = home, .link_number = link_number, .request = request };
	q->error = take_query(request, &query);
	const int all = request->what_case == CSSL__LINK_REQUEST__WHAT_SESSION_COUNT &&
			!request->session_count->filter && !cluster_sessions_are_spread(home->connections.cluster);
	if (q->error == 0 && !all) {
		q->listing = cluster_list_sessions(home->connections.cluster, &query);
		q->error = q->listing ? 0 : CSSL_E_NO_MEMORY;
	}
	if (q->error < 0 || all)
		respond(home->worker, q);
	else if (worker_post(agent_main(home->agent), on_main, q) < 0)
		question_destroy(q);
}
