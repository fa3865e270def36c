/* connection_export.c: the data that an owner leaves for its successors: the facts of its session, its live part as
 * a sealed copy and by broadcast, and after the handshake KEPT (owner) or HANDED_OFF (frozen).
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/audit.h"
#include "net/log_pace.h"
#include "proto/error.h"
#include "proto/sealed_copy.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

#define LIVE_PART_LIFETIME_S (7u * 24u * 3600u)

/* --- facts --- */

/* Keep the facts of a session as an encoded SESS_OBJ without keys. It has a tenth of the struct's size, and copies
 * are made from it; a certificate that would make them too long is taken out of @from. */
int connection_keep_facts(struct connection *c, struct sess_obj *from)
{
	struct sess_obj facts = *from;

	facts.live = NULL;
	facts.session = NULL;
	facts.memory = NULL;
	ptrdiff_t len = sess_obj_encoded_len(&facts);
	if (len > (ptrdiff_t)SEALED_COPY_FACTS_MAX) { /* the session has it still */
		facts.certificate = from->certificate = NULL;
		facts.certificate_len = from->certificate_len = 0;
		len = sess_obj_encoded_len(&facts);
	}
	if (len < 0)
		return (int)len;
	c->facts = len <= CONNECTION_FACTS_BLOCK ? slabs_take(&c->home->facts_blocks) : malloc((size_t)len);
	if (!c->facts)
		return CSSL_E_NO_MEMORY;
	c->facts_len = (uint32_t)len;
	len = sess_obj_encode(&facts, c->facts, (size_t)len);
	return len < 0 ? (int)len : 0;
}

void connection_drop_facts(struct connection *c)
{
	if (c->facts_len <= CONNECTION_FACTS_BLOCK)
		slabs_give(&c->home->facts_blocks, c->facts);
	else
		free(c->facts);
	c->facts = NULL;
}

int connection_facts(const struct connection *c, struct sess_obj *out)
{
	return sess_obj_decode(c->facts, c->facts_len, out);
}

void connection_account(const struct connection *c, struct connection_account *out)
{
	struct sess_obj o;

	*out = (struct connection_account){
		.id = &c->id, .cause = connection_cause(c), .client_bytes = c->record_bytes, .server_bytes = c->sent
	};
	if (c->handshake)
		handshake_hello_facts(c->handshake, &out->facts);
	else if (c->facts && connection_facts(c, &o) == 0) {
		out->facts = o.facts;
		sess_obj_destroy(&o);
	}
}

static enum conf_service service_of(const struct connection *c, const char *alpn, const struct conf_alpn **row)
{
	const struct conf_listener *l = tls_listener_conf(c->listener);

	*row = NULL;
	for (size_t i = 0; alpn[0] && i < l->alpn_count; i++) {
		if (strcmp(l->alpn[i].protocol, alpn) == 0) {
			*row = &l->alpn[i];
			return l->alpn[i].service;
		}
	}
	return l->service;
}

void connection_choose_service(struct connection *c, const struct session_facts *facts)
{
	const struct conf_alpn *row;

	service_destroy(&c->service);
	service_init(&c->service, service_of(c, facts->alpn, &row), &c->home->service_blocks);
	service_of_listener(&c->service, tls_listener_conf(c->listener));
	c->backend_name = row ? row->backend : tls_listener_conf(c->listener)->backend;
}

/* --- copies --- */

/* Each export has a token and a time of its own: RAgent shows the token, agents check the time. */
static void date_part(struct connection *c, struct live_part *part)
{
	randombytes_buf(part->token, sizeof part->token);
	memcpy(c->token, part->token, sizeof c->token);
	part->made_ms = cluster_shared_clock_ms(c->home->cluster);
	part->remaining_s = LIVE_PART_LIFETIME_S;
}

static int seal_copy(struct connection *c, struct sess_obj *obj, struct live_part *part, uint8_t **out, size_t *out_len)
{
	uint8_t copy[SEALED_COPY_MAX];

	date_part(c, part);
	obj->live = part;
	ptrdiff_t len = sealed_copy_seal(c->home->agents_key, obj, copy, sizeof copy);
	if (len < 0)
		return (int)len;
	*out = malloc((size_t)len);
	if (!*out)
		return CSSL_E_NO_MEMORY;
	memcpy(*out, copy, (size_t)len);
	*out_len = (size_t)len;
	return 0;
}

bool connection_can_move(const struct connection *c)
{
	return carrier_moves(c->carrier) && tls_listener_conf(c->listener)->migration == CONF_MIGRATION_ON;
}

