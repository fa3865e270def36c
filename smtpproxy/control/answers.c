/* answers.c: sessions, destinations and counters as JSON, and as metrics. */
#include "smtpproxy/control/answers.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/report/log.h"
#include "net/socket/address.h"
#include "smtpproxy/events/event_log.h"

#define EVENTS_MAX 500u

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
#define X(name, help) json_object_set_new(out, #name, json_integer(INT(c->name)));
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
		const struct sockaddr *next = (const struct sockaddr *)&l->next_hop;
		json_array_append_new(out,
			json_pack("{s:o,s:s,s:o*}", "address", address_json((const struct sockaddr *)&l->address),
				"original_destination", l->capture == CAPTURE_NONE ? "proxy" : capture_name(l->capture),
				"next_hop", next->sa_family == AF_UNSPEC ? NULL : address_json(next)));
	}
	return out;
}

static json_t *answers_status(const struct control_view *v, uint64_t after)
{
	return json_pack("{s:s,s:s,s:I,s:I,s:s,s:I,s:I,s:o,s:o}", "name", v->conf->name, "version", v->version, "pid",
		INT(getpid()), "uptime_s", INT(worker_wall_ms() - v->started_ms) / 1000, "fairness",
		v->conf->fairness == CONF_ON ? "on" : "off", "sessions", INT(v->home->count), "destinations",
		INT(outward_count(v->home->outward)), "listeners", listeners_json(v->conf), "counters",
		answers_counters(v->home));
}

/* Sessions and senders */

/* A list of at most ANSWERS_ROWS_MAX rows. */
static json_t *answers_list(const char *name, json_t *rows, uint64_t all)
{
	const int is_cut = all > json_array_size(rows);
	return json_pack("{s:o,s:I,s:b}", name, rows, "total", INT(all), "truncated", is_cut);
}

static json_t *answers_session(const struct session *s)
{
	json_t *to = s->destination ? address_json((const struct sockaddr *)&s->destination->route.to) : NULL;
	return json_pack("{s:I,s:o,s:s,s:o*,s:I,s:I}", "connection", INT(s->number), "client", source_json(&s->source),
		"state", session_state_name((enum session_state)s->state), "destination", to, "transactions",
		INT(s->tx.done), "accepted", INT(s->tx.accepted));
}

static json_t *answers_sessions(const struct control_view *v, uint64_t after)
{
	json_t *rows = json_array();
	const struct session *s;
	LIST_FOREACH(s, &v->home->sessions, next)
	{
		if (json_array_size(rows) < ANSWERS_ROWS_MAX)
			json_array_append_new(rows, answers_session(s));
	}
	return answers_list("sessions", rows, v->home->count);
}

static void answers_add_number(json_t *object, const char *key, uint64_t n)
{
	const json_int_t before = json_integer_value(json_object_get(object, key));
	json_object_set_new(object, key, json_integer(before + (json_int_t)n));
}

/* The present sessions, by the address of their client. */
static json_t *answers_senders(const struct control_view *v, uint64_t after)
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
		answers_add_number(one, "sessions", 1);
		answers_add_number(one, "waiting", s->state == SESSION_WAITS);
		answers_add_number(one, "sending", s->state >= SESSION_TRIES && s->state <= SESSION_DECIDES);
		answers_add_number(one, "transactions", s->tx.done);
		answers_add_number(one, "accepted", s->tx.accepted);
	}
	const uint64_t all = json_object_size(by_address);
	json_object_foreach(by_address, key, one)
	{
		if (json_array_size(rows) < ANSWERS_ROWS_MAX)
			json_array_append(rows, one);
	}
	json_decref(by_address);
	return answers_list("senders", rows, all);
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

static json_t *destination_json(const struct destination *d)
{
	const int is_as_sender = d->route.as.ss_family != AF_UNSPEC, is_dane = d->route.tls >= SMTPPROXY_TLS_DANE;
	return json_pack("{s:o,s:o*,s:s,s:s*,s:s*,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "address",
		address_json((const struct sockaddr *)&d->route.to), "as_sender",
		is_as_sender ? address_json((const struct sockaddr *)&d->route.as) : NULL, "tls",
		tls_word(d->route.tls), "name", d->route.name, "tlsa", is_dane ? dane_word(&d->dane) : NULL, "sessions",
		INT(d->sessions), "connecting", INT(d->onwards.in[DESTINATION_OPENING]), "idle",
		INT(d->onwards.in[DESTINATION_IDLE]), "sending", INT(d->onwards.in[DESTINATION_LEASED]), "limit",
		INT(d->share->limit.limit), "ceiling", INT(d->share->limit.ceiling), "waiting",
		INT(d->wants.turns.count), "waiting_senders", INT(d->wants.turns.senders), "transactions",
		INT(d->transactions), "accepted", INT(d->accepted), "mean_wait_ms",
		INT(d->transactions ? d->turn_ms / d->transactions : 0));
}

