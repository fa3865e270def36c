/* control_routes.c: the table of routes, and the search for the route of a request: method, path, query. */
#include "ragent/control/control_inside.h"

#include <string.h>

#include "ragent/control/control_input.h"
#include "ragent/dashboard/dashboard.h"

#define ID        "ID"
#define NAME      "NAME"
#define QUERY_MAX 10u
#define ALLOW_MAX 32u
#define ID_ROOM   (2 * SESSION_ID_LEN + 2) /* one byte more than the longest id, so that a longer one is noticed */

struct route {
	const char *method, *pattern;
	operation *ask;               /* NULL: @show */
	const char *query[QUERY_MAX]; /* names it takes */
	reader *read;                 /* NULL: there is nothing to read besides the path */
	const char *body;             /* NULL: the body is ignored */
	const char *help;
	void (*show)(struct exchange *e); /* answers at once */
	enum { ROUTE_BY_METHOD, ROUTE_FOR_ALL } access;
};

static void show_page(struct exchange *e)
{
	exchange_header(e, "Content-Security-Policy", dashboard_policy);
	exchange_answer_text(e, "text/html; charset=utf-8", strdup(dashboard_page));
}

static void show_openapi(struct exchange *e)
{
	exchange_answer_text(e, "application/yaml", strdup(openapi_text));
}

static void show_health(struct exchange *e)
{
	exchange_answer(e, MHD_HTTP_OK, json_pack("{s:b}", "lives", 1));
}

static void show_index(struct exchange *e);

