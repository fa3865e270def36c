/* answers.c: sessions, destinations and counters as JSON, and as metrics. */
#include "smtpproxy/control/answers.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/address.h"
#include "net/log.h"
#include "smtpproxy/control/answers_queue.h"

#define EVENTS_MAX 500u

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *address_json(const struct sockaddr *a)
{
	char text[ADDRESS_TEXT_MAX];
	return json_string(address_format(a, text));
}

static json_t *source_json(const struct client_address *source)
{
	char text[INET6_ADDRSTRLEN] = "?";
	inet_ntop(source->len == 16 ? AF_INET6 : AF_INET, source->bytes, text, sizeof text);
	return json_string(text);
}

json_t *answers_counters(const struct sender_home *home)
{
	const struct smtpproxy_counters *c = home->counters;
	json_t *out = json_object();
	event_log_count(home->events);
	home->counters->log_lines_lost = log_dropped();
#define X(name, help) json_object_set_new(out, #name, number(c->name));
	SMTPPROXY_COUNTERS(X)
#undef X
	return out;
}

/* Status */

static json_t *listeners_json(const struct conf_smtpproxy *c)
{
	json_t *out = json_array();
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct smtpproxy_listener *l = &c->listeners[i];
		json_t *one = json_object();
		json_object_set_new(one, "address", address_json((const struct sockaddr *)&l->address));
		json_object_set_new(one, "original_destination",
			json_string(l->capture == CAPTURE_NONE ? "proxy" : capture_name(l->capture)));
		if (l->next_hop.ss_family != AF_UNSPEC)
			json_object_set_new(one, "next_hop", address_json((const struct sockaddr *)&l->next_hop));
		json_array_append_new(out, one);
	}
	return out;
}

static json_t *status(const struct control_view *v, uint64_t after)
{
	json_t *out = json_object();
	json_object_set_new(out, "name", json_string(v->conf->name));
	json_object_set_new(out, "version", json_string(v->version));
	json_object_set_new(out, "pid", json_integer(getpid()));
	json_object_set_new(out, "uptime_s", number((uint64_t)(worker_wall_ms() - v->started_ms) / 1000));
	json_object_set_new(out, "fairness", json_string(v->conf->fairness == CONF_ON ? "on" : "off"));
	json_object_set_new(out, "sessions", number(v->home->count));
	json_object_set_new(out, "destinations", number(outward_count(v->home->outward)));
	json_object_set_new(out, "listeners", listeners_json(v->conf));
	json_object_set_new(out, "counters", answers_counters(v->home));
	return out;
}

/* Sessions and senders */

/* A list of at most ANSWERS_ROWS_MAX rows. */
static json_t *list(const char *name, json_t *rows, uint64_t all)
{
	json_t *out = json_object();
	json_object_set_new(out, name, rows);
	json_object_set_new(out, "total", number(all));
	json_object_set_new(out, "truncated", json_boolean(all > json_array_size(rows)));
	return out;
}

static json_t *session_json(const struct session *s)
{
	json_t *one = json_object();
	json_object_set_new(one, "connection", number(s->number));
	json_object_set_new(one, "client", source_json(&s->source));
	json_object_set_new(one, "state", json_string(session_state_name((enum session_state)s->state)));
	if (s->destination)
		json_object_set_new(
			one, "destination", address_json((const struct sockaddr *)&s->destination->route.to));
	json_object_set_new(one, "transactions", number(s->tx.done));
	json_object_set_new(one, "accepted", number(s->tx.accepted));
	return one;
}

static json_t *sessions(const struct control_view *v, uint64_t after)
{
	json_t *rows = json_array();
	const struct session *s;
	LIST_FOREACH(s, &v->home->sessions, next)
	{
		if (json_array_size(rows) < ANSWERS_ROWS_MAX)
			json_array_append_new(rows, session_json(s));
	}
	return list("sessions", rows, v->home->count);
}

static void add(json_t *object, const char *key, uint64_t n)
{
	const json_int_t before = json_integer_value(json_object_get(object, key));
	json_object_set_new(object, key, json_integer(before + (json_int_t)n));
}

