/* control_routes.c: the routes that belong to no subject, and the search through all of them. */
#include "ragent/control/routes/control_routes.h"

#include <stdio.h>
#include <string.h>

#include "ragent/control/routes/control_input.h"
#include "ragent/control/routes/control_route.h"
#include "ragent/dashboard/dashboard.h"

#define ALLOW_MAX 32u
#define ID_ROOM   (2 * SESSION_ID_LEN + 2) /* one byte more than the longest id, so that a longer one is noticed */

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

static const struct route general_routes[] = {
	{ "GET", "/", NULL, .show = show_page, .help = "the dashboard, a page for people", .access = ROUTE_FOR_ALL },
	{ "GET", "/healthz", NULL, .show = show_health, .help = "this process lives", .access = ROUTE_FOR_ALL },
	{ "GET", "/readyz", operations_ready,
		.help = "an agent is ready, and one of its backends answers as far as it knows",
		.access = ROUTE_FOR_ALL },
	{ "GET", "/v1", NULL, .show = show_index, .help = "this list" },
	{ "GET", "/v1/openapi.yaml", NULL, .show = show_openapi, .help = "all routes in full, as an OpenAPI document" },
	{ "GET", "/v1/status", operations_status, .help = "listeners, agents and their links, how many connections" },
	{ "GET", "/v1/listeners", operations_listeners,
		.help = "every listener: addresses, service, connections, handshakes, bytes, refusals" },
	{ "GET", "/v1/mail", operations_mail, .help = "the counts of the smtpproxy that `mail_status` names" },
	{ "GET", "/v1/counters", operations_counters, .help = "what RAgent and every agent counted since their start" },
	{ "GET", "/v1/certificates", operations_certificates,
		.help = "the certificates that each agent has loaded: names, file, issuer, end, days left" },
	{ "GET", "/metrics", operations_metrics,
		.help = "all counters, and the state of agents and listeners, for Prometheus" },
	{ .method = NULL },
};

/* In the order of the index. */
static const struct route *const tables[] = {
	general_routes,
	connection_routes,
	agent_routes,
	session_routes,
	process_routes,
};
#define EACH_ROUTE(r)                                                                                                  \
	for (size_t table_ = 0; table_ < sizeof tables / sizeof tables[0]; table_++)                                   \
		for (const struct route *r = tables[table_]; r->method; r++)

static void show_index(struct exchange *e)
{
	json_t *list = json_array();
	EACH_ROUTE(r)
	{
		json_t *query = json_array();
		for (unsigned j = 0; j < ROUTE_QUERY_MAX && r->query[j]; j++)
			json_array_append_new(query, json_string(r->query[j]));
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s*, s:s}", "method", r->method, "path",
						    r->pattern, "query", query, "body", r->body, "help", r->help));
	}
	exchange_answer(e, MHD_HTTP_OK, json_pack("{s:o}", "routes", list));
}

/* --- the search --- */

/* True when @path fits @pattern. Copies the segment in the placeholder's place to @buffer. */
static bool route_fits(const char *pattern, const char *path, char *buffer, size_t cap)
{
	const char *id = strstr(pattern, "/" ROUTE_ID), *hole = id ? id : strstr(pattern, "/" ROUTE_NAME);
	buffer[0] = '\0';
	if (!hole)
		return strcmp(pattern, path) == 0;
	const size_t head = (size_t)(++hole - pattern);
	if (strncmp(pattern, path, head) != 0)
		return false;
	const size_t len = strcspn(path + head, "/");
	if (len == 0 || strcmp(hole + strcspn(hole, "/"), path + head + len) != 0)
		return false;
	snprintf(buffer, cap, "%.*s", (int)(len < cap ? len : cap - 1), path + head);
	return true;
}

static bool route_takes(const struct route *r, const char *name)
{
	for (unsigned i = 0; i < ROUTE_QUERY_MAX && r->query[i]; i++) {
		if (strcmp(r->query[i], name) == 0)
			return true;
	}
	return false;
}

/* A path that is exactly a route never fits a placeholder: /v1/sessions/count is no session. */
static bool route_is_literal(const char *path)
{
	EACH_ROUTE(r)
	{
		if (strcmp(r->pattern, path) == 0)
			return true;
	}
	return false;
}

/* The route of that method and path; @segment: what stands in the path in the place of the placeholder. NULL: there is
 * none, and @allow has the methods that the path has. */
static const struct route *route_find(
	const char *method, const char *path, char segment[static ID_ROOM], char allow[static ALLOW_MAX])
{
	const bool literal = route_is_literal(path);
	segment[0] = allow[0] = '\0';
	EACH_ROUTE(r)
	{
		if (literal ? strcmp(r->pattern, path) != 0 : !route_fits(r->pattern, path, segment, ID_ROOM))
			continue;
		if (strcmp(r->method, method) == 0)
			return r;
		const size_t len = strlen(allow);
		snprintf(allow + len, ALLOW_MAX - len, "%s%s", len ? ", " : "", r->method);
	}
	return NULL;
}

enum control_role control_routes_role(const char *method, const char *path)
{
	char segment[ID_ROOM], allow[ALLOW_MAX];
	const struct route *r = route_find(method, path, segment, allow);
	if (r && r->access == ROUTE_FOR_ALL)
		return CONTROL_ROLE_NONE;
	return r && strcmp(method, MHD_HTTP_METHOD_GET) != 0 ? CONTROL_ROLE_OPERATE : CONTROL_ROLE_READ;
}

/* --- a request and its route --- */

struct following {
	struct exchange *exchange;
	const struct route *route;
};

static enum MHD_Result on_argument(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	const struct following *f = ctx;
	const char *fault = !route_takes(f->route, name)                 ? "unknown in the query"
			    : input_argument(f->exchange, name) != value ? "twice in the query"
			    : !value || *value == '\0'                   ? "has no value"
									 : NULL;
	if (!fault)
		return MHD_YES;
	exchange_fail(f->exchange, MHD_HTTP_BAD_REQUEST, "'%.80s': %s", name, fault);
	return MHD_NO;
}

static void route_follow(const struct route *r, struct operations *o, struct exchange *e, const char *segment)
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
		r->ask(o, &in, request);
	json_decref(in.body);
}

void control_routes_follow(struct operations *o, struct exchange *e)
{
	char segment[ID_ROOM], allow[ALLOW_MAX];
	const struct route *r = route_find(e->method, e->path, segment, allow);
	if (r) {
		route_follow(r, o, e, segment);
	} else if (*allow) {
		exchange_header(e, MHD_HTTP_HEADER_ALLOW, allow);
		exchange_fail(e, MHD_HTTP_METHOD_NOT_ALLOWED, "%s is not for %s, but %s is", e->method, e->path, allow);
	} else {
		exchange_fail(e, MHD_HTTP_NOT_FOUND, "no such path: %.200s; GET /v1 lists them", e->path);
	}
}
