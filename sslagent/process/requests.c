/* requests.c: RAgent's requests to the agent as a whole (REQUEST on stream 0): counters, revocation, rotation, reload,
 * sessions. Work for the cluster runs on the main loop, which walks the store of sessions in steps. An answer is packed
 * where it is made, and goes to the worker of the link that asked.
 */
#include <stdlib.h>
#include <string.h>

#include "net/report/error_text.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/frame.h"
#include "proto/scratch.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/process/agent_internal.h"
#include "sslagent/sessions/session_listing.h"
#include "sslagent/tls/tls_certificate.h"
#include "sslagent/tls/tls_contexts.h"

#define LIMIT_MAX 1000u                       /* of a page of sessions */
#define BYTES_MAX (FRAME_PAYLOAD_MAX - 8192u) /* the last row may be long */

struct asked {
	struct agent_worker *home;
	uint64_t link_number;
	Cssl__LinkRequest *request;
	char ragent[NAME_MAX_LEN + 1];   /* that asks */
	uint64_t boot_id;                /* of it */
	struct session_listing *listing; /* of sessions; NULL: none, or the whole store is counted at once */
};

static void asked_destroy(struct asked *q)
{
	session_listing_destroy(q->listing);
	cssl__link_request__free_unpacked(q->request, NULL);
	free(q);
}

/* --- answers --- */

struct answer {
	struct agent_worker *home;
	uint64_t link_number;
	size_t len;
	uint8_t bytes[];
};

static void request_on_answer(struct worker *w, void *arg)
{
	struct answer *a = arg;
	struct carrier_link *l = carrier_home_find_link(&a->home->carriers, a->link_number);

	if (l)
		carrier_link_respond(l, a->bytes, a->len);
	free(a);
}

/* From any thread. Without memory RAgent waits in vain; the worker of the link may have ended. */
static void request_respond(const struct asked *q, Cssl__LinkResponse *response)
{
	response->token = q->request->token;
	struct answer *a = malloc(sizeof *a + cssl__link_response__get_packed_size(response));
	if (a) {
		a->home = q->home;
		a->link_number = q->link_number;
		a->len = cssl__link_response__pack(response, a->bytes);
	}
	if (!a || !q->home->worker || worker_post(q->home->worker, request_on_answer, a) < 0)
		free(a);
}

/* 0: done, and there is nothing to tell. */
static void respond_plainly(const struct asked *q, int error)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;

	if (error < 0)
		response.error = (char *)error_text(error);
	request_respond(q, &response);
}

/* --- answered by the worker itself --- */

struct counter_list {
	Cssl__LinkResponse__Counters__Counter rows[AGENT_COUNTER_COUNT];
	Cssl__LinkResponse__Counters__Counter *pointers[AGENT_COUNTER_COUNT];
};

static void list_counters(struct agent_counters *c, struct counter_list *list)
{
	const struct counter_row *from = agent_counter_rows();

	for (unsigned i = 0; i < AGENT_COUNTER_COUNT; i++) {
		Cssl__LinkResponse__Counters__Counter *row = &list->rows[i];
		cssl__link_response__counters__counter__init(row);
		row->name = (char *)from[i].name;
		row->help = (char *)from[i].help;
		row->gauge = from[i].kind == COUNTER_GAUGE;
		row->value = agent_counters_sum(c, (enum agent_counter)i);
		list->pointers[i] = row;
	}
}

#define CERTIFICATES_ROOM 24576u /* of a frame that has the counters, too */
#define HOSTS_MAX         8u

typedef Cssl__LinkResponse__Counters__Certificate certificate_row;

static int ends_before(const void *a, const void *b)
{
	const int64_t l = (*(certificate_row *const *)a)->not_after_s, r = (*(certificate_row *const *)b)->not_after_s;

	return l < r ? -1 : l > r;
}

/* Returns the memory of the rows. Without memory, nothing is listed. */
static certificate_row *list_certificates(const struct tls_contexts *t, Cssl__LinkResponse__Counters *out)
{
	size_t count, len = 0;
	const struct tls_certificate *from = tls_contexts_certificates(t, &count);
	certificate_row *rows = calloc(count + 1, sizeof *rows), **sorted = calloc(count + 1, sizeof *sorted);

	for (size_t i = 0; rows && sorted && i < count; i++) {
		cssl__link_response__counters__certificate__init(&rows[i]);
		rows[i].name = from[i].from->name;
		rows[i].file = from[i].from->chain;
		rows[i].n_host = from[i].name_count < HOSTS_MAX ? from[i].name_count : HOSTS_MAX;
		rows[i].host = from[i].names;
		rows[i].issuer = from[i].issuer;
		rows[i].not_after_s = from[i].not_after_s;
		sorted[i] = &rows[i];
	}
	out->certificate = sorted;
	if (!rows || !sorted)
		return rows;
	qsort(sorted, count, sizeof *sorted, ends_before);
	while (out->n_certificate < count && len < CERTIFICATES_ROOM)
		len += 8 + protobuf_c_message_get_packed_size(&sorted[out->n_certificate++]->base);
	return rows;
}

static void answer_counters(const struct asked *q)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__Counters counters = CSSL__LINK_RESPONSE__COUNTERS__INIT;
	struct counter_list list;

	list_counters(q->home->agent->counters, &list);
	counters.n_counter = AGENT_COUNTER_COUNT;
	counters.counter = list.pointers;
	response.what_case = CSSL__LINK_RESPONSE__WHAT_COUNTERS;
	response.counters = &counters;
	certificate_row *rows = list_certificates(q->home->connections.contexts, &counters);
	request_respond(q, &response);
	free(rows);
	free(counters.certificate);
}

