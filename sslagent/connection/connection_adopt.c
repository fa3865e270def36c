/* connection_adopt.c: SSL_ID: becoming owner from the own frozen state, the broadcast or the sealed copy, whichever
 * there is.
 *
 * The law (design 8): only OPEN(keep) or SSL_ID makes an owner; every ownership has a higher epoch, claimed before
 * anything is sealed under it; a refusal leaves everything as it was.
 */
#include <string.h>

#include "net/fault.h"
#include "net/log.h"
#include "proto/error.h"
#include "proto/sealed_copy.h"
#include "sslagent/agent.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

struct adoption {
	const Cssl__LinkSslId *id;
	struct connection_id connection;
	struct live_position at;
	struct sess_obj obj;
	struct live_part part;
	Cssl__LinkAdopted__Source source;
	struct connection *frozen; /* this agent's own; its backend half comes back with it */
	const char *detail;
};

static int refuse(struct adoption *a, Cssl__LinkRefused__Reason *reason, Cssl__LinkRefused__Reason why, int error)
{
	*reason = why;
	a->detail = cssl_strerror(error);
	return error;
}

/* Own frozen state, then the broadcast, then the sealed copy. 0 or negative. */
static int find_live_part(struct agent_worker *home, struct adoption *a)
{
	struct connection *f = connection_table_find(&home->connections, &a->connection);
	uint16_t copy_epoch;

	if (f && f->state == CONNECTION_FROZEN && f->facts) {
		a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN;
		a->frozen = f;
		if (f->frozen)
			a->part = *f->frozen;
		int r = f->frozen ? 0 : live_describe(f->live, LIVE_NOW, &a->part);
		return r < 0 ? r : connection_facts(f, &a->obj);
	}
	if (fault_at("live.find", NULL, NULL) != FAULT_FAIL &&
		cluster_find_live(home->cluster, &a->connection, (uint16_t)a->id->epoch, a->at.read_generation,
			a->at.write_generation, &a->obj) == 0) {
		a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST;
		a->part = *a->obj.live;
		return 0;
	}
	a->source = CSSL__LINK_ADOPTED__SOURCE__FROM_COPY;
	if (fault_at("copy.open", NULL, NULL) == FAULT_FAIL)
		return CSSL_E_AUTH;
	int r = sealed_copy_open(home->agents_key, &a->connection, a->id->listener, a->id->sealed_copy.data,
		a->id->sealed_copy.len, a->id->copy_age_s, &a->obj, &copy_epoch);
	if (r == 0 && (!a->obj.live || copy_epoch >= a->id->epoch))
		r = CSSL_E_MISMATCH;
	if (r == 0)
		a->part = *a->obj.live;
	return r;
}

static int check_ssl_id(const Cssl__LinkSslId *id)
{
	return id->connection_id.len == CONNECTION_ID_LEN && id->position && id->endpoints && id->epoch >= 2 &&
			       id->epoch <= UINT16_MAX && id->position->offset <= TLS_PLAINTEXT_MAX
		       ? 0
		       : CSSL_E_RANGE;
}

/* The backend half of the move: nothing, what came over the agent-agent link, or what the frozen connection still has.
 */
static int take_backend(struct connection *c, struct adoption *a)
{
	struct passed_backend p;

	if (a->id->backend == CSSL__BACKEND_HALF__BACKEND_NONE)
		return 0;
	/* what was passed for this very epoch is newer than anything frozen here */
	if (cluster_take_passed(c->home->cluster, &c->id, c->epoch, &p) < 0) {
		if (!a->frozen || !a->frozen->backend)
			return CSSL_E_NOT_FOUND;
		connection_take_back(c, a->frozen);
		return 0;
	}
	int r = connection_restore_backend(c, &p);
	passed_backend_destroy(&p);
	return r;
}

