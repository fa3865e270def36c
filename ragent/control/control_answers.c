/* control_answers.c: the provider's answers as JSON. A NULL from jansson (out of memory, or a string that is no UTF-8)
 * becomes 500 where it is given to the exchange. */
#include <assert.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "proto/cipher_suite.h"
#include "ragent/control/control_answers.h"
#include "ragent/control/control_metrics.h"

json_t *array_append(json_t *out, json_t *element)
{
	if (out && json_array_append_new(out, element) == 0)
		return out;
	json_decref(out);
	return NULL;
}

static json_t *strings_json(const char *const *at, size_t count)
{
	json_t *out = json_array();
	for (size_t i = 0; i < count; i++)
		out = array_append(out, json_string(at[i]));
	return out;
}

json_t *integer_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *hex_json(const uint8_t *bytes, size_t len)
{
	char text[2 * SESSION_ID_LEN + 1];
	if (len == 0)
		return json_null();
	return json_string(sodium_bin2hex(text, sizeof text, bytes, len));
}

/* All members of both, which it takes over. */
static json_t *joined(json_t *out, json_t *more)
{
	const int failed = !more || json_object_update(out, more) != 0;
	json_decref(more);
	if (!failed)
		return out;
	json_decref(out);
	return NULL;
}

/* GET /v1/status */

static json_t *listener_json(const struct control_listener *l)
{
	return json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:o, s:o}", "name", l->name, "mode", l->mode, "migration",
		l->migration, "handshake", l->handshake, "resumption", l->resumption, "addresses",
		strings_json(l->addresses, l->address_count), "connections", integer_json(l->connections));
}

static json_t *agent_json(const struct control_agent *a)
{
	return json_pack("{s:s, s:s?, s:i, s:i, s:o, s:o, s:o, s:i, s:i}", "name", a->name, "state", a->state,
		"links_up", (int)a->links_up, "links", (int)a->links, "connections", integer_json(a->connections),
		"handshakes", integer_json(a->handshakes), "sessions", integer_json(a->sessions), "busy_permille",
		(int)a->busy_permille, "handshake_us", (int)a->handshake_us);
}

/* GET /v1/listeners */

static json_t *listener_in_full_json(const struct control_listener *l)
{
	json_t *out = listener_json(l),
	       *more = json_pack("{s:s?, s:s?, s:b, s:s?, s:s?}", "original_destination", l->original_destination,
		       "service", l->service, "may_start_in_clear", l->start == SERVICE_MAY_START_AS_SMTP, "backend",
		       l->backend, "state", l->state);
	for (size_t i = 0; i < l->counter_count; i++)
		json_object_set_new(more, l->counters[i].name, integer_json(l->counters[i].value));
	return joined(out, more);
}

void control_answer_listeners(struct control_request *r, const struct control_listener *at, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		list = array_append(list, listener_in_full_json(&at[i]));
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "listeners", list));
}

static json_t *deaths_json(const uint64_t deaths[static DEATH_CAUSE_COUNT])
{
	json_t *o = json_object();

	for (unsigned i = 0; i < DEATH_CAUSE_COUNT; i++)
		json_object_set_new(o, death_cause_name((enum death_cause)i), json_integer((json_int_t)deaths[i]));
	return o;
}

static json_t *fates_json(const struct control_fates *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "went_on", integer_json(f->went_on),
		"began_anew", integer_json(f->began_anew), "reset", integer_json(f->reset), "outdated",
		integer_json(f->outdated), "not_restored", integer_json(f->not_restored), "given_up",
		integer_json(f->given_up), "starts_without_restore", integer_json(f->starts_without_restore),
		"pause_us", integer_json(f->pause_us), "last_pause_us", integer_json(f->last_pause_us));
}

void control_answer_status(struct control_request *r, const struct control_status *s)
{
	json_t *listeners = json_array(), *agents = json_array();
	for (size_t i = 0; i < s->listener_count; i++)
		listeners = array_append(listeners, listener_json(&s->listeners[i]));
	for (size_t i = 0; i < s->agent_count; i++)
		agents = array_append(agents, agent_json(&s->agents[i]));
	request_answer(r, MHD_HTTP_OK,
		json_pack("{s:s, s:s?, s:s?, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name", s->name, "version",
			s->version, "state", s->state, "uptime_s", integer_json(s->uptime_s), "deaths",
			deaths_json(s->deaths), "at_deaths", fates_json(&s->fates), "workers", (int)s->workers,
			"connections", integer_json(s->connections), "listeners", listeners, "agents", agents));
}

