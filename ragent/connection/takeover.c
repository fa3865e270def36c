/* takeover.c: the conditions for each decision, in the order in which they are checked. */
#include "ragent/connection/takeover.h"

#include "proto/tls_record.h"
#include "ragent/connection/exposure.h"

static enum takeover decide_in_handshake(const struct takeover_facts *f)
{
	/* the client has records of this server, and no other agent has its keys */
	if (f->server_records > 0 || f->from_start == TAKEOVER_SOME_DROPPED)
		return TAKEOVER_END;
	return f->restarts < TAKEOVER_RESTARTS_MAX ? TAKEOVER_RESTART : TAKEOVER_REFUSE;
}

/* An adopter could seal nothing, or nothing that reaches the client. */
static int nobody_can_adopt(const struct takeover_facts *f)
{
	if (f->copy == TAKEOVER_NO_COPY || f->client != TAKEOVER_CLIENT_LISTENS)
		return 1;
	/* the successor's KeyUpdate might reuse the nonce of a record that an observer has (law 5) */
	return f->link == TAKEOVER_LINK_READABLE && f->protocol_version == TLS13_VERSION_WIRE;
}

/* RAgent does not know the meaning of the bytes that passed. */
static enum takeover decide_for_bytes(const struct takeover_facts *f)
{
	int untouched = f->response == POSITION_AT_CHECKPOINT && f->sent_records == 0;

	return untouched && f->on_agent_loss == CONF_RECONNECT ? TAKEOVER_ADOPT : TAKEOVER_ALERT;
}

enum takeover takeover_decide(const struct takeover_facts *f)
{
	if (f->stage == POSITION_HANDSHAKE)
		return decide_in_handshake(f);
	if (f->client == TAKEOVER_CLIENT_TOLD_LAST && f->service->ends == SERVICE_JUDGES_ENDS)
		return TAKEOVER_OVER;
	if (nobody_can_adopt(f) || f->losses > EXPOSURE_LOSSES_MAX)
		return TAKEOVER_END;
	if (f->losses == EXPOSURE_LOSSES_MAX)
		return TAKEOVER_ALERT;
	if (f->service->loss == SERVICE_CUT_BY_LOSS)
		return decide_for_bytes(f);
	if (f->response == POSITION_PARTLY_DELIVERED)
		return f->download == TAKEOVER_HAS_DOWNLOAD ? TAKEOVER_ADOPT : TAKEOVER_ALERT;
	if (f->response == POSITION_NOTHING_DELIVERED || f->sent_records > 0 || f->unsent_records > 0)
		return TAKEOVER_ADOPT;
	return f->service->rest == SERVICE_MAY_REST ? TAKEOVER_REST : TAKEOVER_ADOPT;
}

const char *takeover_name(enum takeover t)
{
	static const char *const names[] = {
		[TAKEOVER_RESTART] = "restart",
		[TAKEOVER_REFUSE] = "refuse",
		[TAKEOVER_REST] = "rest",
		[TAKEOVER_ADOPT] = "adopt",
		[TAKEOVER_ALERT] = "alert",
		[TAKEOVER_OVER] = "over",
		[TAKEOVER_END] = "end",
	};

	return names[t];
}
