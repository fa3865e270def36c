/* broadcast_message.c: framing and checks. sess_obj.h checks the content of a session object. */
#include "sslagent/cluster/broadcast/broadcast_message.h"

#include "proto/error.h"
#include "proto/sess_obj.h"

static int message_id_check(const ProtobufCBinaryData *bytes, size_t len)
{
	return bytes->len == len ? 0 : CSSL_E_RANGE;
}

static int adopted_check(const Cssl__Adopted *a)
{
	if (a->epoch == 0 || a->epoch > UINT16_MAX)
		return CSSL_E_RANGE;
	return message_id_check(&a->connection_id, CONNECTION_ID_LEN);
}

static int heartbeat_check(const Cssl__Heartbeat *h)
{
	if (h->shared_clock_ms < 0 || h->shared_clock_ms > INT64_MAX / 2)
		return CSSL_E_RANGE;
	return h->n_highest <= SENDER_THREADS_MAX ? 0 : CSSL_E_RANGE;
}

static int proof_check(const Cssl__Proof *p)
{
	if (p->n_counter == 0 || p->n_counter > SENDER_THREADS_MAX || p->n_counter != p->n_highest)
		return CSSL_E_RANGE;
	return message_id_check(&p->challenge, CHALLENGE_LEN);
}

/* Every content has a row, so that no part of the agent reads a field that was not checked (law 16). */
static int message_check(const Cssl__BroadcastMessage *m)
{
	switch (m->what_case) {
	case CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ: return m->ssl_obj.len > 0 ? 0 : CSSL_E_RANGE;
	case CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED: return adopted_check(m->adopted);
	case CSSL__BROADCAST_MESSAGE__WHAT_GONE:
		return m->gone->epoch > UINT16_MAX ? CSSL_E_RANGE
						   : message_id_check(&m->gone->connection_id, CONNECTION_ID_LEN);
	case CSSL__BROADCAST_MESSAGE__WHAT_PULL: return message_id_check(&m->pull, SESSION_ID_LEN);
	case CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT: return heartbeat_check(m->heartbeat);
	case CSSL__BROADCAST_MESSAGE__WHAT_GAP:
		return m->gap->first > 0 && m->gap->first <= m->gap->last ? 0 : CSSL_E_RANGE;
	case CSSL__BROADCAST_MESSAGE__WHAT_PROBE: return message_id_check(&m->probe, CHALLENGE_LEN);
	case CSSL__BROADCAST_MESSAGE__WHAT_PROOF: return proof_check(m->proof);
	case CSSL__BROADCAST_MESSAGE__WHAT_ABSENT: return message_id_check(&m->absent, SESSION_ID_LEN);
	case CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE: return message_id_check(&m->too_large, SESSION_ID_LEN);
	case CSSL__BROADCAST_MESSAGE__WHAT_FORGOTTEN: return 0;
	default: return CSSL_E_TYPE; /* from a later release, or empty */
	}
}

int broadcast_message_next(struct wire_reader *in, struct scratch *scratch, const Cssl__BroadcastMessage **out)
{
	size_t len = wire_u16(in);
	const uint8_t *bytes = wire_bytes(in, len);

	if (!bytes)
		return CSSL_E_TRUNCATED;
	*out = cssl__broadcast_message__unpack(&scratch->allocator, len, bytes);
	return *out ? message_check(*out) : CSSL_E_TRUNCATED;
}
