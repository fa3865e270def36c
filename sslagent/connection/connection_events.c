/* connection_events.c: the reaction of a connection to each event in each state. The functions at the end of this
 * file take the events from outside: those of the carrier, of the backend, of timers, and of other parts of this agent
 * (connection_happens()). Each of them calls react(), which looks into the table below. The table names the functions
 * that react.
 */
#include <assert.h>

#include "net/container_of.h"
#include "net/fault.h"
#include "net/log.h"
#include "net/prefetch.h"
#include "sslagent/connection/connection_internal.h"

#define LIVE_PREFETCHED  384u /* of the keys */
#define STATE_PREFETCHED 512u /* of the state of its service */

static void ignore(struct connection *c, struct connection_event *e)
{
}

static void never(struct connection *c, struct connection_event *e)
{
	assert(!"an event that cannot happen in this state");
}

/* Cells. Where there is nothing to explain, only the function. */
#define IGNORES(why)    ignore, why, EVENT_IGNORED
#define CLOSES(fn, why) fn, why, EVENT_CLOSES
#define NEVER(why)      never, why, EVENT_NEVER

/* The same in many rows. */
#define OVER         IGNORES("the connection has ended, and lasts only to the end of this loop turn")
#define NOT_YET      NEVER("SSL_ID is worked on in one go; nobody knows of the connection before")
#define NO_BACKEND   NEVER("a backend connection is begun by an owner")
#define NO_HANDSHAKE NEVER("its handshake is over, and has left the line and the pulls")

/* Neighbours in many rows. Ranges are an extension of GNU C. */
#define IN_HANDSHAKE CONNECTION_HANDSHAKING... CONNECTION_PARKED
#define SERVING      CONNECTION_OWNER... CONNECTION_SETTLING