static int adopt_into(struct connection *c, struct adoption *a, Cssl__LinkRefused__Reason *reason)
{
	enum live_start start = a->id->cause == CSSL__CAUSE__CAUSE_TAKEOVER ? LIVE_TAKES_OVER : LIVE_CONTINUES;
	const Cssl__Position *p = a->id->position;
	int r = connection_keep_facts(c, &a->obj);

	if (r < 0)
		return refuse(a, reason, CSSL__LINK_REFUSED__REASON__INTERNAL, r);
	r = connection_own(c, &a->part, a->obj.facts.cipher_suite, &a->at, (uint16_t)a->id->epoch, start);
	if (r == CSSL_E_UNSAFE)
		return refuse(a, reason, CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE, r);
	if (r < 0)
		return refuse(a, reason, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
	connection_choose_service(c, &a->obj.facts);
	c->client_records = p->client_records;
	c->server_records = p->server_records;
	c->skip = p->offset;
	c->sent = a->id->undrained;
	c->delivered = a->id->response_records ? DELIVERED_SOME : DELIVERED_NOTHING;
	c->from_client = a->id->read_closed ? HALF_CLOSED : HALF_OPEN;
	c->from_backend = a->id->write_closed ? HALF_CLOSED : HALF_OPEN;
	live_restore_ends(
		c->live, (a->id->read_closed ? LIVE_READ_CLOSED : 0u) | (a->id->write_closed ? LIVE_WRITE_CLOSED : 0u));
	r = take_backend(c, a);
	return r < 0 ? refuse(a, reason, CSSL__LINK_REFUSED__REASON__NO_BACKEND, r) : 0;
}

/* The connection exists and is owner, or nothing changed. */
static struct connection *adopt(
	struct agent_worker *home, struct carrier *carrier, struct adoption *a, Cssl__LinkRefused__Reason *reason)
{
	const struct tls_listener *listener = tls_listener_find(home->contexts, a->id->listener);
	struct connection *c = NULL;

	if (!listener) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER, CSSL_E_NOT_FOUND);
		return NULL;
	}
	int r = cluster_claim_epoch(home->cluster, &a->connection, (uint16_t)a->id->epoch);
	if (r < 0) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__EPOCH_OLD, r);
		return NULL;
	}
	r = find_live_part(home, a);
	if (r < 0) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__COPY_BAD, r);
		return NULL;
	}
	c = connection_create(home, carrier, listener, &a->connection, a->id->endpoints, CONNECTION_ADOPTING);
	if (!c) {
		refuse(a, reason, CSSL__LINK_REFUSED__REASON__BUSY, CSSL_E_NO_MEMORY);
		return NULL;
	}
	if (adopt_into(c, a, reason) < 0) {
		connection_forget(c, END_MOVE_FAILED);
		return NULL;
	}
	connection_to(c, CONNECTION_OWNER);
	return c;
}

/* Its state lives on under the new epoch and stream. RAgent will still say DETACH on the old one. */
static void leave_frozen(struct connection *frozen)
{
	struct carrier *old = frozen->carrier;

	connection_forget(frozen, END_DONE);
	old->ops->retire(old);
}

static const enum agent_counter by_source[] = {
	[CSSL__LINK_ADOPTED__SOURCE__FROM_COPY] = COUNT_ADOPTED_FROM_COPY,
	[CSSL__LINK_ADOPTED__SOURCE__FROM_BROADCAST] = COUNT_ADOPTED_FROM_BROADCAST,
	[CSSL__LINK_ADOPTED__SOURCE__FROM_FROZEN] = COUNT_ADOPTED_FROM_FROZEN,
};

struct connection *connection_adopt(struct agent_worker *home, struct carrier *carrier, const Cssl__LinkSslId *id)
{
	struct adoption a = { .id = id };
	Cssl__LinkRefused__Reason reason;
	Cssl__LinkAdopted adopted = CSSL__LINK_ADOPTED__INIT;

	if (check_ssl_id(id) < 0) {
		carrier->ops->refused(carrier, CSSL__LINK_REFUSED__REASON__INTERNAL, "malformed SSL_ID");
		return NULL;
	}
	fault_at("adopt.before", NULL, NULL);
	memcpy(a.connection.bytes, id->connection_id.data, CONNECTION_ID_LEN);
	a.at = (struct live_position){ id->position->read_generation, id->position->write_generation,
		id->position->read_sequence, id->position->write_sequence };
	struct connection *c = adopt(home, carrier, &a, &reason);
	sess_obj_destroy(&a.obj);
	live_part_wipe(&a.part);
	if (!c) {
		count(COUNT_ADOPTS_REFUSED);
		log_event(LOG_WARNING, &a.connection, "adopt refused", "epoch=%u reason=%d detail=%s", id->epoch,
			(int)reason, a.detail);
		carrier->ops->refused(carrier, reason, a.detail);
		return NULL;
	}
	if (a.frozen)
		leave_frozen(a.frozen);
	count(COUNT_ADOPTED);
	count(by_source[a.source]);
	adopted.epoch = id->epoch;
	adopted.source = a.source;
	fault_at("adopt.after", NULL, NULL);
	carrier->ops->adopted(carrier, &adopted);
	if (id->cause == CSSL__CAUSE__CAUSE_TAKEOVER) /* RAgent shall know who had the request, should it kill us too */
		carrier->ops->flush(carrier);
	cluster_tell_adopted(
		home->cluster, home->worker, &c->id, c->epoch, a.at.read_generation, a.at.write_generation);
	connection_stand_here(c);
	/* a conversation that came along has not been cut */
	if (id->cause == CSSL__CAUSE__CAUSE_TAKEOVER && !c->backend)
		connection_recover(c, id);
	else
		connection_start_owning(c);
	return c->state == CONNECTION_ENDED ? NULL : c;
}