static void add_destination(void *ctx, const struct destination *d)
{
	json_t *rows = ctx;
	if (json_array_size(rows) < ANSWERS_ROWS_MAX)
		json_array_append_new(rows, destination_json(d));
}

static json_t *answers_destinations(const struct control_view *v, uint64_t after)
{
	json_t *rows = json_array();
	outward_each(v->home->outward, add_destination, rows);
	return answers_list("destinations", rows, outward_count(v->home->outward));
}

json_t *answers_sources(const struct smtpproxy_outward *c, size_t most)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < c->source_count && i < most; i++) {
		json_t *address = address_json((const struct sockaddr *)&c->sources[i].address);
		json_array_append_new(
			rows, json_pack("{s:o,s:I}", "address", address, "weight", INT(c->sources[i].weight)));
	}
	return rows;
}

static json_t *answers_pools(const struct control_view *v, uint64_t after)
{
	const struct smtpproxy_outward *c = &v->conf->outward;
	return answers_list("sources", answers_sources(c, c->source_count), c->source_count);
}

/* Hooks */

static json_t *hook_json(const struct hook *k)
{
	static const char *const types[] = { [SMTPPROXY_HOOK_MILTER] = "milter", [SMTPPROXY_HOOK_HTTP] = "http" };
	return json_pack("{s:s,s:s,s:o,s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "name", k->name, "type", types[k->conf->type],
		"address", address_json((const struct sockaddr *)&k->conf->address), "state", hook_state_name(k->state),
		"asked", INT(k->asked), "refused", INT(k->refused), "deferred", INT(k->deferred), "discarded",
		INT(k->discarded), "changed", INT(k->changed), "failed", INT(k->failed));
}

static json_t *answers_hooks(const struct control_view *v, uint64_t after)
{
	json_t *rows = json_array();
	const struct hook *k;
	SLIST_FOREACH(k, &v->home->hooks.all, next)
	{
		if (k->conf)
			json_array_append_new(rows, hook_json(k));
	}
	return json_pack("{s:o,s:I}", "hooks", rows, "held", INT(v->home->held.used));
}

static json_t *answers_events(const struct control_view *v, uint64_t after)
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
	{ "/v1/status", answers_status, "the process, its listeners and counters" },
	{ "/v1/sessions", answers_sessions, "senders' connections" },
	{ "/v1/senders", answers_senders, "senders' connections by the address of the sender" },
	{ "/v1/destinations", answers_destinations, "receivers, their connections, and who waits for one" },
	{ "/v1/pools", answers_pools, "the addresses that connections come from" },
	{ "/v1/hooks", answers_hooks, "programs that judge mail, and the bytes of messages that wait for them" },
	{ "/v1/events", answers_events, "the newest records of transactions; ?after=N: those behind number N" },
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
	for (size_t i = 0; i < ROUTES; i++)
		if (strcmp(routes[i].path, path) == 0)
			return routes[i].answer(v, after);
	return answers_queue_find(v, path, after);
}

/* Metrics */

static void count_waiting(void *ctx, const struct destination *d)
{
	uint64_t *waiting = ctx;
	*waiting += d->wants.turns.count;
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
	replies_write(v->replies, f);
	outward_each(v->home->outward, count_waiting, &waiting);
	answers_gauge(f, "sessions_now", "senders' connections now", v->home->count);
	answers_gauge(f, "destinations_now", "receivers that are known now", outward_count(v->home->outward));
	answers_gauge(f, "waiting_now", "transactions that wait for a connection now", (int64_t)waiting);
	answers_gauge(f, "held_bytes", "bytes of messages that wait for hooks now", (int64_t)v->home->held.used);
	answers_queue_metrics(v, f);
	fclose(f);
	return text;
}