static void answer_log_level(const struct asked *q)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__LogLevel levels = CSSL__LINK_RESPONSE__LOG_LEVEL__INIT;
	const char *wanted = q->request->log_level->level;

	if (wanted[0] && log_level_change(wanted) < 0) {
		respond_plainly(q, CSSL_E_RANGE);
		return;
	}
	levels.level = (char *)log_level_name(log_level_now());
	levels.configured = (char *)log_level_name(log_level_configured());
	response.what_case = CSSL__LINK_RESPONSE__WHAT_LOG_LEVEL;
	response.log_level = &levels;
	request_respond(q, &response);
}

/* --- sessions --- */

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

static void respond_page(const struct asked *q)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
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
		response.what_case = CSSL__LINK_RESPONSE__WHAT_SESSIONS;
		response.sessions = &page;
		request_respond(q, &response);
	} else {
		respond_plainly(q, CSSL_E_NO_MEMORY);
	}
	free(page.session);
	free(at);
}

static void respond_count(const struct asked *q)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__SessionCount count = CSSL__LINK_RESPONSE__SESSION_COUNT__INIT;

	cluster_count_sessions(q->home->connections.cluster, &count.sessions, &count.bytes);
	count.counted = count.sessions;
	if (q->listing) {
		count.sessions = q->listing->count;
		count.counted = q->listing->counted;
	}
	response.what_case = CSSL__LINK_RESPONSE__WHAT_SESSION_COUNT;
	response.session_count = &count;
	request_respond(q, &response);
}

static void on_listed(struct asked *q, int error)
{
	if (error < 0)
		respond_plainly(q, error);
	else if (q->request->what_case == CSSL__LINK_REQUEST__WHAT_SESSIONS)
		respond_page(q);
	else
		respond_count(q);
	asked_destroy(q);
}

static void on_listing(struct session_listing *l, int error)
{
	on_listed(l->ctx, error);
}

/* The whole store is counted at once. */
static void list_sessions(struct asked *q)
{
	struct cluster *cluster = q->home->agent->cluster;
	struct session_query query = { .limit = 0 };
	int r = take_query(q->request, &query);
	uint64_t here;

	if (r == 0 && q->request->what_case == CSSL__LINK_REQUEST__WHAT_SESSION_COUNT &&
		!q->request->session_count->filter && cluster_count_sessions(cluster, &here, NULL)) {
		on_listed(q, 0);
		return;
	}
	q->listing = r == 0 ? cluster_list_sessions(cluster, &query) : NULL;
	if (!q->listing) {
		on_listed(q, r < 0 ? r : CSSL_E_NO_MEMORY);
		return;
	}
	q->listing->done = on_listing;
	q->listing->ctx = q;
	listings_add(q->home->agent->listings, q->listing);
}

/* --- revocation --- */

static void request_on_revoked(void *ctx, struct revoke_result *r)
{
	struct asked *q = ctx;
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__Revoked revoked = CSSL__LINK_RESPONSE__REVOKED__INIT;

	if (!r) {
		respond_plainly(q, CSSL_E_NO_MEMORY);
		asked_destroy(q);
		return;
	}
	revoked.sessions = r->sessions;
	revoked.n_confirmed = r->confirmed_count;
	revoked.confirmed = (char **)r->confirmed;
	revoked.n_unconfirmed = r->unconfirmed_count;
	revoked.unconfirmed = (char **)r->unconfirmed;
	response.what_case = CSSL__LINK_RESPONSE__WHAT_REVOKED;
	response.revoked = &revoked;
	request_respond(q, &response);
	free(r);
	asked_destroy(q);
}

static void revoke_sessions(struct asked *q)
{
	int r = tombstones_check(q->request->revoke);

	if (r == 0) {
		cluster_revoke(q->home->agent->cluster, q->request->revoke, request_on_revoked, q);
		return;
	}
	respond_plainly(q, r);
	asked_destroy(q);
}

/* --- requests --- */

static void request_on_main(struct worker *w, void *arg)
{
	struct asked *q = arg;
	struct agent *a = q->home->agent;
	int r = 0;

	switch (q->request->what_case) {
	case CSSL__LINK_REQUEST__WHAT_SESSION_COUNT:
	case CSSL__LINK_REQUEST__WHAT_SESSIONS: list_sessions(q); return;
	case CSSL__LINK_REQUEST__WHAT_REVOKE: revoke_sessions(q); return;
	case CSSL__LINK_REQUEST__WHAT_ROTATE: cluster_rotate(a->cluster); break;
	case CSSL__LINK_REQUEST__WHAT_RELOAD: r = agent_reload(a); break;
	case CSSL__LINK_REQUEST__WHAT_BLOCKED: r = agent_block(a, q->ragent, q->boot_id, &q->request->blocked); break;
	default: r = CSSL_E_TYPE; break;
	}
	respond_plainly(q, r);
	asked_destroy(q);
}

void agent_request(void *process, uint64_t link_number, Cssl__LinkRequest *request)
{
	struct agent_worker *home = process;
	struct asked *q = calloc(1, sizeof *q);

	if (!q) {
		cssl__link_request__free_unpacked(request, NULL);
		return;
	}
	*q = (struct asked){ .home = home, .link_number = link_number, .request = request };
	if (request->what_case == CSSL__LINK_REQUEST__WHAT_COUNTERS) {
		answer_counters(q);
	} else if (request->what_case == CSSL__LINK_REQUEST__WHAT_LOG_LEVEL) {
		answer_log_level(q);
	} else {
		snprintf(q->ragent, sizeof q->ragent, "%s",
			carrier_link_ragent(carrier_home_find_link(&home->carriers, link_number), &q->boot_id));
		if (worker_post(home->agent->main, request_on_main, q) == 0)
			return;
	}
	asked_destroy(q);
}
