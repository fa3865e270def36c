/* live_seal.c: seals this agent's records. Every record goes through live_seal_record(), which keeps law 1: the state
 * must allow it, the nonce is the next of this key, and it is used once. */
#include <assert.h>
#include <string.h>

#include "net/points/audit.h"
#include "net/points/fault.h"
#include "net/points/mutant.h"
#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/live.h"
#include "sslagent/tls/live_internal.h"

#define TLS12_SEQUENCE_END   (1ull << 48) /* the epoch is in the bits above */
#define HANDSHAKE_KEY_UPDATE 24u

size_t live_fragment_max(const struct live *l)
{
	return l->max_fragment ? l->max_fragment : TLS_PLAINTEXT_MAX;
}

size_t live_plaintext_offset(const struct live *l)
{
	return TLS_RECORD_HEADER_LEN + (live_is_tls13(l) ? 0 : live_explicit_nonce_len(l));
}

size_t live_overhead(const struct live *l)
{
	return live_plaintext_offset(l) + RECORD_TAG_LEN + (live_is_tls13(l) ? 1 : 0);
}

static bool tls13_owes_key_update(const struct live *l)
{
	uint64_t limit = live_limit(l);

	return l->owed == OWES_KEY_UPDATE || l->write.sequence >= limit ||
	       (l->read.sequence >= limit && l->asked == ASKED_NOTHING && l->reading == READ_OPEN);
}

enum live_due live_due(const struct live *l)
{
	if (l->state == LIVE_UNCOMMITTED)
		return LIVE_WAITS_FOR_COMMIT;
	if (l->state != LIVE_OWNS)
		return LIVE_NOTHING_DUE;
	if (live_is_tls13(l))
		return tls13_owes_key_update(l) ? LIVE_KEY_UPDATE_DUE : LIVE_NOTHING_DUE;
	if (l->renegotiation == HELLO_WARNING_DUE)
		return LIVE_WARNING_DUE;
	return live_tls12_limit_reached(l) ? LIVE_LIMIT_REACHED : LIVE_NOTHING_DUE;
}

struct sealing {
	uint8_t type;
	const uint8_t *data;
	size_t len;
	uint8_t *out;
};

static int seal_tls13(struct live *l, const struct sealing *s, struct record_operation *o)
{
	tls_record_header_write(
		s->out, TLS_APPLICATION_DATA, TLS12_VERSION_WIRE, (uint16_t)(s->len + 1 + RECORD_TAG_LEN));
	live_nonce_from_sequence(&l->write, o->nonce);
	o->ad = s->out;
	o->ad_len = TLS_RECORD_HEADER_LEN;
	return record_aead_seal(l->pool->aead, &l->write.loaded, o, &s->type);
}

/* R + (epoch << 48) + sequence: no two owners use the same nonce, and no owner uses one of OpenSSL's (which counts
 * from R itself). */
static void put_explicit_nonce(struct live *l, uint8_t *out)
{
	struct wire_reader r = wire_reader(l->nonce_base, sizeof l->nonce_base);
	struct wire_writer w = wire_writer(out, sizeof l->nonce_base);

	/* laws 2 and 5: the epoch makes nonces fresh, whatever the owner before sealed */
	uint64_t epoch = mutant("epoch-dropped") ? 0 : l->epoch;

	wire_put_u64(&w, wire_u64(&r) + (epoch << 48) + l->write.sequence);
}

static int seal_tls12(struct live *l, const struct sealing *s, struct record_operation *o)
{
	size_t explicit_len = live_explicit_nonce_len(l);
	uint8_t *explicit = s->out + TLS_RECORD_HEADER_LEN;
	uint8_t ad[TLS12_AD_LEN];

	tls_record_header_write(
		s->out, s->type, TLS12_VERSION_WIRE, (uint16_t)(explicit_len + s->len + RECORD_TAG_LEN));
	live_nonce_from_sequence(&l->write, o->nonce);
	if (explicit_len > 0) {
		put_explicit_nonce(l, explicit);
		memcpy(o->nonce + l->suite->iv_len, explicit, explicit_len);
	}
	live_tls12_ad(l->write.sequence, s->type, s->len, ad);
	o->ad = ad;
	o->ad_len = sizeof ad;
	return record_aead_seal(l->pool->aead, &l->write.loaded, o, NULL);
}

