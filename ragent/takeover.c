/* takeover.c: the rule, in the order in which it is asked. What an owner may have told the backend without RAgent
 * hearing of it cannot be undone: only where that is excluded does the connection go on.
 */
#include "ragent/takeover.h"

#include "proto/tls_record.h"

static enum takeover decide_in_handshake(const struct takeover_facts *f)
{
	return f->server_records == 0 && f->from_start == TAKEOVER_ALL_KEPT ? TAKEOVER_RESTART : TAKEOVER_END;
}

enum takeover takeover_decide(const struct takeover_facts *f)
{
	if (f->stage == POSITION_HANDSHAKE)
		return decide_in_handshake(f);
	if (f->copy == TAKEOVER_NO_COPY)
		return TAKEOVER_END;
	/* the successor's KeyUpdate may repeat a nonce of a record that an observer has (design: never two ciphertexts)
	 */
	if (f->link == TAKEOVER_LINK_EXPOSED && f->protocol_version == TLS13_VERSION_WIRE)
		return TAKEOVER_END;
	if (f->response != POSITION_AT_CHECKPOINT || f->sent_records > 0)
		return TAKEOVER_END;
	return f->unsent_records > 0 ? TAKEOVER_ADOPT : TAKEOVER_REST;
}

const char *takeover_name(enum takeover t)
{
	static const char *const names[] = {
		[TAKEOVER_RESTART] = "restart",
		[TAKEOVER_ADOPT] = "adopt",
		[TAKEOVER_REST] = "rest",
		[TAKEOVER_END] = "end",
	};

	return names[t];
}