__extension__ static const struct connection_table_cell table[EVENT_COUNT][CONNECTION_STATE_COUNT] = {
	/* Whole records of the client. */
	[EVENT_RECORDS] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING] = { connection_shake_hands },
		[CONNECTION_PARKED] = { connection_keep_records },
		[CONNECTION_FROZEN] = { IGNORES("RAgent replays them to the successor") },
		[CONNECTION_RECOVERING] = { connection_hear_records },
		[CONNECTION_PASSING] = { connection_keep_records },
		[SERVING] = { connection_open_records },
		[CONNECTION_ENDING] = { IGNORES("nothing of the client matters any more") },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The client took bytes; records were committed. */
	[EVENT_ACCEPTED] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING ... CONNECTION_PASSING] = { connection_count_accepted },
		[SERVING] = { connection_go_on_serving },
		[CONNECTION_ENDING] = { connection_go_on_ending },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The client's FIN, after its last record. */
	[EVENT_FIN] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[IN_HANDSHAKE] = { CLOSES(connection_take_tail_unfinished, "a handshake cannot end any more") },
		[CONNECTION_FROZEN] = { IGNORES("RAgent tells the successor") },
		[CONNECTION_RECOVERING ... CONNECTION_PASSING] = { connection_keep_tail },
		[SERVING] = { connection_take_tail_served },
		[CONNECTION_ENDING] = { IGNORES("nothing of the client matters any more") },
		[CONNECTION_ENDED] = { OVER },
	},
	/* Bytes that are no record, after the client's last one. */
	[EVENT_VIOLATION] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING] = { CLOSES(connection_take_tail_unfinished, "the client does not speak TLS") },
		[CONNECTION_PARKED] = { connection_keep_tail }, /* OpenSSL sends the alert when it continues */
		[CONNECTION_FROZEN] = { IGNORES("RAgent tells the successor") },
		[CONNECTION_RECOVERING ... CONNECTION_PASSING] = { connection_keep_tail },
		[SERVING] = { connection_take_tail_served },
		[CONNECTION_ENDING] = { IGNORES("nothing of the client matters any more") },
		[CONNECTION_ENDED] = { OVER },
	},
	/* RAgent orders a move or a rest. */
	[EVENT_MOVE] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING ... CONNECTION_RECOVERING] = { connection_refuse_move },
		[CONNECTION_PASSING] = { IGNORES("it was said again, and the answer will be the same") },
		[CONNECTION_OWNER] = { connection_carry_out_move },
		[CONNECTION_SETTLING] = { IGNORES("it was said again, and the answer will be the same") },
		[CONNECTION_ENDING] = { connection_refuse_move },
		[CONNECTION_ENDED] = { OVER },
	},
	/* It has to end: because of an operator, a time limit, or the budget for kept bytes. */
	[EVENT_GIVE_UP] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[IN_HANDSHAKE] = { CLOSES(connection_abort_handshake, "there is nothing to say in a handshake") },
		[CONNECTION_FROZEN] = { IGNORES("only an owner may end it") },
		[CONNECTION_RECOVERING] = { CLOSES(connection_finish_early, "its carrier or this agent wants it") },
		[CONNECTION_PASSING] = { CLOSES(connection_finish_passing, "its carrier or this agent wants it") },
		[SERVING] = { CLOSES(connection_finish_early, "its carrier or this agent wants it") },
		[CONNECTION_ENDING] = { connection_cut_last_words },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The client or the link is gone, or the successor has adopted. */
	[EVENT_FORGET] = {
		[CONNECTION_ADOPTING] = { CLOSES(connection_drop_unowned, "SSL_ID is refused") },
		[IN_HANDSHAKE] = { CLOSES(connection_drop_unowned, "its carrier is gone") },
		[CONNECTION_FROZEN] = {
			CLOSES(connection_drop_unowned, "its carrier is gone, or another agent owns it")
		},
		[CONNECTION_RECOVERING ... CONNECTION_ENDING] = {
			CLOSES(connection_drop_owned, "its carrier is gone")
		},
		[CONNECTION_ENDED] = { OVER },
	},
	/* The session that the handshake waits for has come, or no agent has it. */
	[EVENT_PULLED] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING] = { NEVER("it waits for no session") },
		[CONNECTION_PARKED] = { connection_unpark },
		[CONNECTION_FROZEN ... CONNECTION_ENDED] = { NO_HANDSHAKE },
	},
	/* The loop turn has time for a handshake that waited in line. */
	[EVENT_TURN] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING] = { connection_shake_hands_on },
		[CONNECTION_PARKED] = {
			NEVER("it parked in its turn, and waits in line only when the session is there")
		},
		[CONNECTION_FROZEN ... CONNECTION_ENDED] = { NO_HANDSHAKE },
	},
	/* Bytes of the backend. */
	[EVENT_BACKEND_DATA] = {
		[CONNECTION_ADOPTING] = { NEVER("what came along is read when the connection is owned") },
		[IN_HANDSHAKE] = { NO_BACKEND },
		[CONNECTION_FROZEN] = { connection_hold_answer },
		[CONNECTION_RECOVERING] = { connection_pass_rest },
		[CONNECTION_PASSING] = { connection_hold_answer },
		[SERVING] = { connection_pass_answer },
		[CONNECTION_ENDING] = { connection_hold_answer },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The backend's socket took bytes. */
	[EVENT_BACKEND_WRITTEN] = {
		[CONNECTION_ADOPTING] = { NEVER("nothing is written before the connection is owned") },
		[IN_HANDSHAKE] = { NO_BACKEND },
		[CONNECTION_FROZEN ... CONNECTION_RECOVERING] = { connection_count_written },
		[CONNECTION_PASSING] = { connection_pass_goes_on },
		[SERVING] = { connection_backend_took },
		[CONNECTION_ENDING] = { connection_count_written },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The backend's FIN or reset, or it could not be reached. */
	[EVENT_BACKEND_ENDED] = {
		[CONNECTION_ADOPTING] = { NEVER("what came along is read when the connection is owned") },
		[IN_HANDSHAKE] = { NO_BACKEND },
		[CONNECTION_FROZEN] = { connection_drop_backend }, /* the successor sees it, too */
		[CONNECTION_RECOVERING] = {
			CLOSES(connection_lose_rest, "the rest of the answer cannot come any more")
		},
		[CONNECTION_PASSING] = { connection_pass_loses_backend },
		[SERVING] = { connection_lose_backend },
		[CONNECTION_ENDING] = { connection_drop_backend },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The connection's only deadline. Its purpose depends on the state. */
	[EVENT_DEADLINE] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[IN_HANDSHAKE] = { NEVER("RAgent, or the direct listener, has the handshake's") },
		[CONNECTION_FROZEN] = { NEVER("to freeze is to cancel it") },
		[CONNECTION_RECOVERING] = { connection_deadline_came },
		[CONNECTION_PASSING] = { connection_pass_is_late },
		[SERVING] = { connection_deadline_came },
		[CONNECTION_ENDING] = { connection_words_were_read },
		[CONNECTION_ENDED] = { NEVER("to end is to cancel it") },
	},
	/* No checkpoint came within the time of a MOVE. */
	[EVENT_SETTLING_LATE] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING ... CONNECTION_OWNER] = { NEVER("it does not settle") },
		[CONNECTION_SETTLING] = { connection_settle_no_longer },
		[CONNECTION_ENDING ... CONNECTION_ENDED] = { NEVER("it does not settle") },
	},
	/* The target agent has the backend's socket, or did not get it. */
	[EVENT_PASSED] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING ... CONNECTION_RECOVERING] = { NEVER("it passes nothing") },
		[CONNECTION_PASSING] = { connection_pass_answered },
		[CONNECTION_OWNER ... CONNECTION_ENDED] = { NEVER("it passes nothing") },
	},
};

