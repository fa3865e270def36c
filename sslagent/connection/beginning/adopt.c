/* adopt.c: SSL_ID: the agent becomes owner, from its own frozen state, the broadcast or the sealed copy.
 *
 * Agents do not trust RAgent. It has to prove that it was given this connection: by the copy, which the agent opens,
 * or by the token in it, which an agent with the same live part compares. Listener, service, backend and protocol
 * come from the live part. The adopter continues at the position in SSL_ID only if the live part proves that its
 * owner froze exactly there, and if no later owner is known. Otherwise it renews keys or nonces first, or refuses.
 */
#include <string.h>

#include <sodium.h>

#include "net/points/fault.h"
#include "net/points/mutant.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "proto/link_words.h"
#include "proto/sealed_copy.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/beginning/recover.h"
#include "sslagent/connection/connection_life.h"
#include "sslagent/connection/conversation.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

#define REFUSAL_LOG_EVERY_MS 1000u

struct adoption {
	const Cssl__LinkSslId *id;
	struct connection_id connection;
	struct live_position at;
	struct sealed_copy_label shown; /* of the copy; all zero: there is none */
	struct sess_obj obj;
	struct live_part part;
	int64_t made_ms;
	enum live_start start;
	enum claim_start claimed;
	Cssl__LinkAdopted__Source source;
	struct connection *frozen;        /* this agent's own; its backend half comes with it */
	Cssl__LinkRefused__Reason reason; /* of a refusal */
	const char *detail;
};

static int adopt_refuse(struct adoption *a, Cssl__LinkRefused__Reason reason, int error)
{
	a->reason = reason;
	a->detail = cssl_strerror(error);
	return error;
}

/* --- the live part, and whether RAgent was given it --- */

/* Each export has a random token, which only RAgent and other agents got. */
static bool shows_token(const struct adoption *a, const uint8_t token[static ADOPT_TOKEN_LEN])
{
	if (mutant("token-unchecked"))
		return true;
	return !sodium_is_zero(token, ADOPT_TOKEN_LEN) && sodium_memcmp(a->shown.token, token, ADOPT_TOKEN_LEN) == 0;
}

static int take_frozen(struct adoption *a, struct connection *f)
{
	if (!shows_token(a, f->token))
		return CSSL_E_AUTH;
	a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN;
	a->frozen = f;
	if (f->frozen)
		a->part = *f->frozen;
	int r = f->frozen ? 0 : live_describe(f->live, LIVE_NOW, &a->part);
	return r < 0 ? r : kept_facts_read(&f->facts, &a->obj);
}

/* 0; negative: there is none, or it is not the one of RAgent's copy. */
static int take_broadcast(struct connection_home *home, struct adoption *a)
{
	if (fault_at("live.find", NULL, NULL) == FAULT_FAIL ||
		cluster_find_live(home->cluster, &a->connection, (uint16_t)a->id->epoch, a->at.read_generation,
			a->at.write_generation, &a->obj) < 0)
		return CSSL_E_NOT_FOUND;
	if (!shows_token(a, a->obj.live->token)) {
		sess_obj_destroy(&a->obj);
		return CSSL_E_AUTH;
	}
	a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST;
	a->part = *a->obj.live;
	return 0;
}

static int take_copy(struct connection_home *home, struct adoption *a)
{
	uint16_t epoch;

	a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_COPY;
	if (fault_at("copy.open", NULL, NULL) == FAULT_FAIL)
		return CSSL_E_AUTH;
	int r = sealed_copy_open(home->agents_key, &a->connection, a->id->listener, a->id->sealed_copy.data,
		a->id->sealed_copy.len, a->id->copy_age_s, &a->obj, &epoch);
	if (r == 0 && epoch >= a->id->epoch)
		r = CSSL_E_MISMATCH;
	if (r == 0)
		a->part = *a->obj.live;
	return r;
}

