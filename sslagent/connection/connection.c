/* connection.c: the life of a connection at this agent: its states, its beginning, and its end, whoever wants it. It
 * stands below all parts: they end the connection by connection_end(), and it knows them only as what it releases.
 */
#include "sslagent/connection/connection.h"

#include <assert.h>
#include <string.h>

#include "conf/memory.h"
#include "net/memory/container_of.h"
#include "net/points/audit.h"
#include "net/points/mutant.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection_life.h"
#include "sslagent/connection/conversation.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"
#include "sslagent/tls/handshake.h"

#define TO(name) (1u << CONNECTION_##name)

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[CONNECTION_STATE_COUNT] = {
	[CONNECTION_HANDSHAKING] = { "handshaking", TO(PARKED) | TO(FROZEN) | TO(OWNER) | TO(ENDED) },
	[CONNECTION_PARKED] = { "parked", TO(HANDSHAKING) | TO(ENDED) },
	[CONNECTION_ADOPTING] = { "adopting", TO(OWNER) | TO(ENDED) },
	[CONNECTION_FROZEN] = { "frozen", TO(ENDED) },
	[CONNECTION_OWNER] = { "owner",
		TO(RECOVERING) | TO(PASSING) | TO(SETTLING) | TO(FROZEN) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_RECOVERING] = { "recovering", TO(OWNER) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_PASSING] = { "passing", TO(OWNER) | TO(FROZEN) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_SETTLING] = { "settling", TO(OWNER) | TO(FROZEN) | TO(ENDING) | TO(ENDED) },
	[CONNECTION_ENDING] = { "ending", TO(ENDED) },
	[CONNECTION_ENDED] = { "ended", 0 },
};

const char *connection_state_name(enum connection_state state)
{
	return state_rows[state].name;
}

_Static_assert(sizeof(struct connection) <= MEMORY_OF_AGENT_CONNECTION / 4,
	"what --check says of a connection has room for its keys, facts, backend and carrier, too");

void connection_to(struct connection *c, enum connection_state to)
{
	assert(state_rows[c->state].may_go_to >> to & 1);
	if (log_enabled(LOG_DEBUG))
		log_event(LOG_DEBUG, &c->id, "state", "from=%s to=%s", state_rows[c->state].name, state_rows[to].name);
	c->state = (uint8_t)to;
}

struct connection *connection_create(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints,
	enum connection_state first)
{
	struct connection *c = slabs_take(&home->connection_blocks);

	if (!c)
		return NULL;
	*c = (struct connection){
		.home = home, .carrier = carrier, .listener = listener, .id = *id, .epoch = 1, .state = (uint8_t)first
	};
	c->deadline.fn = home->up->on_deadline;
	if (endpoints_from_message(&c->endpoints, endpoints) < 0 || connection_table_add(&home->table, c) < 0) {
		endpoints_clear(&c->endpoints);
		slabs_give(&home->connection_blocks, c);
		return NULL;
	}
	c->contexts = tls_contexts_ref(home->contexts);
	service_init(&c->service, tls_listener_conf(listener)->service, &home->service_blocks);
	service_of_listener(&c->service, tls_listener_conf(listener));
	count(COUNT_CONNECTIONS_OPENED);
	return c;
}

/* Failures inside the cluster do not count as refusals. */
static void count_refusal(const struct handshake *h, enum end_reason reason)
{
	enum refusal refusal;

	_Static_assert(COUNT_HANDSHAKES_REFUSED_VERSION + REFUSAL_OTHER == COUNT_HANDSHAKES_REFUSED_OTHER, "one order");
	switch (reason) {
	case END_HANDSHAKE_FAILED: refusal = handshake_refusal(h); break;
	case END_HANDSHAKE_TIMEOUT: refusal = REFUSAL_TIMEOUT; break;
	case END_CLIENT_CLOSED:
	case END_CLIENT_RESET: refusal = REFUSAL_CLIENT_GONE; break;
	case END_NOT_TLS:
	case END_RECORD_VIOLATION: refusal = REFUSAL_MESSAGE; break;
	default: return;
	}
	count(COUNT_HANDSHAKES_REFUSED_VERSION + refusal);
}

void connection_drop_handshake(struct connection *c)
{
	turn_share_leave(&c->home->handshake_share, handshake_waiter(c->handshake));
	connection_home_count_handshakes(c->home, -1);
	handshake_limit_leave(c->home->handshake_places, handshake_place(c->handshake));
	handshake_destroy(c->handshake);
	c->handshake = NULL;
	if (!deadline_is_set(&c->home->heap_trim)) /* what further ones do not need goes back to the kernel soon */
		deadline_set(c->home->worker, &c->home->heap_trim, HEAP_TRIM_MS);
}