/* Sends only the copy: a client can ask for new keys as often as it likes, and a broadcast would cost every agent.
 * The peers now know older generations only, so an adopter uses the copy. */
int connection_send_copy(struct connection *c, enum live_moment moment)
{
	struct sess_obj obj;
	struct live_part part;
	Cssl__LinkCopy copy = CSSL__LINK_COPY__INIT;

	if (moment == LIVE_AFTER_KEY_UPDATE)
		audit_copied(c->id.bytes, c->epoch);
	if (!connection_can_move(c))
		return 0;
	int r = connection_facts(c, &obj);
	if (r < 0)
		return r;
	r = live_describe(c->live, moment, &part);
	if (r == 0)
		r = seal_copy(c, &obj, &part, &copy.sealed_copy.data, &copy.sealed_copy.len);
	if (r == 0) {
		copy.read_generation = part.read_generation;
		copy.write_generation = part.write_generation;
		c->carrier->ops->say(c->carrier, FRAME_COPY, &copy.base);
		free(copy.sealed_copy.data);
	}
	obj.live = NULL;
	sess_obj_destroy(&obj);
	live_part_wipe(&part);
	return r;
}

/* --- export --- */

static void fill_position(const struct connection *c, const struct live_part *part, Cssl__Position *p)
{
	p->client_records = c->client_records - (c->live ? live_unfinished(c->live) : 0);
	p->offset = c->skip;
	p->read_generation = part->read_generation;
	p->read_sequence = part->read_sequence;
	p->server_records = c->server_records;
	p->write_generation = part->write_generation;
	p->write_sequence = part->write_sequence;
}

static void fill_handshake(const struct session_facts *f, const struct handshake_facts *h, Cssl__Handshake *out)
{
	out->protocol_version = f->protocol_version;
	out->cipher_suite = f->cipher_suite;
	out->resumed = h->kind == HANDSHAKE_RESUMED;
	out->server_name = (char *)f->server_name;
	out->alpn = (char *)f->alpn;
	out->session_id = (ProtobufCBinaryData){ f->session_id_len, (uint8_t *)f->session_id };
	out->family_id = (ProtobufCBinaryData){ FAMILY_ID_LEN, (uint8_t *)f->family_id };
	out->ja4 = (ProtobufCBinaryData){ f->ja4.kind[0] ? sizeof f->ja4 : 0, (uint8_t *)&f->ja4 };
}

/* Send KEPT or HANDED_OFF, with the copy if this connection can move at all. */
int connection_announce(struct connection *c, enum frame_type type, struct sess_obj *obj, struct live_part *part,
	Cssl__Handshake *handshake, Cssl__BackendHalf backend)
{
	Cssl__LinkLive live = CSSL__LINK_LIVE__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;
	int r = 0;

	if (!carrier_moves(c->carrier))
		return 0;
	if (connection_can_move(c)) {
		r = seal_copy(c, obj, part, &live.sealed_copy.data, &live.sealed_copy.len);
		if (r < 0)
			return r;
	}
	fill_position(c, part, &position);
	live.position = &position;
	live.handshake = handshake;
	live.backend = backend;
	live.at_checkpoint = connection_at_checkpoint(c);
	live.read_closed = c->from_client != HALF_OPEN;
	live.write_closed = c->from_backend == HALF_CLOSED;
	c->carrier->ops->say(c->carrier, type, &live.base);
	free(live.sealed_copy.data);
	return 0;
}

void connection_tell_peers(struct connection *c, const struct sess_obj *obj)
{
	if (connection_can_move(c))
		cluster_share_live(c->home->cluster, c->home->worker, obj);
}

int connection_own(struct connection *c, const struct live_part *part, uint16_t suite, const struct live_position *at,
	uint16_t epoch, enum live_start start)
{
	int r = live_create(c->home->live_pool, part, suite, at, epoch, start, &c->live);

	if (r == 0)
		c->epoch = epoch;
	return r;
}

struct seen_mark connection_sealed_mark(const struct connection *c)
{
	struct seen_mark mark = { .epoch = c->epoch };

	if (c->live) {
		const struct live_position at = live_position(c->live);
		mark.write_generation = at.write_generation;
		mark.write_sequence = at.write_sequence;
	} else if (c->frozen) {
		mark.write_generation = c->frozen->write_generation;
		mark.write_sequence = c->frozen->write_sequence;
	}
	return mark;
}

uint16_t connection_seal_owner(const struct connection *c)
{
	return carrier_moves(c->carrier) ? (uint16_t)(worker_index(c->home->worker) + 1) : SEEN_NO_OWNER;
}