static void live_audit_sealed(const struct live *l, const struct sealing *s, const uint8_t *nonce, size_t len)
{
	audit_sealed(&(struct audit_sealing){ .connection = l->connection.bytes,
			     .epoch = l->epoch,
			     .suite = l->suite->id,
			     .type = s->type,
			     .key = l->write.keys.key,
			     .key_len = l->suite->key_len,
			     .nonce = nonce },
		s->out, len);
}

static ptrdiff_t live_seal_record(struct live *l, const struct sealing *s)
{
	size_t len = s->len + live_overhead(l);
	struct record_operation o = { .in = s->data, .len = s->len, .out = s->out + live_plaintext_offset(l) };

	/* laws 6 and 7: not while a KeyUpdate is not committed, and never again once it is frozen */
	if (l->state != LIVE_OWNS && !(l->state == LIVE_FROZEN && mutant("frozen-owner-seals")))
		return CSSL_E_STATE;
	if (l->write.sequence >= (live_is_tls13(l) ? UINT64_MAX : TLS12_SEQUENCE_END)) {
		live_move(l, LIVE_ENDED);
		return CSSL_E_EXHAUSTED;
	}
	int r = live_is_tls13(l) ? seal_tls13(l, s, &o) : seal_tls12(l, s, &o);
	if (r < 0) { /* never seal again with the nonce of a half-written record */
		live_move(l, LIVE_ENDED);
		return r;
	}
	live_audit_sealed(l, s, o.nonce, len);
	if (fault_at("live.reuse", NULL, NULL) != FAULT_FAIL)
		l->write.sequence++;
	return (ptrdiff_t)len;
}

ptrdiff_t live_seal(struct live *l, const uint8_t *data, size_t len, uint8_t *out)
{
	assert(len <= live_fragment_max(l));
	/* law 5: in doubt, nothing but the KeyUpdate that is due may use the next nonce */
	if (live_due(l) != LIVE_NOTHING_DUE)
		return CSSL_E_STATE;
	return live_seal_record(l, &(struct sealing){ TLS_APPLICATION_DATA, data, len, out });
}

ptrdiff_t live_seal_alert(struct live *l, enum tls_alert_level level, enum tls_alert description,
	uint8_t out[static LIVE_SMALL_RECORD_MAX])
{
	uint8_t alert[2] = { (uint8_t)level, (uint8_t)description };
	ptrdiff_t len = live_seal_record(l, &(struct sealing){ TLS_ALERT, alert, sizeof alert, out });

	if (len < 0)
		return len;
	if (description == TLS_ALERT_NO_RENEGOTIATION && level == TLS_ALERT_WARNING)
		l->renegotiation = HELLO_REFUSED;
	else
		live_move(l, LIVE_ENDED);
	return len;
}

ptrdiff_t live_seal_key_update(struct live *l, uint8_t out[static LIVE_SMALL_RECORD_MAX])
{
	/* While a takeover's or the client's KeyUpdate is owed it is an answer, of constant content (law 5: at most
	 * one record of constant content repeats a nonce). Else the client's own keys may be near their limit: ask it
	 * for new ones, too. */
	bool request = l->owed == OWES_NOTHING && l->read.sequence >= live_limit(l) && l->asked == ASKED_NOTHING;
	uint8_t message[5] = { HANDSHAKE_KEY_UPDATE, 0, 0, 1, (uint8_t)request };

	if (!live_is_tls13(l) || l->state != LIVE_OWNS || l->write.generation == UINT32_MAX)
		return CSSL_E_STATE;
	ptrdiff_t len = live_seal_record(l, &(struct sealing){ TLS_HANDSHAKE, message, sizeof message, out });
	if (len < 0)
		return len;
	if (fault_at("keyupdate.sealed", NULL, NULL) == FAULT_FAIL || live_step_keys(l, &l->write) < 0) {
		live_move(l, LIVE_ENDED); /* the record must not leave */
		return CSSL_E_CRYPTO;
	}
	l->owed = OWES_NOTHING;
	if (request)
		l->asked = ASKED_KEY_UPDATE;
	/* law 6: else RAgent would not know the generation of the next record */
	if (!mutant("commit-not-awaited"))
		live_move(l, LIVE_UNCOMMITTED);
	return len;
}

void live_committed(struct live *l, uint32_t write_generation)
{
	/* law 6: ACCEPTED of an earlier generation does not commit this one */
	if (write_generation < l->write.generation)
		return;
	if (l->state == LIVE_UNCOMMITTED)
		live_move(l, LIVE_OWNS);
}