/* Tries the own frozen state, then the broadcast, then the sealed copy. 0 or negative. */
static int find_live_part(struct connection_home *home, struct adoption *a)
{
	struct connection *f = connection_table_find(&home->table, &a->connection);

	if (sealed_copy_peek(a->id->sealed_copy.data, a->id->sealed_copy.len, &a->shown) < 0)
		memset(&a->shown, 0, sizeof a->shown);
	if (f && f->state == CONNECTION_FROZEN && f->facts.encoded)
		return take_frozen(a, f);
	return take_broadcast(home, a) == 0 ? 0 : take_copy(home, a);
}

/* --- what SSL_ID says of it --- */

static int check_ssl_id(const Cssl__LinkSslId *id)
{
	return id->connection_id.len == CONNECTION_ID_LEN && id->position && id->endpoints && id->epoch >= 2 &&
			       id->epoch <= UINT16_MAX && id->position->offset <= TLS_PLAINTEXT_MAX
		       ? 0
		       : CSSL_E_RANGE;
}

/* Did the owner of the live part stop exactly where this one has to begin? */
static bool begins_where_it_froze(const struct adoption *a)
{
	return a->part.exported == EXPORT_AT_FREEZE && a->part.write_generation == a->at.write_generation &&
	       a->part.write_sequence == a->at.write_sequence;
}

/* If no freeze is proved, the last owner counts as lost, whatever cause RAgent names (law 5). */
static enum live_start choose_start(struct connection_home *home, const struct adoption *a)
{
	if (mutant("freeze-not-proved"))
		return a->id->cause == CSSL__CAUSE__CAUSE_TAKEOVER ? LIVE_TAKES_OVER : LIVE_CONTINUES;
	if (a->id->cause == CSSL__CAUSE__CAUSE_TAKEOVER || !begins_where_it_froze(a) ||
		!cluster_knows(home->cluster, &a->connection, a->made_ms))
		return LIVE_TAKES_OVER;
	return LIVE_CONTINUES;
}

static enum claim_start claim_start(const struct adoption *a)
{
	if (a->start == LIVE_CONTINUES)
		return CLAIM_CONTINUES;
	return cipher_suite_has_record_nonce(cipher_suite_find(a->obj.facts.cipher_suite)) ? CLAIM_FRESH
											   : CLAIM_IN_DOUBT;
}

/* The last step before it owns the connection: no epoch is used twice (law 2), and no nonce in doubt (law 5). */
static int adopt_claim(const struct connection *c, struct adoption *a)
{
	a->claimed = claim_start(a);
	const struct seen_claim to_own = { .at = { (uint16_t)a->id->epoch, a->at.write_generation,
						   a->at.write_sequence },
		.owner = succession_owner(c),
		.start = a->claimed,
		.part_epoch = a->part.epoch,
		.made_ms = a->made_ms };
	int r = cluster_claim(c->home->cluster, &a->connection, &to_own);

	switch (r) {
	case 0: return 0;
	case CSSL_E_REPLAY: return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__EPOCH_OLD, r);
	case CSSL_E_UNSAFE: return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE, r);
	case CSSL_E_EXPIRED: return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
	default: return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__BUSY, r);
	}
}

/* --- the connection --- */

/* The backend half of the move: nothing, the socket that came over the agent-agent link, or that of the frozen
 * connection. */
static int adopt_backend(struct connection *c, struct adoption *a)
{
	struct passed_backend p;

	if (a->id->backend == CSSL__BACKEND_HALF__BACKEND_NONE)
		return 0;
	/* a socket that was passed for this epoch is newer than any frozen here */
	if (cluster_take_passed(c->home->cluster, &c->id, c->epoch, &p) < 0) {
		if (!a->frozen || !a->frozen->backend)
			return CSSL_E_NOT_FOUND;
		c->backend = a->frozen->backend;
		a->frozen->backend = NULL;
		backend_bind(c->backend, c->home->up->backend, c);
		service_take(&c->service, &a->frozen->service);
		return 0;
	}
	int r = conversation_restore(c, &p);
	passed_backend_destroy(&p);
	return r;
}

