/* requests.c: one object carries a request from a worker to the main loop and back. */
#include <stdlib.h>
#include <string.h>

#include "net/error_text.h"
#include "net/log.h"
#include "proto/error.h"
#include "sslagent/process/agent.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/counters.h"
#include "sslagent/carrier/link.h"
#include "sslagent/process/requests.h"
#include "sslagent/process/requests_sessions.h"
#include "sslagent/tls/tls_certificate.h"
#include "sslagent/tls/tls_contexts.h"

struct asked {
	struct agent_worker *home;
	uint64_t link_number;
	Cssl__LinkRequest *request;
	char ragent[NAME_MAX_LEN + 1]; /* that asks */
	uint64_t boot_id;              /* of it */
	/* the answer */
	int error;
	struct revoke_result *revoked;
};

static void asked_destroy(struct asked *q)
{
	free(q->revoked);
	cssl__link_request__free_unpacked(q->request, NULL);
	free(q);
}

void agent_respond(struct agent_worker *home, uint64_t link_number, Cssl__LinkResponse *response)
{
	struct link *l = carrier_home_find_link(&home->carriers, link_number);

	if (l)
		link_respond(l, response);
}

int agent_post_home(struct agent_worker *home, void (*fn)(struct worker *w, void *arg), void *arg)
{
	return home->worker ? worker_post(home->worker, fn, arg) : CSSL_E_STATE;
}

/* --- answered by the worker itself --- */

struct counter_list {
	Cssl__LinkResponse__Counters__Counter rows[AGENT_COUNTER_COUNT];
	Cssl__LinkResponse__Counters__Counter *pointers[AGENT_COUNTER_COUNT];
	size_t count;
};

static void add_counter(void *ctx, const struct counter_row *from, uint64_t value)
{
	struct counter_list *list = ctx;
	Cssl__LinkResponse__Counters__Counter *row = &list->rows[list->count];

	cssl__link_response__counters__counter__init(row);
	row->name = (char *)from->name;
	row->help = (char *)from->help;
	row->gauge = from->kind == COUNTER_GAUGE;
	row->value = value;
	list->pointers[list->count++] = row;
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

static void answer_counters(struct agent_worker *home, uint64_t link_number, uint64_t token)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__Counters counters = CSSL__LINK_RESPONSE__COUNTERS__INIT;
	struct counter_list list = { .count = 0 };

	agent_counters(home->agent, add_counter, &list);
	counters.n_counter = list.count;
	counters.counter = list.pointers;
	response.token = token;
	response.what_case = CSSL__LINK_RESPONSE__WHAT_COUNTERS;
	response.counters = &counters;
	certificate_row *rows = list_certificates(home->connections.contexts, &counters);
	agent_respond(home, link_number, &response);
	free(rows);
	free(counters.certificate);
}

static void answer_log_level(struct agent_worker *home, uint64_t link_number, const Cssl__LinkRequest *request)
{
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__LogLevel levels = CSSL__LINK_RESPONSE__LOG_LEVEL__INIT;

	response.token = request->token;
	if (request->log_level->level[0] && log_level_change(request->log_level->level) < 0) {
		response.error = (char *)cssl_strerror(CSSL_E_RANGE);
	} else {
		levels.level = (char *)log_level_name(log_level_now());
		levels.configured = (char *)log_level_name(log_level_configured());
		response.what_case = CSSL__LINK_RESPONSE__WHAT_LOG_LEVEL;
		response.log_level = &levels;
	}
	agent_respond(home, link_number, &response);
}

/* --- answered by the main loop --- */

static void answer(struct worker *w, void *arg)
{
	struct asked *q = arg;
	Cssl__LinkResponse response = CSSL__LINK_RESPONSE__INIT;
	Cssl__LinkResponse__Revoked revoked = CSSL__LINK_RESPONSE__REVOKED__INIT;

	response.token = q->request->token;
	if (q->error < 0)
		response.error = (char *)error_text(q->error);
	if (q->request->what_case == CSSL__LINK_REQUEST__WHAT_REVOKE && q->error == 0) {
		revoked.sessions = q->revoked->sessions;
		revoked.n_confirmed = q->revoked->confirmed_count;
		revoked.confirmed = (char **)q->revoked->confirmed;
		revoked.n_unconfirmed = q->revoked->unconfirmed_count;
		revoked.unconfirmed = (char **)q->revoked->unconfirmed;
		response.what_case = CSSL__LINK_RESPONSE__WHAT_REVOKED;
		response.revoked = &revoked;
	}
	agent_respond(q->home, q->link_number, &response);
	asked_destroy(q);
}

static void back_to_worker(struct asked *q)
{
	if (agent_post_home(q->home, answer, q) < 0)
		asked_destroy(q);
}

static void on_revoked(void *ctx, struct revoke_result *r)
{
	struct asked *q = ctx;

	q->revoked = r;
	q->error = r ? 0 : CSSL_E_NO_MEMORY;
	back_to_worker(q);
}

static void on_main(struct worker *w, void *arg)
{
	struct asked *q = arg;
	struct agent *a = q->home->agent;

	switch (q->request->what_case) {
	case CSSL__LINK_REQUEST__WHAT_REVOKE:
		q->error = revoke_check(q->request->revoke);
		if (q->error == 0) {
			cluster_revoke(agent_cluster(a), q->request->revoke, on_revoked, q);
			return;
		}
		break;
	case CSSL__LINK_REQUEST__WHAT_ROTATE: cluster_rotate(agent_cluster(a)); break;
	case CSSL__LINK_REQUEST__WHAT_RELOAD: q->error = agent_reload(a); break;
	case CSSL__LINK_REQUEST__WHAT_BLOCKED:
		q->error = agent_block(a, q->ragent, q->boot_id, &q->request->blocked);
		break;
	default: q->error = CSSL_E_TYPE; break;
	}
	back_to_worker(q);
}

void agent_request(struct agent_worker *home, uint64_t link_number, Cssl__LinkRequest *request)
{
	uint64_t token = request->token;
	struct asked *q;

	switch (request->what_case) {
	case CSSL__LINK_REQUEST__WHAT_COUNTERS:
		answer_counters(home, link_number, token);
		cssl__link_request__free_unpacked(request, NULL);
		return;
	case CSSL__LINK_REQUEST__WHAT_LOG_LEVEL:
		answer_log_level(home, link_number, request);
		cssl__link_request__free_unpacked(request, NULL);
		return;
	case CSSL__LINK_REQUEST__WHAT_SESSION_COUNT:
	case CSSL__LINK_REQUEST__WHAT_SESSIONS: agent_request_sessions(home, link_number, request); return;
	default: break;
	}
	q = calloc(1, sizeof *q);
	if (!q) {
		cssl__link_request__free_unpacked(request, NULL);
		return;
	}
	*q = (struct asked){ .home = home, .link_number = link_number, .request = request };
	snprintf(q->ragent, sizeof q->ragent, "%s",
		link_ragent(carrier_home_find_link(&home->carriers, link_number), &q->boot_id));
	if (worker_post(agent_main(home->agent), on_main, q) < 0)
		asked_destroy(q);
}