const struct connection_table_cell *connection_cell(enum connection_event_kind kind, enum connection_state state)
{
	return &table[kind][state];
}

const char *connection_event_name(enum connection_event_kind kind)
{
	static const char *const names[EVENT_COUNT] = {
#define X(name, text) [EVENT_##name] = text,
		CONNECTION_EVENTS(X)
#undef X
	};

	return names[kind];
}

static void log_why(
	const struct connection *c, const struct connection_event *e, const struct connection_table_cell *cell)
{
	static const char *const verdicts[] = { "done", "ignored", "closes", "never" };

	log_event(LOG_DEBUG, &c->id, "event", "event=%s state=%s then=%s because=%s", connection_event_name(e->kind),
		connection_state_name((enum connection_state)c->state), verdicts[cell->verdict], cell->why);
}

/* Inlined where the event is known, because it comes with each record. */
static inline void react(struct connection *c, struct connection_event *e)
{
	const struct connection_table_cell *cell = &table[e->kind][c->state];

	if (cell->why && log_enabled(LOG_DEBUG))
		log_why(c, e, cell);
	cell->fn(c, e);
}

void connection_happens(struct connection *c, struct connection_event *e)
{
	react(c, e);
}

/* --- where events come from --- */

/* It may keep more now, and exceed the worker's budget. */
static inline void react_and_weigh(struct connection *c, struct connection_event *e)
{
	react(c, e);
	connection_weigh(c);
	connection_relieve(c->home);
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
	connection_weigh(c);
}

void connection_fin(struct connection *c)
{
	react(c, &(struct connection_event){ .kind = EVENT_FIN });
}

void connection_violation(struct connection *c, const struct frame_violation *v)
{
	struct connection_event e = { .kind = EVENT_VIOLATION, .violation = v };

	log_event(LOG_DEBUG, &c->id, "not a TLS record", "type=%02x version=%04x length=%u", v->type, v->version,
		v->length);
	react(c, &e);
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

void connection_on_deadline(struct deadline *d)
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
	connection_weigh(user);
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

const struct backend_user_ops connection_backend_ops = {
	.on_data = on_backend_data,
	.foresee = foresee_backend,
	.on_written = on_backend_written,
	.on_end = on_backend_end,
};