static const struct route routes[] = {
	{ "GET", "/", NULL, .show = show_page, .help = "the dashboard, a page for people", .access = ROUTE_FOR_ALL },
	{ "GET", "/healthz", NULL, .show = show_health, .help = "this process lives", .access = ROUTE_FOR_ALL },
	{ "GET", "/readyz", operations_ready,
		.help = "an agent is ready, and one of its backends answers as far as it knows",
		.access = ROUTE_FOR_ALL },
	{ "GET", "/v1", NULL, .show = show_index, .help = "this list" },
	{ "GET", "/v1/openapi.yaml", NULL, .show = show_openapi,
		.help = "all of this in full, as an OpenAPI document" },
	{ "GET", "/v1/status", operations_status, .help = "listeners, agents and their links, how many connections" },
	{ "GET", "/v1/listeners", operations_listeners,
		.help = "every listener: addresses, service, connections, handshakes, bytes, refusals" },
	{ "GET", "/v1/mail", operations_mail, .help = "the counts of the smtpproxy that `mail_status` names" },
	{ "GET", "/v1/counters", operations_counters, .help = "what RAgent and every agent counted since their start" },
	{ "GET", "/v1/certificates", operations_certificates,
		.help = "the certificates that each agent has loaded: names, file, issuer, end, days left" },
	{ "GET", "/metrics", operations_metrics,
		.help = "the same and the state of agents and listeners, for Prometheus" },
	{ "GET", "/v1/connections", operations_connections, { "limit", "after", "agent", "listener", "client" },
		.read = input_connections,
		.help = "connections by id, a page at a time: `limit` of them after the id `after`; of one agent, one "
			"listener, one client address or network" },
	{ "GET", "/v1/connections/" ID, operations_connections, .read = input_connection, .help = "one connection" },
	{ "POST", "/v1/connections/" ID "/move", operations_move, .read = input_move, .body = "{\"agent\": NAME}",
		.help = "give it to that agent; answers when the move ended" },
	{ "POST", "/v1/connections/" ID "/rest", operations_rest, .read = input_rest, .body = "{}",
		.help = "let no agent have it until its next record; answers when that is so" },
	{ "POST", "/v1/connections/end", operations_end, { "id", "agent", "listener", "client" }, .read = input_end,
		.body = "{}",
		.help = "end these connections: in order where that cuts nothing off; answers when it is ordered" },
	{ "GET", "/v1/blocks", operations_blocks, .help = "the blocked networks, and how long each of them is" },
	{ "POST", "/v1/blocks", operations_block, { "network", "seconds" }, .read = input_block, .body = "{}",
		.help = "reset the clients of this network, and keep them out: so long, or for good; 0: let them in "
			"again. Also at agents' own listeners" },
	{ "GET", "/v1/agents", operations_agents, .help = "every agent: state, weight, links, load, drain" },
	{ "GET", "/v1/agents/" NAME, operations_agent, .help = "one agent" },
	{ "POST", "/v1/agents/" NAME "/drain", operations_drain, .read = input_drain, .body = "{\"timeout_ms\": N}",
		.help = "give it nothing new and take from it what it has; answers at once, GET tells the progress; "
			"connections that could not leave in time are ended" },
	{ "POST", "/v1/agents/" NAME "/undrain", operations_undrain, .read = input_nothing, .body = "{}",
		.help = "it takes its share again" },
	{ "POST", "/v1/agents/" NAME "/weight", operations_weight, .read = input_weight, .body = "{\"weight\": X}",
		.help = "its share of handshakes by weight, and of client addresses, until this process ends" },
	{ "GET", "/v1/sessions", operations_sessions,
		{ "limit", "after", "server_name", "client", "version", "cipher", "min_age_s", "max_age_s", "family_id",
			"client_certificate" },
		.read = input_sessions,
		.help = "sessions that the agents can resume, a page at a time: at most `limit` of them after the id "
			"`after`, with a server name, of a client address or network, of a TLS version, a cipher "
			"suite, an age, a family, a client certificate" },
	{ "GET", "/v1/sessions/count", operations_session_count,
		{ "server_name", "client", "version", "cipher", "min_age_s", "max_age_s", "family_id",
			"client_certificate" },
		.read = input_session_count, .help = "how many there are, and on each agent" },
	{ "GET", "/v1/sessions/" ID, operations_session, .read = input_session,
		.help = "one session, and which agents hold it" },
	{ "POST", "/v1/sessions/revoke", operations_revoke, .read = input_revoke,
		.body = "{\"session_id\": HEX} or {\"all\": true} or criteria: {\"family_id\": HEX, \"server_name\": "
			"NAME, \"client\": ADDRESS or NETWORK, \"version\": VERSION, \"cipher\": SUITE, \"min_age_s\": "
			"N, \"max_age_s\": N, \"client_certificate\": HEX}",
		.help = "no agent resumes these any more, nor what was resumed from them: a session goes with its "
			"whole family, or all that meet every criterion; answers when every agent that is up has "
			"confirmed or was given up on" },
	{ "POST", "/v1/keys/rotate", operations_rotate, .read = input_nothing, .body = "{}",
		.help = "every agent makes a new sending key and a new ticket key" },
	{ "POST", "/v1/reload", operations_reload, .read = input_nothing, .body = "{}",
		.help = "every process reads its certificates again and reopens its log" },
	{ "GET", "/v1/log-level", operations_log_level, .help = "from which level on each process logs" },
	{ "PUT", "/v1/log-level", operations_log_level, .read = input_log_level,
		.body = "{\"level\": LEVEL} or {\"level\": LEVEL, \"node\": NAME}",
		.help = "debug, info, warning, error, or configured for that of the cluster file; of every process or "
			"one, until its next start" },
};

#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static void show_index(struct exchange *e)
{
	json_t *list = json_array();
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		const struct route *r = &routes[i];
		json_t *query = json_array();
		for (unsigned j = 0; j < QUERY_MAX && r->query[j]; j++)
			json_array_append_new(query, json_string(r->query[j]));
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s*, s:s}", "method", r->method, "path",
						    r->pattern, "query", query, "body", r->body, "help", r->help));
	}
	exchange_answer(e, MHD_HTTP_OK, json_pack("{s:o}", "routes", list));
}

/* Dispatch */

/* The placeholder segment of @pattern; NULL: it has none. */
static const char *find_hole(const char *pattern, size_t *len)
{
	static const char *const placeholders[] = { "/" ID, "/" NAME };
	for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++) {
		const char *at = strstr(pattern, placeholders[i]);
		*len = strlen(placeholders[i]) - 1;
		if (at)
			return at + 1;
	}
	return NULL;
}