/* The present sessions, by the address of their client. */
static json_t *senders(const struct control_view *v, uint64_t after)
{
	json_t *by_address = json_object(), *rows = json_array(), *one;
	const char *key;
	const struct session *s;
	LIST_FOREACH(s, &v->home->sessions, next)
	{
		json_t *address = source_json(&s->source);
		one = json_object_get(by_address, json_string_value(address));
		if (!one) {
			one = json_object();
			json_object_set_new(by_address, json_string_value(address), one);
			json_object_set(one, "client", address);
		}
		json_decref(address);
		add(one, "sessions", 1);
		add(one, "waiting", s->state == SESSION_WAITS);
		add(one, "sending", s->state >= SESSION_TRIES && s->state <= SESSION_DECIDES);
		add(one, "transactions", s->tx.done);
		add(one, "accepted", s->tx.accepted);
	}
	const uint64_t all = json_object_size(by_address);
	json_object_foreach(by_address, key, one)
	{
		if (json_array_size(rows) < ANSWERS_ROWS_MAX)
			json_array_append(rows, one);
	}
	json_decref(by_address);
	return list("senders", rows, all);
}

/* Destinations and pools */

static const char *tls_word(enum smtpproxy_tls tls)
{
	static const char *const words[] = {
		[SMTPPROXY_TLS_NONE] = "none",
		[SMTPPROXY_TLS_MAY] = "may",
		[SMTPPROXY_TLS_ENCRYPT] = "encrypt",
		[SMTPPROXY_TLS_VERIFY] = "verify",
		[SMTPPROXY_TLS_DANE] = "dane",
		[SMTPPROXY_TLS_DANE_ONLY] = "dane-only",
	};
	return words[tls];
}

static void add_destination(void *ctx, const struct destination *d)
{
	json_t *rows = ctx, *one = json_object();
	if (json_array_size(rows) >= ANSWERS_ROWS_MAX) {
		json_decref(one);
		return;
	}
	json_object_set_new(one, "address", address_json((const struct sockaddr *)&d->route.to));
	if (d->route.as.ss_family != AF_UNSPEC)
		json_object_set_new(one, "as_sender", address_json((const struct sockaddr *)&d->route.as));
	json_object_set_new(one, "tls", json_string(tls_word(d->route.tls)));
	if (d->route.name)
		json_object_set_new(one, "name", json_string(d->route.name));
	if (d->route.tls >= SMTPPROXY_TLS_DANE)
		json_object_set_new(one, "tlsa", json_string(dane_word(&d->dane)));
	json_object_set_new(one, "sessions", number(d->sessions));
	json_object_set_new(one, "connecting", number(d->in[DESTINATION_OPENING]));
	json_object_set_new(one, "idle", number(d->in[DESTINATION_IDLE]));
	json_object_set_new(one, "sending", number(d->in[DESTINATION_LEASED]));
	json_object_set_new(one, "limit", number(d->share->limit.limit));
	json_object_set_new(one, "ceiling", number(d->share->limit.ceiling));
	json_object_set_new(one, "waiting", number(d->turns.count));
	json_object_set_new(one, "waiting_senders", number(d->turns.senders));
	json_object_set_new(one, "transactions", number(d->transactions));
	json_object_set_new(one, "accepted", number(d->accepted));
	json_object_set_new(one, "mean_wait_ms", number(d->transactions ? d->turn_ms / d->transactions : 0));
	json_array_append_new(rows, one);
}

static json_t *destinations(const struct control_view *v, uint64_t after)
{
	json_t *rows = json_array();
	outward_each(v->home->outward, add_destination, rows);
	return list("destinations", rows, outward_count(v->home->outward));
}

static json_t *pools(const struct control_view *v, uint64_t after)
{
	const struct smtpproxy_outward *c = &v->conf->outward;
	json_t *rows = json_array();
	for (size_t i = 0; i < c->source_count; i++) {
		json_t *one = json_object();
		json_object_set_new(one, "address", address_json((const struct sockaddr *)&c->sources[i].address));
		json_object_set_new(one, "weight", number(c->sources[i].weight));
		json_array_append_new(rows, one);
	}
	return list("sources", rows, c->source_count);
}

/* Hooks */

static json_t *hook_json(const struct hook *k)
{
	static const char *const types[] = { [SMTPPROXY_HOOK_MILTER] = "milter", [SMTPPROXY_HOOK_HTTP] = "http" };
	json_t *one = json_object();
	json_object_set_new(one, "name", json_string(k->name));
	json_object_set_new(one, "type", json_string(types[k->conf->type]));
	json_object_set_new(one, "address", address_json((const struct sockaddr *)&k->conf->address));
	json_object_set_new(one, "state", json_string(hook_state_name(k->state)));
	json_object_set_new(one, "asked", number(k->asked));
	json_object_set_new(one, "refused", number(k->refused));
	json_object_set_new(one, "deferred", number(k->deferred));
	json_object_set_new(one, "discarded", number(k->discarded));
	json_object_set_new(one, "changed", number(k->changed));
	json_object_set_new(one, "failed", number(k->failed));
	return one;
}