/* GET /v1/agents and /v1/agents/NAME, and operations on one agent */

static json_t *drain_json(const struct drain_report *d)
{
	return json_pack("{s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state", d->state, "reason", d->reason,
		"elapsed_ms", integer_json(d->elapsed_ms), "total", integer_json(d->total), "left",
		integer_json(d->left), "moved", integer_json(d->moved), "rested", integer_json(d->rested), "ended",
		integer_json(d->ended), "longest_pause_us", integer_json(d->longest_pause_us), "summed_pause_us",
		integer_json(d->summed_pause_us));
}

static json_t *agent_in_full_json(const struct control_agent *a)
{
	return json_pack("{s:s, s:s?, s:s?, s:o, s:f, s:{s:i, s:i, s:i}, s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "name",
		a->name, "state", a->state, "version", *a->version ? a->version : NULL, "clock_offset_ms",
		a->clock == CONTROL_CLOCK_KNOWN ? json_integer(a->clock_offset_ms) : json_null(), "weight", a->weight,
		"links", "up", (int)a->links_up, "suspect", (int)a->links_suspect, "total", (int)a->links,
		"connections", integer_json(a->connections), "handshakes", integer_json(a->handshakes), "sessions",
		integer_json(a->sessions), "busy_permille", (int)a->busy_permille, "handshake_us", (int)a->handshake_us,
		"drain", drain_json(&a->drain), "failing_backends", text_json(a->failing_backends));
}

void control_answer_agents(struct control_request *r, const struct control_agent *at, size_t count)
{
	const enum request_form form = request_form(r);
	json_t *list = json_array();
	assert(form == REQUEST_PLAIN || count == 1);
	if (form != REQUEST_PLAIN) {
		json_decref(list);
		request_answer(
			r, form == REQUEST_TO_BEGIN ? MHD_HTTP_ACCEPTED : MHD_HTTP_OK, agent_in_full_json(&at[0]));
		return;
	}
	for (size_t i = 0; i < count; i++)
		list = array_append(list, agent_in_full_json(&at[i]));
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "agents", list));
}

/* GET /v1/counters */

static json_t *counters_json(const struct control_counter *at, size_t count)
{
	json_t *out = json_object();
	for (size_t i = 0; i < count; i++)
		json_object_set_new(out, at[i].name, integer_json(at[i].value));
	return out;
}

static json_t *set_json(const struct control_counters *set)
{
	return set->error ? json_pack("{s:o}", "error", text_json(set->error)) : counters_json(set->at, set->count);
}

void control_answer_counters(struct control_request *r, const struct control_counters *sets, size_t count)
{
	json_t *ragent = json_object(), *agents = json_object(), *seen = json_object();
	for (size_t i = 0; i < count; i++) {
		if (sets[i].agent) {
			json_object_set_new(agents, sets[i].agent, set_json(&sets[i]));
			json_object_set_new(seen, sets[i].agent, counters_json(sets[i].seen, sets[i].seen_count));
			continue;
		}
		json_decref(ragent);
		ragent = set_json(&sets[i]);
	}
	request_answer(
		r, MHD_HTTP_OK, json_pack("{s:o, s:o, s:o}", "ragent", ragent, "agents", agents, "of_agents", seen));
}

/* GET /v1/certificates */

static json_t *certificate_json(const char *agent, const Cssl__LinkResponse__Counters__Certificate *c)
{
	json_t *hosts = json_array();
	const time_t end = c->not_after_s > 0 ? (time_t)c->not_after_s : 0, left_s = end - time(NULL);
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&end, &utc))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (size_t i = 0; i < c->n_host; i++)
		hosts = array_append(hosts, text_json(c->host[i]));
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:I}", "agent", agent, "name", text_json(c->name), "hosts",
		hosts, "file", text_json(c->file), "issuer", text_json(c->issuer), "not_after", text, "days_left",
		(json_int_t)(left_s / 86400 - (left_s % 86400 < 0)));
}