/* The first ownership, under new keys. */
static int claim_handshake(struct connection *c, const struct live_part *part, uint16_t owner)
{
	const struct seen_claim claim = {
		.at = { 1, part->write_generation, part->write_sequence }, .owner = owner, .start = CLAIM_BEGINS
	};

	return cluster_claim(c->home->cluster, &c->id, &claim);
}

static int export_kept(struct connection *c, struct sess_obj *obj, Cssl__Handshake *handshake)
{
	struct live_part *part = obj->live;
	const struct live_position at = { part->read_generation, part->write_generation, part->read_sequence,
		part->write_sequence };
	int r = claim_handshake(c, part, connection_seal_owner(c));

	if (r == 0)
		r = connection_own(c, part, obj->facts.cipher_suite, &at, 1, LIVE_CONTINUES);
	if (r == 0)
		r = connection_announce(c, FRAME_KEPT, obj, part, handshake, CSSL__BACKEND_HALF__BACKEND_NONE);
	if (r < 0)
		return r;
	connection_tell_peers(c, obj);
	connection_to(c, CONNECTION_OWNER);
	return 0;
}

static int export_handed_off(struct connection *c, struct sess_obj *obj, Cssl__Handshake *handshake)
{
	int r = claim_handshake(c, obj->live, SEEN_NO_OWNER);

	if (r < 0)
		return r;
	c->frozen = slabs_take(&c->home->frozen);
	if (!c->frozen)
		return CSSL_E_NO_MEMORY;
	*c->frozen = *obj->live;
	c->frozen->exported = EXPORT_AT_FREEZE;
	connection_to(c, CONNECTION_FROZEN);
	count(COUNT_HANDED_OFF);
	r = connection_announce(c, FRAME_HANDED_OFF, obj, c->frozen, handshake, CSSL__BACKEND_HALF__BACKEND_NONE);
	if (r == 0)
		connection_tell_peers(c, obj);
	return r;
}

void connection_count_offered_certificate(const struct connection *c)
{
	static const char *const causes[] = { [CERTIFICATE_OVER] = "over", [CERTIFICATE_REVOKED] = "revoked" };
	enum certificate_standing standing = handshake_offered_certificate(c->handshake);

	if (standing == CERTIFICATE_STANDS)
		return;
	count(COUNT_RESUMPTIONS_REFUSED_CERTIFICATE);
	log_paced(LOG_INFO, &c->id, "session not resumed", "client_certificate=%s", causes[standing]);
}

static void count_handshake(const struct connection *c, const struct session_facts *f, const struct handshake_facts *h)
{
	static const enum agent_counter by_kind[] = { [RESUMED_NOT] = COUNT_HANDSHAKES_FULL,
		[RESUMED_BY_ID] = COUNT_RESUMED_BY_ID,
		[RESUMED_BY_PSK] = COUNT_RESUMED_BY_PSK,
		[RESUMED_BY_TICKET] = COUNT_RESUMED_BY_TICKET };

	count(by_kind[h->by]);
	count_by(COUNT_SESSIONS_WITHOUT_EMS, h->sessions_without_ems);
	if (h->kind == HANDSHAKE_RESUMED)
		count(COUNT_HANDSHAKES_RESUMED);
	if (h->early_data == EARLY_DATA_SKIPPED)
		count(COUNT_EARLY_DATA_SKIPPED);
	c->home->handshake_us = (c->home->handshake_us * 7 + c->handshake_ns / 1000) / 8;
	count(f->protocol_version == TLS13_VERSION_WIRE ? COUNT_HANDSHAKES_TLS13 : COUNT_HANDSHAKES_TLS12);
}

int connection_export(struct connection *c)
{
	struct sess_obj obj = { 0 };
	struct handshake_facts facts;
	Cssl__Handshake handshake = CSSL__HANDSHAKE__INIT;
	int r = handshake_export(c->handshake, &obj, &facts);

	if (r < 0)
		return r;
	connection_count_offered_certificate(c);
	count_handshake(c, &obj.facts, &facts);
	if (facts.kind == HANDSHAKE_FULL && obj.certificate_len)
		obj.facts.certificate_seen = CERTIFICATE_IN_CONNECTION;
	connection_choose_service(c, &obj.facts);
	fill_handshake(&obj.facts, &facts, &handshake);
	r = connection_keep_facts(c, &obj);
	if (r == 0 && c->disposition == CSSL__LINK_OPEN__DISPOSITION__HAND_OFF)
		r = export_handed_off(c, &obj, &handshake);
	else if (r == 0)
		r = export_kept(c, &obj, &handshake);
	sess_obj_destroy(&obj);
	connection_drop_handshake(c);
	return r;
}