static void adopt_state(struct connection *c, const Cssl__LinkSslId *id)
{
	c->client_records = id->position->client_records;
	c->server_records = id->position->server_records;
	c->skip = id->position->offset;
	c->sent = id->undrained;
	c->delivered = id->response_records ? DELIVERED_SOME : DELIVERED_NOTHING;
	c->from_client = id->read_closed ? HALF_CLOSED : HALF_OPEN;
	c->from_backend = id->write_closed ? HALF_CLOSED : HALF_OPEN;
	live_restore_ends(
		c->live, (id->read_closed ? LIVE_READ_CLOSED : 0u) | (id->write_closed ? LIVE_WRITE_CLOSED : 0u));
}

/* Has the client said more than its part of the handshake? */
static bool has_spoken(const struct adoption *a)
{
	const uint64_t finished = a->obj.facts.protocol_version == TLS13_VERSION_WIRE ? 0 : 1;

	return a->at.read_generation > 0 || a->at.read_sequence > finished || a->id->position->offset > 0;
}

static int adopt_into(struct connection *c, struct adoption *a)
{
	int r = kept_facts_keep(&c->facts, &c->home->facts_blocks, &a->obj);

	if (r < 0)
		return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__INTERNAL, r);
	c->epoch = (uint16_t)a->id->epoch;
	r = live_create(c->home->live_pool, &a->part, a->obj.facts.cipher_suite, &a->at, c->epoch, a->start, &c->live);
	if (r == CSSL_E_UNSAFE)
		return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE, r);
	if (r < 0)
		return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
	connection_choose_service(c, &a->obj.facts);
	adopt_state(c, a->id);
	r = adopt_backend(c, a);
	if (r < 0)
		return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__NO_BACKEND, r);
	if (!c->backend && has_spoken(a))
		service_strand(&c->service);
	return adopt_claim(c, a);
}

static int adopt_find(struct connection_home *home, struct adoption *a)
{
	int r = find_live_part(home, a);

	if (mutant("epoch-claimed-first"))
		cluster_note(home->cluster, &a->connection, &(struct seen_mark){ .epoch = (uint16_t)a->id->epoch });
	if (r < 0) {
		count(COUNT_ADOPTS_UNPROVEN);
		return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
	}
	/* the listener decides service, backend and protocol: RAgent must not choose another one */
	if (strcmp(a->obj.facts.listener, a->id->listener) != 0 && !mutant("listener-unchecked")) {
		count(COUNT_ADOPTS_OTHER_LISTENER);
		return adopt_refuse(a, CSSL__LINK_REFUSED__REASON__COPY_BAD, CSSL_E_MISMATCH);
	}
	a->made_ms = cluster_made_ms(home->cluster, &a->part);
	a->start = choose_start(home, a);
	return 0;
}

static void adopt_forget(struct connection *c, enum end_reason reason)
{
	c->home->up->happens(c, &(struct connection_event){ .kind = EVENT_FORGET, .reason = reason });
}

/* Its link is lost. It waits for the next one, but RAgent does not ask it to go on there: RAgent counts it as lost. The
 * agent remembers what RAgent has confirmed, and adopt_claim() refuses to begin below that. The rest may be lost with
 * the link, so an honest RAgent may ask for a part of it. An owner on another worker still counts as one: RAgent asks
 * again, and chooses the worker of the owner when that one's link is up. */
static void leave_parked(struct connection_home *home, const struct adoption *a)
{
	struct connection *own = connection_table_find_sealing(&home->table, &a->connection);

	if (!own || own->carrier->pace != CARRIER_PAUSED || own->epoch >= a->id->epoch)
		return;
	struct carrier *parked = own->carrier;
	adopt_forget(own, END_AGENT_LOST);
	parked->ops->retire(parked);
}

/* Afterwards the connection exists and is owner, or nothing has changed but that an owner without a link is gone. */
static struct connection *adopt_proven(struct connection_home *home, struct carrier *carrier, struct adoption *a)
{
	const struct tls_listener *listener = tls_listener_find(home->contexts, a->id->listener);

