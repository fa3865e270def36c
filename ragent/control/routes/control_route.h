/* control_route.h: a route of the control API: a row of one of the tables below. Each table stands beside the readers
 * of its words, so a new route is one row and, if it takes words, one function in the same file.
 */
#pragma once

#include "ragent/control/http/control_exchange.h"
#include "ragent/control/operations/operations.h"

/* The placeholders of a pattern. */
#define ROUTE_ID   "ID"
#define ROUTE_NAME "NAME"

#define ROUTE_QUERY_MAX 10u

struct route {
	const char *method, *pattern;       /* @method NULL: the end of the table */
	operation *ask;                     /* NULL: @show */
	const char *query[ROUTE_QUERY_MAX]; /* names it takes */
	/* Reads path, query and body into @in; false: it told the client what is wrong. @segment: that of the path in
	 * the place of the placeholder. NULL: there is nothing to read besides the path. */
	bool (*read)(struct exchange *e, const char *segment, struct control_input *in);
	const char *body; /* NULL: the body is ignored */
	const char *help;
	void (*show)(struct exchange *e); /* answers at once */
	enum { ROUTE_BY_METHOD, ROUTE_FOR_ALL } access;
};

/* routes_connections.c, routes_agents.c, routes_sessions.c */
extern const struct route connection_routes[], agent_routes[], process_routes[], session_routes[];
