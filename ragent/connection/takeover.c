/* takeover.c: the conditions for each decision, in the order in which they are checked. */
#include "ragent/connection/takeover.h"

#include "ragent/connection/connection_life.h"

static enum takeover takeover_in_handshake(const struct connection *c, const struct kept *kept)
{
	/* the client has records of this server, and no other agent has its keys; or the hello is not kept any more */
	if (c->now.position.server_records > 0 || kept->first_record > 0)
		return TAKEOVER_END;
	return c->now.restarts < TAKEOVER_RESTARTS_MAX ? TAKEOVER_RESTART : TAKEOVER_REFUSE;
}

/* Could an observer between the hosts have read records that the lost agent sealed and RAgent never got? */
static bool takeover_others_can_read(const struct conf_agent *lost)
{
	return lost->link_protection == LINK_TRUSTED && !address_is_local((const struct sockaddr *)&lost->link);
}

/* An adopter could seal nothing, or nothing that reaches the client. */
static bool takeover_nobody_can_adopt(const struct connection *c, const struct conf_agent *lost)
{
	if (!c->now.copies.current || c->now.server_side != SERVER_OPEN)
		return true;
	/* the successor's KeyUpdate might reuse the nonce of a record that an observer has (law 5) */
	return takeover_others_can_read(lost) && c->now.agreed && c->now.agreed->protocol_version == TLS13_VERSION_WIRE;
}

/* RAgent does not know the meaning of the bytes that passed. */
static enum takeover takeover_for_bytes(const struct connection *c, const struct kept *kept)
{
	const bool untouched = c->now.position.response == POSITION_AT_CHECKPOINT && kept_sent_records(kept) == 0;

	return untouched && c->front->conf->on_agent_loss == CONF_RECONNECT ? TAKEOVER_ADOPT : TAKEOVER_ALERT;
}

enum takeover takeover_decide(const struct connection *c, const struct conf_agent *lost)
{
	const struct service_traits *service = connection_service(c);
	const struct kept kept = connection_kept(c);
	const unsigned losses = c->busy ? c->busy->exposure.losses : 0;

	/* a KEPT or HANDED_OFF that came only in part counts as none */
	if (connection_phase(c) == CONNECTION_HANDSHAKING || c->now.position.stage == POSITION_HANDSHAKE)
		return takeover_in_handshake(c, &kept);
	if ((c->now.server_side == SERVER_CLOSE_NOTIFY || c->now.server_side == SERVER_SAID_LAST) &&
		service->ends == SERVICE_JUDGES_ENDS)
		return TAKEOVER_OVER;
	if (takeover_nobody_can_adopt(c, lost) || losses > EXPOSURE_LOSSES_MAX)
		return TAKEOVER_END;
	if (losses == EXPOSURE_LOSSES_MAX)
		return TAKEOVER_ALERT;
	if (service->loss == SERVICE_CUT_BY_LOSS)
		return takeover_for_bytes(c, &kept);
	if (c->now.position.response == POSITION_PARTLY_DELIVERED)
		return c->busy && c->busy->note.current ? TAKEOVER_ADOPT : TAKEOVER_ALERT;
	if (c->now.position.response == POSITION_NOTHING_DELIVERED || kept.next_record > kept.consumed_record)
		return TAKEOVER_ADOPT;
	return service->rest == SERVICE_MAY_REST ? TAKEOVER_REST : TAKEOVER_ADOPT;
}