void control_answer_certificates(struct control_request *r, const struct control_counters *sets, size_t count)
{
	json_t *list = json_array(), *failed = json_object();
	for (size_t i = 0; i < count; i++) {
		if (sets[i].error)
			json_object_set_new(failed, sets[i].agent, text_json(sets[i].error));
		for (size_t c = 0; c < sets[i].certificate_count; c++)
			list = array_append(list, certificate_json(sets[i].agent, sets[i].certificates[c]));
	}
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o, s:o}", "certificates", list, "failed", failed));
}

/* GET /metrics */

void control_answer_metrics(
	struct control_request *r, const struct control_status *s, const struct control_counters *sets, size_t count)
{
	request_answer_text(r, METRICS_CONTENT_TYPE, metrics_text(s, sets, count));
}

/* GET /v1/connections and /v1/connections/ID */

static json_t *address_json(const struct sockaddr_storage *a)
{
	char text[ADDRESS_TEXT_MAX];
	return a->ss_family == 0 ? json_null() : json_string(address_format((const struct sockaddr *)a, text));
}

static json_t *tls_json(const struct connection_description *c)
{
	const struct cipher_suite *suite = cipher_suite_find(c->cipher_suite);
	const size_t family_len = sodium_is_zero(c->family_id, sizeof c->family_id) ? 0 : sizeof c->family_id;
	if (c->protocol_version == 0)
		return json_null();
	return json_pack("{s:s, s:s?, s:b, s:o, s:o, s:o, s:o}", "version",
		c->protocol_version == 0x0304 ? "1.3" : "1.2", "cipher_suite", suite ? suite->name : NULL, "resumed",
		c->handshake == HANDSHAKE_RESUMED, "server_name", text_json(c->server_name), "alpn", text_json(c->alpn),
		"session_id", hex_json(c->session_id, c->session_id_len), "family_id",
		hex_json(c->family_id, family_len));
}

static json_t *connection_json(const struct connection_description *c)
{
	json_t *out = json_pack("{s:o, s:o, s:o, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:I, s:I}", "id",
		hex_json(c->id.bytes, sizeof c->id.bytes), "client", address_json(&c->client), "server",
		address_json(&c->server), "listener", c->listener, "state", c->state, "owner", c->owner,
		"handshake_agent", c->handshake_agent, "affinity_agent", c->affinity_agent, "preamble_agent",
		c->preamble_agent, "epoch", (json_int_t)c->epoch, "moves", (json_int_t)c->moves);
	json_t *more = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "age_ms", integer_json(c->age_ms),
		"idle_ms", integer_json(c->idle_ms), "client_records", integer_json(c->client_records), "client_bytes",
		integer_json(c->client_bytes), "server_records", integer_json(c->server_records), "server_bytes",
		integer_json(c->server_bytes), "read_generation", (json_int_t)c->read_generation, "write_generation",
		(json_int_t)c->write_generation, "tls", tls_json(c));
	return joined(out, more);
}

static json_t *detail_json(const struct connection_description *c)
{
	json_t *out = connection_json(c), *history = json_array();
	for (size_t i = 0; i < c->history_count; i++) {
		const struct ownership_description *o = &c->history[i];
		history =
			array_append(history, json_pack("{s:s?, s:s, s:I, s:o, s:o}", "agent", o->agent, "cause",
						      o->cause, "epoch", (json_int_t)o->epoch, "ago_ms",
						      integer_json(o->ago_ms), "pause_us", integer_json(o->pause_us)));
	}
	if (out && json_object_set_new(out, "history", history) == 0)
		return out;
	json_decref(out);
	return NULL;
}

static json_t *page_json(const struct connection_description *at, size_t count, enum control_more more)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		list = array_append(list, connection_json(&at[i]));
	json_t *next =
		more == CONTROL_MORE && count > 0 ? hex_json(at[count - 1].id.bytes, CONNECTION_ID_LEN) : json_null();
	return json_pack("{s:o, s:o}", "connections", list, "next", next);
}

void control_answer_connections(
	struct control_request *r, const struct connection_description *at, size_t count, enum control_more more)
{
	assert(request_form(r) == REQUEST_PLAIN || count == 1);
	request_answer(
		r, MHD_HTTP_OK, request_form(r) == REQUEST_OF_ONE ? detail_json(at) : page_json(at, count, more));
}

/* POST */

