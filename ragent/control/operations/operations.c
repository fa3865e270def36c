/* operations.c: status, listeners, and whether RAgent is ready. */
#include "ragent/control/operations/operations.h"

#include <string.h>

#include "net/limits/admission.h"
#include "ragent/control/http/control_exchange.h"
#include "ragent/control/http/control_json.h"
#include "ragent/dispatch/dispatch.h"

/* --- listeners --- */

uint64_t operations_count_listener(const struct operations *o, size_t listener, size_t row)
{
	uint64_t sum = 0;

	for (unsigned w = 0; w < o->worker_count; w++)
		sum += counter_get(counter_at(&o->workers[w]->home.of_listeners[listener], row));
	return sum;
}

static json_t *listener_json(const struct front *f)
{
	const struct conf_listener *conf = f->conf;
	json_t *addresses = json_array();
	char text[ADDRESS_TEXT_MAX];

	for (size_t i = 0; i < f->bound_count; i++)
		addresses = array_append(
			addresses, json_string(address_format((const struct sockaddr *)&f->bound[i], text)));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "name", conf->name, "mode",
		conf->mode == CONF_SF ? "sf" : "sl", "migration", front_moves(f) ? "on" : "off", "handshake",
		policy_name(conf->handshake), "resumption", policy_name(conf->resumption), "addresses", addresses,
		"connections", integer_json(atomic_load(&f->connections)));
}

static json_t *listener_in_full_json(const struct operations *o, size_t listener)
{
	const struct conf_listener *conf = o->shared->fronts[listener].conf;
	const struct service_traits *service = &service_traits[conf->service];
	json_t *out = listener_json(&o->shared->fronts[listener]);
	json_t *more = json_pack("{s:s?, s:s, s:b, s:s?, s:s}", "original_destination", capture_name(conf->capture),
		"service", service->name, "may_start_in_clear", service->start == SERVICE_MAY_START_AS_SMTP, "backend",
		conf->backend, "state", o->state == OPERATIONS_RUNNING ? "open" : "closed");

	for (size_t row = 0; row < LISTENER_COUNTER_COUNT; row++)
		json_object_set_new(more, listener_counter_row(row)->name,
			integer_json(operations_count_listener(o, listener, row)));
	const int failed = !out || !more || json_object_update(out, more) != 0;
	json_decref(more);
	if (!failed)
		return out;
	json_decref(out);
	return NULL;
}

void operations_listeners(struct operations *o, const struct control_input *in, struct control_request *r)
{
	json_t *list = json_array();

	for (size_t f = 0; f < o->shared->front_count; f++)
		list = array_append(list, listener_in_full_json(o, f));
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "listeners", list));
}

/* --- status --- */

static json_t *agent_json(const struct operations *o, int agent)
{
	struct agent_status s;

	agents_status(o->shared->agents, agent, &s);
	return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:i, s:i}", "name", s.name, "state", s.state, "links_up",
		(int)s.links_up, "links", (int)(o->worker_count * agents_conf(o->shared->agents, agent)->workers),
		"connections", integer_json(s.connections), "handshakes", integer_json(s.handshakes), "sessions",
		integer_json(s.sessions), "busy_permille", (int)s.busy_permille, "handshake_us", (int)s.handshake_us);
}

/* Deaths of earlier processes. */
static json_t *deaths_json(const struct notes *n)
{
	json_t *out = json_object();

	for (unsigned i = 0; i < DEATH_CAUSE_COUNT; i++)
		json_object_set_new(
			out, death_cause_name((enum death_cause)i), integer_json(n ? n->shared->deaths[i] : 0));
	return out;
}

/* What they did to connections. */
static json_t *fates_json(const struct notes *n)
{
	static struct fates none;
	struct fates *f = n ? &n->shared->fates : &none;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "went_on", integer_json(f->went_on),
		"began_anew", integer_json(f->fresh), "reset", integer_json(f->reset), "outdated",
		integer_json(f->outdated), "not_restored", integer_json(f->not_restored), "given_up",
		integer_json(f->given_up), "starts_without_restore", integer_json(f->starts_without_restore),
		"pause_us", integer_json(f->pause_us), "last_pause_us", integer_json(f->last_pause_us));
}

void operations_status(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const struct ragent_shared *s = o->shared;
	json_t *listeners = json_array(), *agents = json_array();

	for (size_t f = 0; f < s->front_count; f++)
		listeners = array_append(listeners, listener_json(&s->fronts[f]));
	for (unsigned a = 0; a < agents_count(s->agents); a++)
		agents = array_append(agents, agent_json(o, (int)a));
	request_answer(r, MHD_HTTP_OK,
		json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name", s->self->name, "version",
			CSSL_VERSION, "state", o->state == OPERATIONS_RUNNING ? "running" : "stopping", "uptime_s",
			integer_json((worker_now_ms(o->main) - o->started_ms) / 1000), "deaths", deaths_json(s->notes),
			"at_deaths", fates_json(s->notes), "workers", (int)o->worker_count, "connections",
			integer_json(admission_total(s->admission)), "listeners", listeners, "agents", agents));
}

void operations_ready(struct operations *o, const struct control_input *in, struct control_request *r)
{
	struct agent_status s;
	uint64_t count = 0;

	for (int a = 0; o->state == OPERATIONS_RUNNING && a < (int)agents_count(o->shared->agents); a++) {
		agents_status(o->shared->agents, a, &s);
		count += strcmp(s.state, "ready") == 0;
	}
	if (count)
		request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "ready", integer_json(count)));
	else
		request_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no agent is ready");
}