static json_t *hooks(const struct control_view *v, uint64_t after)
{
	json_t *out = json_object(), *rows = json_array();
	const struct hook *k;
	SLIST_FOREACH(k, &v->home->hooks.all, next)
	{
		if (k->conf)
			json_array_append_new(rows, hook_json(k));
	}
	json_object_set_new(out, "hooks", rows);
	json_object_set_new(out, "held", number(v->home->held.used));
	return out;
}

static json_t *events(const struct control_view *v, uint64_t after)
{
	return event_log_answer(v->home->events, after, EVENTS_MAX);
}

static json_t *index_of_all(const struct control_view *v, uint64_t after);

static const struct route {
	const char *path;
	json_t *(*answer)(const struct control_view *v, uint64_t after);
	const char *help;
} routes[] = {
	{ "/v1", index_of_all, "this list" },
	{ "/v1/status", status, "the process, its listeners and counters" },
	{ "/v1/sessions", sessions, "senders' connections" },
	{ "/v1/senders", senders, "senders' connections by the address of the sender" },
	{ "/v1/destinations", destinations, "receivers, their connections, and who waits for one" },
	{ "/v1/pools", pools, "the addresses that connections come from" },
	{ "/v1/hooks", hooks, "programs that judge mail, and the bytes of messages that wait for them" },
	{ "/v1/events", events, "the newest records of transactions; ?after=N: those behind number N" },
};

#define ROUTES (sizeof routes / sizeof routes[0])

static json_t *index_of_all(const struct control_view *v, uint64_t after)
{
	json_t *out = json_object();
	for (size_t i = 0; i < ROUTES; i++)
		json_object_set_new(out, routes[i].path, json_string(routes[i].help));
	if (v->home->queue)
		json_object_set_new(
			out, "/v1/queue", json_string("deliver: queue: its state, backups and destinations"));
	if (v->home->queue)
		json_object_set_new(out, "/v1/queue/messages", json_string("the oldest messages; /ID: one of them"));
	json_object_set_new(out, "/metrics", json_string("counters and gauges for Prometheus"));
	return out;
}

json_t *answers_find(const struct control_view *v, const char *path, uint64_t after)
{
	for (size_t i = 0; i < ROUTES; i++) {
		if (strcmp(routes[i].path, path) == 0)
			return routes[i].answer(v, after);
	}
	return answers_queue_find(v, path, after);
}

/* Metrics */

static void gauge(FILE *f, const char *name, const char *help, uint64_t n)
{
	fprintf(f, "# HELP smtpproxy_%s %s\n# TYPE smtpproxy_%s gauge\nsmtpproxy_%s %" PRIu64 "\n", name, help, name,
		name, n);
}

static void count_waiting(void *ctx, const struct destination *d)
{
	uint64_t *waiting = ctx;
	*waiting += d->turns.count;
}

char *answers_metrics(const struct control_view *v)
{
	char *text = NULL;
	size_t len;
	uint64_t waiting = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	event_log_count(v->home->events);
	v->home->counters->log_lines_lost = log_dropped();
#define X(name, help)                                                                                                  \
	fprintf(f, "# HELP smtpproxy_" #name "_total %s\n# TYPE smtpproxy_" #name "_total counter\n", help);           \
	fprintf(f, "smtpproxy_" #name "_total %" PRIu64 "\n", v->home->counters->name);
	SMTPPROXY_COUNTERS(X)
#undef X
	replies_write(outward_home(v->home->outward)->replies, f);
	outward_each(v->home->outward, count_waiting, &waiting);
	gauge(f, "sessions_now", "senders' connections now", v->home->count);
	gauge(f, "destinations_now", "receivers that are known now", outward_count(v->home->outward));
	gauge(f, "waiting_now", "transactions that wait for a connection now", waiting);
	gauge(f, "held_bytes", "bytes of messages that wait for hooks now", v->home->held.used);
	answers_queue_metrics(v, f);
	fclose(f);
	return text;
}
