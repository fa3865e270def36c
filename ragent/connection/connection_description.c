/* connection_description.c: what people see of a connection that lives. The line of its end is in connection_end.c. */
#include <string.h>

#include "ragent/connection/connection_body.h"
#include "ragent/connection/connection_description.h"
#include "ragent/dispatch/agents.h"

const char *connection_client_text(const struct connection *c, char text[static ADDRESS_TEXT_MAX])
{
	struct sockaddr_storage client;

	endpoint_sockaddr(&c->endpoints.client, c->endpoints.client_port, &client);
	return address_format((struct sockaddr *)&client, text);
}

/* What a client says in clear has no records. */
static uint64_t client_records(const struct connection *c)
{
	if (!c->busy)
		return c->now.position.now.client_records;
	return c->busy->kept.unit == KEPT_BYTES ? 0 : c->busy->kept.next_record;
}

void connection_describe(const struct connection *c, struct connection_description *out)
{
	const struct agents *agents = c->home->shared->agents;
	const struct agreed *a = c->now.agreed;
	uint64_t now_ms = connection_now_ms(c);

	*out = (struct connection_description){ .id = c->id,
		.listener = c->front->conf->name,
		.state = connection_state_name(c->now.state),
		.owner = c->now.state == CONNECTION_OWNED || c->now.state == CONNECTION_MOVING
				 ? agents_name(agents, c->now.owner)
				 : NULL,
		.handshake_agent =
			c->now.handshake_agent == NO_AGENT ? NULL : agents_name(agents, c->now.handshake_agent),
		.affinity_agent = c->now.affinity_agent == NO_AGENT ? NULL : agents_name(agents, c->now.affinity_agent),
		.preamble_agent = connection_speaks_clear(c) && c->now.current.link
					  ? agents_name(agents, link_agent(c->now.current.link))
					  : NULL,
		.epoch = c->now.epoch,
		.moves = c->now.moves,
		.age_ms = now_ms - c->now.accepted_ms,
		.idle_ms = now_ms - c->now.active_ms,
		.client_records = client_records(c),
		.client_bytes = c->now.client_bytes,
		.server_records = c->now.position.server_records,
		.server_bytes = c->now.queued,
		.read_generation = c->now.position.now.read_generation,
		.write_generation = c->now.position.write_generation };
	endpoint_sockaddr(&c->endpoints.client, c->endpoints.client_port, &out->client);
	endpoint_sockaddr(&c->endpoints.server, c->endpoints.server_port, &out->server);
	if (!a)
		return;
	out->protocol_version = a->protocol_version;
	out->cipher_suite = a->cipher_suite;
	out->handshake = a->resumed ? HANDSHAKE_RESUMED : HANDSHAKE_FULL;
	out->server_name = agreed_server_name(a);
	out->alpn = agreed_alpn(a);
	memcpy(out->session_id, a->session_id, a->session_id_len);
	out->session_id_len = a->session_id_len;
	memcpy(out->family_id, a->family_id, FAMILY_ID_LEN);
}