/* 1 when @path fits @pattern. Copies the segment in the placeholder's place to @buffer. */
static bool path_fits(const char *pattern, const char *path, char *buffer, size_t cap)
{
	size_t hole_len;
	const char *hole = find_hole(pattern, &hole_len);
	buffer[0] = '\0';
	if (!hole)
		return strcmp(pattern, path) == 0;
	const size_t head = (size_t)(hole - pattern);
	if (strncmp(pattern, path, head) != 0)
		return false;
	const size_t len = strcspn(path + head, "/");
	if (len == 0 || strcmp(hole + hole_len, path + head + len) != 0)
		return false;
	snprintf(buffer, cap, "%.*s", (int)(len < cap ? len : cap - 1), path + head);
	return true;
}

static bool query_takes(const struct route *r, const char *name)
{
	for (unsigned i = 0; i < QUERY_MAX && r->query[i]; i++) {
		if (strcmp(r->query[i], name) == 0)
			return true;
	}
	return false;
}

/* A request and its route. */
struct following {
	struct exchange *exchange;
	const struct route *route;
};

static enum MHD_Result on_argument(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	const struct following *f = ctx;
	const char *fault = !query_takes(f->route, name)                 ? "unknown in the query"
			    : input_argument(f->exchange, name) != value ? "twice in the query"
			    : !value || *value == '\0'                   ? "has no value"
									 : NULL;
	if (!fault)
		return MHD_YES;
	exchange_fail(f->exchange, MHD_HTTP_BAD_REQUEST, "'%.80s': %s", name, fault);
	return MHD_NO;
}

/* @segment: that of the path in the place of the placeholder. */
static void follow(const struct route *r, struct exchange *e, const char *segment)
{
	struct following f = { e, r };
	struct control_input in = { .agent = segment, .filter = CSSL__SESSION_FILTER__INIT };
	MHD_get_connection_values(e->connection, MHD_GET_ARGUMENT_KIND, on_argument, &f);
	if (e->state == EXCHANGE_ANSWERED)
		return;
	if (r->show) {
		r->show(e);
		return;
	}
	struct control_request *request = !r->read || r->read(e, segment, &in) ? exchange_ask(e) : NULL;
	if (request)
		r->ask(e->client->control->operations, &in, request);
	json_decref(in.body);
}

/* A path that is exactly a route never fits a placeholder: /v1/sessions/count is no session. */
static bool is_literal(const char *path)
{
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		if (strcmp(routes[i].pattern, path) == 0)
			return true;
	}
	return false;
}

/* The next route behind @r, NULL for the first, that fits the path. Copies the segment in the placeholder's place.
 */
static const struct route *next_fit(const struct route *r, const char *path, char *id, size_t id_cap)
{
	const int literal = is_literal(path);
	for (r = r ? r + 1 : routes; r < routes + ROUTE_COUNT; r++) {
		if (literal ? strcmp(r->pattern, path) == 0 : path_fits(r->pattern, path, id, id_cap))
			return r;
	}
	return NULL;
}

static enum control_role role_for(const struct route *r)
{
	if (r->access == ROUTE_FOR_ALL)
		return CONTROL_ROLE_NONE;
	return strcmp(r->method, MHD_HTTP_METHOD_GET) == 0 ? CONTROL_ROLE_READ : CONTROL_ROLE_OPERATE;
}

enum control_role routes_role(const char *method, const char *path)
{
	char id[ID_ROOM];
	for (const struct route *r = NULL; (r = next_fit(r, path, id, sizeof id));) {
		if (strcmp(r->method, method) == 0)
			return role_for(r);
	}
	return CONTROL_ROLE_READ;
}

void routes_dispatch(struct exchange *e)
{
	char id[ID_ROOM] = "", allow[ALLOW_MAX] = "";
	for (const struct route *r = NULL; (r = next_fit(r, e->path, id, sizeof id));) {
		if (strcmp(r->method, e->method) == 0) {
			follow(r, e, id);
			return;
		}
		const size_t len = strlen(allow);
		snprintf(allow + len, sizeof allow - len, "%s%s", len ? ", " : "", r->method);
	}
	if (*allow) {
		exchange_header(e, MHD_HTTP_HEADER_ALLOW, allow);
		exchange_fail(e, MHD_HTTP_METHOD_NOT_ALLOWED, "%s is not for %s, but %s is", e->method, e->path, allow);
	} else {
		exchange_fail(e, MHD_HTTP_NOT_FOUND, "no such path: %.200s; GET /v1 lists them", e->path);
	}
}