void control_answer_move(struct control_request *r, const struct control_moved *m)
{
	request_answer(r, MHD_HTTP_OK,
		json_pack("{s:s?, s:s?, s:I, s:o}", "from", m->from, "to", m->to, "epoch", (json_int_t)m->epoch,
			"pause_us", integer_json(m->pause_us)));
}

void control_answer_rest(struct control_request *r, const struct control_moved *m)
{
	request_answer(r, MHD_HTTP_OK, json_pack("{s:s?, s:I}", "from", m->from, "epoch", (json_int_t)m->epoch));
}

void control_answer_number(struct control_request *r, const char *name, uint64_t number)
{
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", name, integer_json(number)));
}

void control_answer_block(
	struct control_request *r, uint64_t ended, const char *const *unconfirmed, size_t unconfirmed_count)
{
	request_answer(r, MHD_HTTP_OK,
		json_pack("{s:o, s:o}", "ended", integer_json(ended), "unconfirmed",
			strings_json(unconfirmed, unconfirmed_count)));
}

void control_answer_blocks(struct control_request *r, struct blocked *blocked, uint64_t now_ms)
{
	json_t *list = json_array();
	struct blocked_net at[BLOCKED_MAX];
	char text[ADDRESS_TEXT_MAX];
	const size_t count = blocked_list(blocked, now_ms, at);

	for (size_t i = 0; i < count; i++)
		list = array_append(
			list, json_pack("{s:s, s:o}", "network", address_net_format(&at[i].net, text), "ends_in_s",
				      at[i].left_ms == BLOCKED_FOR_GOOD ? json_null()
									: integer_json((at[i].left_ms + 999) / 1000)));
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "blocks", list));
}

void control_answer_revoke(struct control_request *r, const struct control_revoked *v)
{
	request_answer(r, MHD_HTTP_OK,
		json_pack("{s:o, s:o, s:o}", "sessions", integer_json(v->sessions), "confirmed",
			strings_json(v->confirmed, v->confirmed_count), "unconfirmed",
			strings_json(v->unconfirmed, v->unconfirmed_count)));
}

/* GET /v1/mail. The object is another program's: nothing here relies on its members. */
void control_answer_mail(struct control_request *r, const char *error, const char *text, size_t len)
{
	json_t *status = text ? json_loadb(text, len, 0, NULL) : NULL;

	if (text && !json_is_object(status)) {
		json_decref(status);
		status = NULL;
		error = "its answer is no JSON object";
	}
	if (!status)
		status = error ? json_pack("{s:o}", "error", text_json(error)) : json_null();
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "smtpproxy", status));
}

/* GET and PUT /v1/log-level. A change that failed is an error; a level that could not be read is not. */
void control_answer_log_levels(struct control_request *r, const struct control_log_level *at, size_t count)
{
	json_t *levels = json_object();
	const char *silent = NULL;
	for (size_t i = 0; i < count; i++) {
		silent = at[i].error && !silent ? at[i].node : silent;
		json_object_set_new(levels, at[i].node,
			at[i].error ? json_pack("{s:o}", "error", text_json(at[i].error))
				    : json_pack("{s:s, s:s}", "level", at[i].level, "configured", at[i].configured));
	}
	if (silent && request_form(r) == REQUEST_TO_CHANGE)
		request_answer(r, MHD_HTTP_SERVICE_UNAVAILABLE,
			json_pack("{s:s+, s:o}", "error", "not done by ", silent, "levels", levels));
	else
		request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "levels", levels));
}

/* 503 when any process failed: a script sees the status, a person reads the names. */
void control_answer_nodes(struct control_request *r, const struct control_node_result *at, size_t count)
{
	json_t *done = json_array(), *failed = json_object();
	const char *node = NULL;
	for (size_t i = 0; i < count; i++) {
		if (at[i].error && !node)
			node = at[i].node;
		if (at[i].error)
			json_object_set_new(failed, at[i].node, text_json(at[i].error));
		else
			done = array_append(done, json_string(at[i].node));
	}
	if (node)
		request_answer(r, MHD_HTTP_SERVICE_UNAVAILABLE,
			json_pack("{s:s+, s:o, s:o}", "error", "not done by ", node, "done", done, "failed", failed));
	else
		request_answer(r, MHD_HTTP_OK, json_pack("{s:o, s:o}", "done", done, "failed", failed));
}