	if (!listener) {
		adopt_refuse(a, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER, CSSL_E_NOT_FOUND);
		return NULL;
	}
	if (adopt_find(home, a) < 0)
		return NULL;
	leave_parked(home, a);
	struct connection *c =
		connection_create(home, carrier, listener, &a->connection, a->id->endpoints, CONNECTION_ADOPTING);
	if (!c) {
		adopt_refuse(a, CSSL__LINK_REFUSED__REASON__BUSY, CSSL_E_NO_MEMORY);
		return NULL;
	}
	if (adopt_into(c, a) < 0) {
		adopt_forget(c, END_MOVE_FAILED);
		return NULL;
	}
	connection_to(c, CONNECTION_OWNER);
	return c;
}

static const enum agent_counter by_source[] = {
	[CSSL__LINK_ADOPTED__SOURCE__FROM_COPY] = COUNT_ADOPTED_FROM_COPY,
	[CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST] = COUNT_ADOPTED_FROM_BROADCAST,
	[CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN] = COUNT_ADOPTED_FROM_FROZEN,
};

static void log_refusal(struct connection_home *home, const struct adoption *a)
{
	uint64_t now_ms = worker_now_ms(home->worker);
	enum log_level level = LOG_DEBUG;

	count(COUNT_ADOPTS_REFUSED);
	if (home->refusal_logged_ms == 0 || now_ms - home->refusal_logged_ms >= REFUSAL_LOG_EVERY_MS) {
		home->refusal_logged_ms = now_ms;
		level = LOG_WARNING;
	}
	log_event(level, &a->connection, "adopt refused", "epoch=%u reason=%s detail=%s", a->id->epoch,
		link_refusal_name(a->reason), a->detail);
}

static void note_adopted(const struct adoption *a)
{
	count(COUNT_ADOPTED);
	count(by_source[a->source]);
	if (a->start == LIVE_CONTINUES || a->id->cause == CSSL__CAUSE__CAUSE_TAKEOVER)
		return;
	count(COUNT_ADOPTED_IN_DOUBT);
	log_paced(LOG_INFO, &a->connection, "adopted in doubt", "epoch=%u cause=%s", a->id->epoch,
		link_cause_name(a->id->cause));
}

struct connection *connection_adopt(struct connection_home *home, struct carrier *carrier, const Cssl__LinkSslId *id)
{
	struct adoption a = { .id = id };
	Cssl__LinkAdopted adopted = CSSL__LINK_ADOPTED__INIT;

	if (check_ssl_id(id) < 0) {
		carrier->ops->refused(carrier, CSSL__LINK_REFUSED__REASON__INTERNAL, "malformed SSL_ID");
		return NULL;
	}
	fault_at("adopt.before", NULL, NULL);
	memcpy(a.connection.bytes, id->connection_id.data, CONNECTION_ID_LEN);
	a.at = (struct live_position){ id->position->read_generation, id->position->write_generation,
		id->position->read_sequence, id->position->write_sequence };
	struct connection *c = adopt_proven(home, carrier, &a);
	sess_obj_destroy(&a.obj);
	live_part_wipe(&a.part);
	if (!c) {
		log_refusal(home, &a);
		carrier->ops->refused(carrier, a.reason, a.detail);
		return NULL;
	}
	if (a.frozen) { /* its state continues under the new epoch and stream; DETACH will still come on the old one */
		struct carrier *old = a.frozen->carrier;
		adopt_forget(a.frozen, END_DONE);
		old->ops->retire(old);
	}
	note_adopted(&a);
	adopted.epoch = id->epoch;
	adopted.source = a.source;
	fault_at("adopt.after", NULL, NULL);
	carrier->ops->say(carrier, FRAME_ADOPTED, &adopted.base);
	if (id->cause == CSSL__CAUSE__CAUSE_TAKEOVER) /* tell RAgent at once that this agent had the request, because
							 the request may kill it, too */
		carrier->ops->flush(carrier);
	const struct seen_mark at = succession_mark(c);
	cluster_tell_adopted(home->cluster, home->worker, &c->id, &at, a.at.read_generation,
		a.claimed == CLAIM_IN_DOUBT ? SEEN_DOUBT_AT_MARK : SEEN_NO_DOUBT);
	recover_or_start(c, id);
	return c->state == CONNECTION_ENDED ? NULL : c;
}
