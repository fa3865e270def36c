/* connection_events.c: where the events of a connection come from: its carrier, its backend, timers, and other parts of
 * this agent (connection_upward). The table in connection_reactions.c names the function that reacts.
 */

#include "net/memory/container_of.h"
#include "net/memory/prefetch.h"
#include "net/points/fault.h"
#include "net/report/log_pace.h"
#include "sslagent/connection/connection_life.h"
#include "sslagent/counters.h"

#define LIVE_PREFETCHED  384u /* of the keys */
#define STATE_PREFETCHED 512u /* of the state of its service */

const char *const connection_event_names[EVENT_COUNT] = {
#define X(name, text) [EVENT_##name] = text,
	CONNECTION_EVENTS(X)
#undef X
};

static void log_why(
	const struct connection *c, const struct connection_event *e, const struct connection_table_cell *cell)
{
	static const char *const verdicts[] = { "done", "ignored", "closes", "never" };

	log_event(LOG_DEBUG, &c->id, "event", "event=%s state=%s then=%s because=%s", connection_event_names[e->kind],
		connection_state_name((enum connection_state)c->state), verdicts[cell->verdict], cell->why);
}

/* Inlined where the event is known, because it comes with each record. */
static inline void react(struct connection *c, struct connection_event *e)
{
	const struct connection_table_cell *cell = &connection_reactions[e->kind][c->state];

	if (cell->why && log_enabled(LOG_DEBUG))
		log_why(c, e, cell);
	cell->fn(c, e);
}

/* --- the bytes that a worker keeps for its connections --- */

/* Their budget: client records that wait, bytes that backends have not taken, and bytes that clients without RAgent
 * have not taken. Above it, the connection that keeps most is ended, with an alert if one may be sent. A connection
 * that keeps nothing is never ended for this.
 */

static size_t weight(const struct connection *c)
{
	size_t len = c->input.cap;

	if (c->state == CONNECTION_FROZEN || c->state == CONNECTION_ENDED)
		return 0; /* it belongs to another connection, or to none */
	len += (c->head ? c->head->cap : 0) + (c->asked ? c->asked->cap : 0);
	if (c->backend)
		len += c->to_backend - c->written;
	len += service_kept_len(&c->service);
	if (c->state == CONNECTION_RECOVERING && c->interlude->kept)
		len += c->interlude->kept->cap;
	if (!carrier_moves(c->carrier))
		len += c->sent - c->drained;
	return len;
}

/* It may keep more or fewer bytes than before: count them again. */
static void events_weigh(struct connection *c)
{
	holdings_set(&c->home->holdings, &c->holding, weight(c));
}

/* Above the budget: end the connections that keep most. May end any connection. */
static void events_relieve(struct connection_home *home)
{
	struct holding *h;

	while ((h = holdings_greatest(&home->holdings)) != NULL) {
		struct connection *c = container_of(h, struct connection, holding);
		count(COUNT_KEPT_ENDED);
		log_paced(LOG_WARNING, &c->id, "connection ended to free memory", "bytes=%u of=%llu limit=%llu", h->len,
			(unsigned long long)home->holdings.len, (unsigned long long)home->holdings.limit);
		connection_give_up(c, END_OVERLOADED);
		if (c->state != CONNECTION_ENDED) /* its last words would have to wait */
			connection_end(c, END_OVERLOADED, CARRIER_ABORT);
		holdings_set(&home->holdings, h, 0);
	}
}

/* --- where events come from --- */

/* It may keep more now, and exceed the worker's budget. */
static inline void react_and_weigh(struct connection *c, struct connection_event *e)
{
	react(c, e);
	events_weigh(c);
	events_relieve(c->home);
}

/* An established client that would notice if handshakes delayed its records. */
static bool is_in_haste(const struct connection *c)
{
	return connection_serves(c) && service_traits_now(&c->service)->haste == SERVICE_IN_HASTE &&
	       (uint32_t)worker_now_ms(c->home->worker) - c->owner_since_ms >= ESTABLISHED_MS;
}

void connection_records(struct connection *c, const struct tls_record *records, size_t count)
{
	struct connection_event e = { .kind = EVENT_RECORDS, .records = { records, count } };

	if (is_in_haste(c))
		turn_share_others_came(&c->home->handshake_share);
	react_and_weigh(c, &e);
}

void connection_accepted(struct connection *c, const struct frame_accepted *accepted)
{
	struct connection_event e = { .kind = EVENT_ACCEPTED, .accepted = accepted };

	react(c, &e);
	events_weigh(c);
}

void connection_fin(struct connection *c)
{
	c->tail = TAIL_FIN;
	react(c, &(struct connection_event){ .kind = EVENT_FIN });
}

void connection_violation(struct connection *c, const struct frame_violation *v)
{
	log_event(LOG_DEBUG, &c->id, "not a TLS record", "type=%02x version=%04x length=%u", v->type, v->version,
		v->length);
	c->tail = TAIL_VIOLATION;
	c->bad = *v;
	react(c, &(struct connection_event){ .kind = EVENT_VIOLATION });
}

void connection_move(struct connection *c, const Cssl__LinkMove *move)
{
	struct connection_event e = { .kind = EVENT_MOVE, .move = move };

	fault_at(move->cause == CSSL__CAUSE__CAUSE_REST ? "rest.asked" : "move.asked", NULL, NULL);
	react(c, &e);
}

void connection_give_up(struct connection *c, enum end_reason reason)
{
	react(c, &(struct connection_event){ .kind = EVENT_GIVE_UP, .reason = reason });
}

void connection_forget(struct connection *c, enum end_reason reason)
{
	react(c, &(struct connection_event){ .kind = EVENT_FORGET, .reason = reason });
}

void connection_take_turn(void *connection)
{
	react_and_weigh(connection, &(struct connection_event){ .kind = EVENT_TURN });
}

static void on_deadline(struct deadline *d)
{
	react_and_weigh(
		container_of(d, struct connection, deadline), &(struct connection_event){ .kind = EVENT_DEADLINE });
}

static size_t on_backend_data(void *user, uint8_t *data, size_t len)
{
	struct connection *c = user;
	struct connection_event e = { .kind = EVENT_BACKEND_DATA, .bytes = { data, len, 0 } };

	react_and_weigh(c, &e);
	return c->state == CONNECTION_ENDED ? len : e.bytes.used;
}

static void on_backend_written(void *user, size_t len)
{
	struct connection_event e = { .kind = EVENT_BACKEND_WRITTEN, .written = len };

	react(user, &e);
	events_weigh(user);
}

static void on_backend_end(void *user, enum stream_end end, int uv_error)
{
	struct connection_event e = { .kind = EVENT_BACKEND_ENDED, .end = { end, uv_error } };

	react_and_weigh(user, &e);
}

static void foresee_backend(const void *user)
{
	const struct connection *c = user;

	prefetch(c, sizeof *c);
	prefetch(c->live, LIVE_PREFETCHED);
	prefetch(c->service.state, STATE_PREFETCHED);
}

static const struct backend_user_ops backend_ops = {
	.on_data = on_backend_data,
	.foresee = foresee_backend,
	.on_written = on_backend_written,
	.on_end = on_backend_end,
};

const struct connection_upward connection_upward = {
	.backend = &backend_ops,
	.on_deadline = on_deadline,
	.happens = react,
};
