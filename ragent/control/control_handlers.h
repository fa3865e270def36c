/* control_handlers.h: the handler of each route. */
#ifndef CSSL_RAGENT_CONTROL_HANDLERS_H
#define CSSL_RAGENT_CONTROL_HANDLERS_H

#include "ragent/control/control_exchange.h"

#define QUERY_MAX    10u
#define NAME_LEN_MAX 63u

/* The query of a request. */
struct query {
	const char *name[QUERY_MAX], *value[QUERY_MAX];
	unsigned count;
	struct exchange *exchange;
	const struct route *route;
};

/* NULL: the query has no such name. */
const char *query_value(const struct query *q, const char *name);

/* When it returns, @e was answered, or the provider holds its request. @id: the segment of the path in the place of the
 * placeholder. */
typedef void handler(struct exchange *e, const struct query *q, const char *id);

handler handle_health;
handler handle_ready;
handler handle_blocks;
handler handle_block;
handler handle_end;
handler handle_page;
handler handle_openapi;
handler handle_status;
handler handle_listeners;
handler handle_counters;
handler handle_certificates;
handler handle_mail;
handler handle_metrics;
handler handle_connections;
handler handle_connection;
handler handle_move;
handler handle_rest;
handler handle_agents;
handler handle_agent;
handler handle_drain;
handler handle_undrain;
handler handle_weight;

/* control_handlers_sessions.c */
handler handle_sessions;
handler handle_session_count;
handler handle_session;
handler handle_revoke;

handler handle_rotate;
handler handle_reload;
handler handle_log_levels;
handler handle_log_level_change;

#endif