static void release_handshake(struct connection *c, enum end_reason reason)
{
	if (c->state == CONNECTION_PARKED) {
		struct session_source *source = cluster_session_source(c->home->cluster);
		source->pull_cancel(source, c->pull);
		c->pull = NULL;
		c->home->parked--;
	}
	if (c->handshake) {
		count_refusal(c->handshake, reason);
		connection_drop_handshake(c);
	}
}

void connection_drop_interlude(struct connection *c)
{
	struct interlude *i = c->interlude;

	c->interlude = NULL;
	if (!i)
		return;
	kept_bytes_wipe(&i->kept);
	i->ops->drop(i);
}

void connection_look(struct connection *c)
{
	if (c->interlude && c->interlude->ops->look)
		c->interlude->ops->look(c);
}

/* A connection that has ended can say nothing more, and its carrier may be gone. */
static const struct carrier_ops nothing;
static struct carrier no_carrier = { .ops = &nothing, .pace = CARRIER_PAUSED };

/* Releases everything but the memory, which lasts until the end of the loop turn: callers further up the stack may
 * still use it. */
static void connection_release(struct connection *c, enum end_reason reason)
{
	if (c->live && c->state != CONNECTION_ADOPTING) /* else its epoch may be another owner's */
		cluster_leave(c->home->cluster, &c->id, c->epoch);
	release_handshake(c, reason);
	connection_drop_interlude(c);
	kept_bytes_wipe(&c->head);
	conversation_drop_asked(c);
	conversation_release(c, reason);
	deadline_cancel(&c->deadline);
	live_destroy(c->live);
	c->live = NULL;
	slabs_give(&c->home->frozen, c->frozen);
	c->frozen = NULL;
	service_destroy(&c->service);
	kept_facts_drop(&c->facts, &c->home->facts_blocks);
	endpoints_clear(&c->endpoints);
	tls_contexts_unref(c->contexts);
	c->contexts = NULL;
	c->carrier = &no_carrier;
	unopened_drop(&c->input, c->carrier);
	table_remove(&c->home->table, &c->by_id);
	count(COUNT_CONNECTIONS_ENDED);
	connection_to(c, CONNECTION_ENDED);
	holdings_set(&c->home->holdings, &c->holding, 0);
	c->by_id.next = c->home->buried;
	c->home->buried = &c->by_id;
	worker_at_turn_end(c->home->worker, &c->home->burial);
}

static void tell_ended(struct connection *c)
{
	const struct seen_mark at = succession_mark(c);

	if (mutant("end-untold"))
		return;
	cluster_tell_stopped(c->home->cluster, c->home->worker, &c->id, &at, SEEN_ENDED);
}

void connection_end(struct connection *c, enum end_reason reason, enum carrier_end how)
{
	if (c->state == CONNECTION_ENDED)
		return;
	log_event(LOG_DEBUG, &c->id, "ended", "reason=%s state=%s", end_reason_text(reason), state_rows[c->state].name);
	if (carrier_moves(c->carrier) && c->state != CONNECTION_HANDSHAKING && c->state != CONNECTION_PARKED)
		tell_ended(c);
	c->carrier->ops->end(c->carrier, reason, how);
	connection_release(c, reason);
}

int connection_send(struct connection *c, const uint8_t *bytes, ptrdiff_t len, unsigned records, uint8_t flags)
{
	if (len < 0)
		return (int)len;
	uint8_t *room = c->carrier->ops->reserve(c->carrier, (size_t)len);
	if (!room)
		return CSSL_E_NO_MEMORY;
	memcpy(room, bytes, (size_t)len);
	c->carrier->ops->send(c->carrier, (size_t)len, flags);
	c->sent += (size_t)len;
	c->server_records += records;
	return 0;
}

int connection_send_alert(struct connection *c, enum tls_alert_level level, enum tls_alert description)
{
	uint8_t record[LIVE_SMALL_RECORD_MAX];
	bool is_last = level == TLS_ALERT_FATAL || description == TLS_ALERT_CLOSE_NOTIFY;

	return connection_send(
		c, record, live_seal_alert(c->live, level, description, record), 1, is_last ? FRAME_LAST_RECORD : 0);
}

/* --- an end that this agent does not choose --- */

/* Its link is lost: from now on it seals nothing (law 7). */
static void leave_lost(struct connection *c)
{
	audit_left(AUDIT_LOST, c->id.bytes, c->epoch);
	if (mutant("lost-owner-seals"))
		connection_send_alert(c, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR);
}

/* Nobody here begins below what RAgent has confirmed, and an honest RAgent does not ask for that. The rest may be lost
 * with the link: to refuse that, too, would end the connections of an honest RAgent (doc/trust.md). */
static void note_confirmed(struct connection *c)
{
	struct seen_mark at = succession_mark(c);
	const ptrdiff_t less = c->carrier->ops->unconfirmed ? c->carrier->ops->unconfirmed(c->carrier) : -1;

	/* a KeyUpdate under way was of the generation before */
	if (less < 0 || (uint64_t)less > at.write_sequence || live_due(c->live) == LIVE_WAITS_FOR_COMMIT ||
		live_has_record_nonce(c->live) || mutant("confirmed-forgotten"))
		return;
	at.write_sequence -= (uint64_t)less;
	cluster_note(c->home->cluster, &c->id, &at);
}

void connection_forgotten(struct connection *c, struct connection_event *e)
{
	const bool owns = c->live && c->state != CONNECTION_ADOPTING && c->state != CONNECTION_FROZEN;

	if (owns && e->reason == END_AGENT_LOST)
		note_confirmed(c);
	if (c->live && e->reason == END_AGENT_LOST)
		leave_lost(c);
	else if (owns && carrier_moves(c->carrier)) /* others have to know where its sealing stopped */
		tell_ended(c);
	connection_release(c, e->reason);
}

void connection_superseded(void *ctx, const struct connection_id *id, uint16_t of)
{
	struct connection_home *home = ctx;
	struct connection *c = connection_table_find_sealing(&home->table, id);

	if (!c || c->epoch > of)
		return; /* it has gone meanwhile */
	count(COUNT_OWNERS_SUPERSEDED);
	log_paced(LOG_WARNING, id, "superseded", "epoch=%u other_epoch=%u cause=\"another agent owns it, too\"",
		c->epoch, of);
	/* here at least nobody goes back behind it, also when memory is short */
	const struct seen_mark sealed = succession_mark(c);
	if (!live_has_record_nonce(c->live))
		cluster_note(home->cluster, &c->id, &sealed);
	leave_lost(c);
	c->carrier->ops->end(c->carrier, END_MOVE_UNSAFE, CARRIER_ABORT);
	connection_release(c, END_MOVE_UNSAFE);
}

/* --- queries --- */

bool connection_may_have_drained(const struct connection *c, uint64_t bytes)
{
	/* these two do not look at it, and have no counts */
	if (c->state == CONNECTION_ADOPTING || c->state == CONNECTION_ENDED)
		return true;
	return bytes >= c->drained && bytes <= c->sent;
}

bool connection_is_idle(const struct connection *c)
{
	return c->state == CONNECTION_OWNER && c->to_backend > 0 && c->input.len == 0 && conversation_at_checkpoint(c);
}

const char *connection_cause(const struct connection *c)
{
	return c->handshake ? handshake_error(c->handshake) : "";
}

void connection_account(const struct connection *c, struct connection_account *out)
{
	struct sess_obj o;

	*out = (struct connection_account){
		.id = &c->id, .cause = connection_cause(c), .client_bytes = c->record_bytes, .server_bytes = c->sent
	};
	if (c->handshake)
		handshake_hello_facts(c->handshake, &out->facts);
	else if (c->facts.encoded && kept_facts_read(&c->facts, &o) == 0) {
		out->facts = o.facts;
		sess_obj_destroy(&o);
	}
}

/* --- the table --- */

/* Ids are random. */
static uint64_t hash_of(const struct connection_id *id)
{
	uint64_t hash;

	memcpy(&hash, id->bytes, sizeof hash);
	return hash;
}

int connection_table_add(struct table *t, struct connection *c)
{
	return table_add(t, &c->by_id, hash_of(&c->id));
}

static struct connection *table_find(const struct table *t, const struct connection_id *id, int is_sealing)
{
	for (struct table_link *l = table_first(t, hash_of(id)); l; l = table_next(l)) {
		struct connection *c = container_of(l, struct connection, by_id);
		const int seals = c->live && c->state != CONNECTION_FROZEN;
		if (memcmp(&c->id, id, sizeof *id) == 0 && (seals || !is_sealing))
			return c;
	}
	return NULL;
}

struct connection *connection_table_find(const struct table *t, const struct connection_id *id)
{
	return table_find(t, id, 0);
}

struct connection *connection_table_find_sealing(const struct table *t, const struct connection_id *id)
{
	return table_find(t, id, 1);
}
