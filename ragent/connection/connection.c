/* connection.c: the life of a client connection: accept, states, deadlines, description. */
#include "ragent/connection/connection_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "conf/memory.h"
#include "net/address.h"
#include "net/container_of.h"
#include "net/discard.h"
#include "net/fault.h"
#include "net/listener.h"
#include "net/log_pace.h"
#include "proto/error.h"
#include "ragent/connection/connection_preamble.h"
#include "smtp/preamble.h"

#define ANSWER_LIMIT_FACTOR 2u /* times health.lost_ms: the loss of a link is noticed well before that */
#define REST_RETRY_MS       50u
#define WAIT_RETRY_MS       50u
#define UNHEARD_MS          2000u /* an owner lets its client wait for up to a second at once */

#define TO(name) (1u << CONNECTION_##name)
#define ENDS     (TO(LINGERING) | TO(CLOSING))

static const struct {
	const char *name;
	unsigned may_go_to;
} state_rows[CONNECTION_STATE_COUNT] = {
	[CONNECTION_PROXY] = { "proxy", TO(HELLO) | TO(PREAMBLE) | ENDS },
	[CONNECTION_HELLO] = { "hello", TO(HANDSHAKING) | TO(WAITING) | ENDS },
	[CONNECTION_WAITING] = { "waiting", TO(HANDSHAKING) | ENDS },
	[CONNECTION_HANDSHAKING] = { "handshaking", TO(WAITING) | TO(OWNED) | TO(ADOPTING) | TO(REATTACHING) | ENDS },
	[CONNECTION_OWNED] = { "owned",
		TO(MOVING) | TO(ADOPTING) | TO(RESTING) | TO(FINISHING) | TO(REATTACHING) | ENDS },
	[CONNECTION_MOVING] = { "moving", TO(OWNED) | TO(ADOPTING) | TO(RESTING) | ENDS },
	[CONNECTION_ADOPTING] = { "adopting", TO(OWNED) | TO(RESTING) | TO(REATTACHING) | ENDS },
	[CONNECTION_RESTING] = { "resting", TO(ADOPTING) | ENDS },
	[CONNECTION_FINISHING] = { "finishing", TO(REATTACHING) | ENDS },
	[CONNECTION_LINGERING] = { "lingering", TO(CLOSING) },
	[CONNECTION_CLOSING] = { "closing", 0 },
	[CONNECTION_PREAMBLE] = { "preamble", TO(HELLO) | TO(RELAYED) | TO(REATTACHING) | ENDS },
	[CONNECTION_RELAYED] = { "relayed", TO(REATTACHING) | ENDS },
	[CONNECTION_REATTACHING] = { "reattaching", TO(WAITING) | TO(HANDSHAKING) | TO(OWNED) | TO(ADOPTING) |
							    TO(RESTING) | TO(FINISHING) | TO(PREAMBLE) | TO(RELAYED) |
							    ENDS },
};

const char *connection_state_name(enum connection_state s)
{
	return state_rows[s].name;
}

int connection_may_go(enum connection_state from, enum connection_state to)
{
	return (state_rows[from].may_go_to >> to) & 1;
}

enum connection_state connection_state(const struct connection *c)
{
	return c->state;
}

const struct connection_id *connection_identity(const struct connection *c)
{
	return &c->id;
}

struct connection *connection_next(const struct connection *c)
{
	return c->next;
}

const struct conf_limits *connection_limits(const struct connection *c)
{
	return &c->home->shared->self->limits;
}

struct listener_counters *connection_counts(const struct connection *c)
{
	return &c->home->of_listeners[c->front->index];
}

uint64_t connection_window(const struct connection *c)
{
	return c->home->shared->conf->limits.window_len; /* the limit of the cluster: agents use the same */
}

uint64_t connection_now_ms(const struct connection *c)
{
	return worker_now_ms(c->home->worker);
}

const struct service_traits *connection_service(const struct connection *c)
{
	const struct conf_listener *l = c->front->conf;

	for (size_t i = 0; c->agreed && i < l->alpn_count; i++)
		if (strcmp(l->alpn[i].protocol, agreed_alpn(c->agreed)) == 0)
			return &service_traits[l->alpn[i].service];
	return &service_traits[l->service];
}

void connection_set_deadline(struct connection *c, uint64_t in_ms)
{
	deadline_set(c->home->worker, &c->deadline, in_ms);
}

static uint64_t handshake_left_ms(const struct connection *c)
{
	uint64_t spent_ms = connection_now_ms(c) - connection_preamble_hello_ms(c);
	uint64_t limit_ms = connection_limits(c)->handshake_timeout_ms;

	return spent_ms < limit_ms ? limit_ms - spent_ms : 0;
}

static uint64_t sooner(uint64_t limit_ms, uint64_t other_ms)
{
	return other_ms && (limit_ms == 0 || other_ms < limit_ms) ? other_ms : limit_ms;
}

/* A client that waits cannot be heard, so UNHEARD_MS of its silence do not count. However often its owner lets it wait,
 * they are not counted out again before the client is heard. */
static uint64_t silent_ms(const struct connection *c)
{
	const uint64_t since_ms = connection_now_ms(c) - c->active_ms;
	const uint64_t unheard_ms = connection_is_unheard(c) ? UNHEARD_MS : 0;

	return since_ms > unheard_ms ? since_ms - unheard_ms : 0;
}

static int is_silent_too_long(const struct connection *c)
{
	uint64_t idle_ms = connection_limits(c)->idle_timeout_ms;

	return idle_ms && silent_ms(c) >= idle_ms;
}

/* Set the deadline for the next action on a silent connection: its idle time-out, or @other_ms if that is sooner (0:
 * there is nothing else). A move or a rest does not end the silence, so the idle time-out stays as it was. */
static void watch_silence(struct connection *c, uint64_t other_ms)
{
	uint64_t idle_ms = connection_limits(c)->idle_timeout_ms, left_ms = 0;

	if (is_silent_too_long(c))
		left_ms = 1;
	else if (idle_ms)
		left_ms = idle_ms - silent_ms(c);
	if (left_ms || other_ms)
		connection_set_deadline(c, sooner(left_ms, other_ms));
	else
		deadline_cancel(&c->deadline);
}

static uint64_t answer_limit_ms(const struct connection *c)
{
	return ANSWER_LIMIT_FACTOR * (uint64_t)c->home->shared->self->health.lost_ms;
}

/* An agent keeps the stream for a shorter time (sslagent/carrier/link_parked.c), so there are never two owners. */
static uint64_t reattach_limit_ms(const struct connection *c)
{
	return c->home->shared->self->health.lost_ms;
}

/* Set the longest time that the connection may wait in its state. */
void connection_arm_deadline(struct connection *c)
{
	switch ((enum connection_state)c->state) {
	case CONNECTION_PROXY:
	case CONNECTION_HELLO:
	case CONNECTION_HANDSHAKING: connection_set_deadline(c, handshake_left_ms(c)); break;
	case CONNECTION_WAITING: connection_set_deadline(c, sooner(WAIT_RETRY_MS, handshake_left_ms(c))); break;
	case CONNECTION_ADOPTING:
	case CONNECTION_FINISHING: connection_set_deadline(c, answer_limit_ms(c)); break;
	case CONNECTION_MOVING: connection_set_deadline(c, c->busy->move_limit_ms + answer_limit_ms(c)); break;
	case CONNECTION_OWNED:
		watch_silence(c, sooner(c->front->conf->rest_after_ms, connection_limits(c)->doze_after_ms));
		break;
	case CONNECTION_RELAYED:
	case CONNECTION_RESTING: watch_silence(c, 0); break;
	case CONNECTION_PREAMBLE: connection_set_deadline(c, connection_preamble_left_ms(c)); break;
	case CONNECTION_REATTACHING: connection_set_deadline(c, reattach_limit_ms(c)); break;
	case CONNECTION_LINGERING: /* linger() sets it */
	case CONNECTION_CLOSING: deadline_cancel(&c->deadline); break;
	}
}

enum connection_state connection_phase(const struct connection *c)
{
	return c->state == CONNECTION_REATTACHING ? c->busy->resumes : c->state;
}

int connection_shakes_hands(const struct connection *c)
{
	if (c->state == CONNECTION_REATTACHING)
		return c->position.stage == POSITION_HANDSHAKE && !connection_is_in_clear(c);
	return c->state == CONNECTION_WAITING || c->state == CONNECTION_HANDSHAKING;
}

static int is_beyond_handshake(const struct connection *c)
{
	if (c->state == CONNECTION_REATTACHING)
		return c->position.stage != POSITION_HANDSHAKE;
	return c->state > CONNECTION_HANDSHAKING && !connection_speaks_clear(c);
}

/* Only an owner has a reason to let its client wait, so the wait ends with the owner. (If an agent says so amid the
 * handshake, the client waits until the agent takes it back or the handshake's time is over.) When CLOSING, nothing is
 * read anyway. */
static int client_may_wait(enum connection_state state)
{
	return state == CONNECTION_OWNED || state == CONNECTION_MOVING || state == CONNECTION_FINISHING ||
	       state == CONNECTION_CLOSING;
}

void connection_count_state(struct connection *c, enum connection_state state, int by)
{
	struct ragent_counters *n = &c->home->counters;

	if (state == CONNECTION_RESTING)
		counter_add(&n->connections_resting, (uint64_t)by);
	if (state == CONNECTION_WAITING)
		counter_add(&n->connections_waiting, (uint64_t)by);
	if (state == CONNECTION_REATTACHING)
		c->home->reattaching += (unsigned)by;
	if (state == CONNECTION_PREAMBLE)
		counter_add(&n->preambles_under_way, (uint64_t)by);
	if (state == CONNECTION_RELAYED)
		counter_add(&n->connections_relayed, (uint64_t)by);
}

void connection_to(struct connection *c, enum connection_state to)
{
	enum connection_state from = c->state;

	assert(connection_may_go(from, to));
	if (log_enabled(LOG_DEBUG))
		log_event(LOG_DEBUG, &c->id, "state", "from=%s to=%s", state_rows[from].name, state_rows[to].name);
	connection_count_state(c, from, -1);
	connection_count_state(c, to, 1);
	if (to == CONNECTION_LINGERING || to == CONNECTION_CLOSING)
		connection_void(c);
	else
		connection_touch(c);
	c->state = (uint8_t)to;
	if (c->busy && !connection_shakes_hands(c))
		handshake_limit_leave(c->home->handshakes, &c->busy->place);
	if (c->busy && is_beyond_handshake(c))
		connection_preamble_drop(c);
	if (connection_client_waits(c) && !client_may_wait(to))
		connection_set_pace(c, CLIENT_GOES_ON);
	connection_arm_deadline(c);
	if (to == CONNECTION_RESTING)
		connection_may_compact(c);
}

static void reassign(struct connection *c, int16_t *place, int agent, enum agent_share share)
{
	struct agents *agents = c->home->shared->agents;

	if (*place == agent)
		return;
	if (*place != NO_AGENT)
		agents_leave(agents, *place, share);
	if (agent != NO_AGENT)
		agents_enter(agents, agent, share);
	*place = (int16_t)agent;
}

void connection_assign(struct connection *c, int agent)
{
	reassign(c, &c->affinity_agent, agent, AGENT_CONNECTIONS);
}

void connection_handshake_at(struct connection *c, int agent)
{
	if (agent != NO_AGENT)
		c->handshake_agent = (int16_t)agent;
	reassign(c, &c->handshaking_at, agent, AGENT_HANDSHAKES);
}

/* --- deadlines --- */

/* The rest of a silence of @limit_ms; if it is over, the whole limit again. */
static uint64_t left_ms(const struct connection *c, uint64_t limit_ms)
{
	return silent_ms(c) < limit_ms ? limit_ms - silent_ms(c) : limit_ms;
}

static void check_silence(struct connection *c)
{
	uint64_t rest_ms = c->state == CONNECTION_OWNED ? c->front->conf->rest_after_ms : 0;
	uint64_t compact_ms = c->state == CONNECTION_OWNED && c->busy ? connection_limits(c)->doze_after_ms : 0;
	uint64_t next_ms = left_ms(c, rest_ms);

	if (is_silent_too_long(c)) {
		connection_end_silence(c, silent_ms(c));
		return;
	}
	if (rest_ms && silent_ms(c) >= rest_ms && connection_may_rest(c)) {
		if (mover_rest(&c->home->mover, c) == 0)
			return;
		next_ms = REST_RETRY_MS;
	}
	if (compact_ms && silent_ms(c) >= compact_ms)
		connection_may_compact(c);
	watch_silence(c, sooner(next_ms, left_ms(c, compact_ms)));
}

static void act_on_deadline(struct connection *c)
{
	switch ((enum connection_state)c->state) {
	case CONNECTION_PROXY:
	case CONNECTION_HELLO:
	case CONNECTION_HANDSHAKING: connection_end(c, END_HANDSHAKE_TIMEOUT, END_RESET); break;
	case CONNECTION_WAITING: connection_open_again(c, handshake_left_ms(c)); break;
	case CONNECTION_ADOPTING: connection_end(c, END_MOVE_FAILED, END_RESET); break;
	case CONNECTION_RESTING:
		if (connection_needs_owner(c))
			connection_wake(c);
		else
			check_silence(c);
		break;
	case CONNECTION_RELAYED:
	case CONNECTION_OWNED: check_silence(c); break;
	case CONNECTION_PREAMBLE: connection_preamble_on_deadline(c); break;
	case CONNECTION_MOVING: connection_move_overdue(c); break;
	case CONNECTION_REATTACHING: connection_reattach_overdue(c); break;
	case CONNECTION_FINISHING: connection_end(c, (enum end_reason)c->end_reason, END_RESET); break;
	case CONNECTION_LINGERING: connection_close_now(c); break;
	case CONNECTION_CLOSING: break;
	}
}

static void on_deadline(struct deadline *d)
{
	struct connection *c = container_of(d, struct connection, deadline);

	if (c->state == CONNECTION_CLOSING) { /* it had no stream to close */
		connection_free(c);
		return;
	}
	connection_work_begins(c);
	act_on_deadline(c);
	connection_work_ends(c->home);
	connection_save_if_changed(c);
}

/* --- begin --- */

/* A client that would begin in clear is told so (RFC 5321 3.8). Returns the length of the words. */
static size_t refusing_words(
	const struct front *front, enum end_reason reason, uint8_t out[static SMTP_PREAMBLE_REPLY_MAX])
{
	struct wire_writer w = wire_writer(out, SMTP_PREAMBLE_REPLY_MAX);

	if (conf_has_preamble(front->conf))
		smtp_own_write(&w, reason == END_NOT_CAPTURED ? SMTP_OWN_MISCONFIGURED : SMTP_OWN_TOO_MANY_CONNECTIONS);
	return (size_t)wire_writer_len(&w);
}

void connection_turn_away(struct connection_home *home, const struct front *front, int fd, enum end_reason reason)
{
	static struct log_pace paces[END_REASON_COUNT];
	uint8_t words[SMTP_PREAMBLE_REPLY_MAX];

	log_event_paced(&paces[reason], LOG_INFO, NULL, "connection refused", "listener=%s reason=%s",
		front->conf->name, end_reason_text(reason));
	counter_add(&home->counters.ended[reason], 1);
	counter_add(&home->of_listeners[front->index].refused, 1);
	listener_refuse_accepted(fd, words, refusing_words(front, reason, words));
}

static int is_trusted(const struct conf_listener *l, const struct sockaddr *peer)
{
	for (size_t i = 0; i < l->trusted_count; i++)
		if (address_net_has(&l->trusted[i], peer))
			return 1;
	return 0;
}

/* Did clients of its source crash earlier processes? */
static int is_refused(const struct connection *c)
{
	const struct notes *n = c->home->shared->notes;

	return n && suspects_refuse(&n->shared->suspects, &c->endpoints.client, connection_now_ms(c));
}

/* Until it is closed, it holds a place of the total. Its source has no share left, so it is closed at once. */
static void refuse_source(struct connection *c)
{
	uint8_t words[SMTP_PREAMBLE_REPLY_MAX];
	const size_t len = refusing_words(c->front, END_LIMIT_SOURCE, words);

	connection_end(c, END_LIMIT_SOURCE,
		discard_behind_words(stream_fd(&c->busy->client), words, len) ? END_AT_ONCE : END_RESET);
}

void connection_known(struct connection *c)
{
	if (admission_enter_source(c->home->shared->admission, &c->endpoints.client) < 0) {
		refuse_source(c);
		return;
	}
	c->source = SOURCE_COUNTED;
	if (is_refused(c)) {
		counter_add(&c->home->counters.suspects_refused, 1);
		connection_end(c, END_SUSPECTED, END_RESET);
		return;
	}
	if (conf_has_preamble(c->front->conf))
		connection_preamble_begin(c);
	else
		connection_to(c, CONNECTION_HELLO);
}

/* The unique id goes where the rest of the connection is. */
int connection_take_header(struct connection *c, const struct proxy_header *h)
{
	struct endpoints *e = &c->endpoints;
	int r = endpoints_from_proxy(e, h);

	if (r < 0 || !e->unique_id)
		return r;
	uint8_t *id = fine_block_take(&c->home->belongings, e->unique_id_len);
	if (id)
		memcpy(id, e->unique_id, e->unique_id_len);
	else
		e->unique_id_len = 0;
	free(e->unique_id);
	e->unique_id = id;
	return id ? 0 : CSSL_E_NO_MEMORY;
}

static void drop_belongings(struct connection *c)
{
	fine_block_give(&c->home->belongings, c->endpoints.unique_id, c->endpoints.unique_id_len);
	agreed_destroy(&c->home->belongings, c->agreed);
}

static void begin(struct connection *c, const struct sockaddr_storage *peer, const struct sockaddr_storage *server)
{
	endpoints_from_sockets(&c->endpoints, (const struct sockaddr *)peer, (const struct sockaddr *)server);
	connection_arm_deadline(c);
	connection_begin_reading(c);
	if (c->front->conf->proxy_protocol == CONF_OFF) {
		connection_known(c);
	} else if (!is_trusted(c->front->conf, (const struct sockaddr *)peer)) {
		counter_add(&c->home->counters.proxy_untrusted, 1);
		connection_end(c, END_PROXY_HEADER_BAD, END_RESET);
	}
}

void connection_join(struct connection *c)
{
	struct connection **head = &c->home->connections;

	atomic_fetch_add(&c->front->connections, 1);
	c->next = *head;
	c->prev = head;
	if (c->next)
		c->next->prev = &c->next;
	*head = c;
	counter_add(&c->home->counters.connections_open, 1);
}

_Static_assert(sizeof(struct connection) + sizeof(struct busy_part) <= MEMORY_OF_RAGENT_CONNECTION / 2,
	"what --check says of a connection has room for its copies and names, too");

size_t connection_len(void)
{
	return sizeof(struct connection);
}

struct connection *connection_create(struct connection_home *home, struct front *front)
{
	struct connection *c = slabs_take(&home->connection_blocks);

	if (!c)
		return NULL;
	*c = (struct connection){ .home = home };
	if (connection_add_busy(c) < 0) {
		connection_discard(c);
		return NULL;
	}
	c->slot.fd = -1;
	c->front = front;
	c->handshake_agent = c->owner = c->affinity_agent = c->handshaking_at = c->move_target = NO_AGENT;
	c->deadline.fn = on_deadline;
	c->accepted_ms = c->active_ms = connection_now_ms(c);
	position_init(&c->position);
	randombytes_buf(c->id.bytes, sizeof c->id.bytes);
	return c;
}

void connection_discard(struct connection *c)
{
	drop_belongings(c);
	connection_void(c);
	connection_forget_trail(c);
	connection_free_busy(c);
	table_slot_to(&c->slot, SLOT_FREE);
	slabs_give(&c->home->connection_blocks, c);
}

void connection_accept(struct connection_home *home, struct front *front, int fd, const struct sockaddr_storage *peer,
	const struct sockaddr_storage *server)
{
	fault_at("client.accepted", NULL, NULL);
	if (admission_enter_beyond(home->shared->admission, front->beyond) < 0) {
		connection_turn_away(home, front, fd, END_LIMIT_TOTAL);
		return;
	}
	struct connection *c = connection_create(home, front);
	if (!c) {
		connection_turn_away(home, front, fd, END_INTERNAL);
		admission_leave(home->shared->admission);
		return;
	}
	stream_open_accepted(&c->busy->client, home->worker, &connection_client_ops, fd);
	counter_add(&home->counters.connections_accepted, 1);
	counter_add(&connection_counts(c)->accepted, 1);
	connection_join(c);
	begin(c, peer, server);
	connection_save_if_changed(c);
}

/* Its descriptor is closed by now. */
void connection_free(struct connection *c)
{
	if (c->source == SOURCE_COUNTED)
		admission_leave_source(c->home->shared->admission, &c->endpoints.client);
	admission_leave(c->home->shared->admission);
	atomic_fetch_sub(&c->front->connections, 1);
	deadline_cancel(&c->deadline);
	struct connection_home *home = c->home;
	mover_forget(&home->mover, c);
	counter_add(&home->counters.client_queued_bytes, c->slot.bytes_written - c->queued);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	connection_discard(c);
	counter_add(&home->counters.connections_open, (uint64_t)-1);
	home->on_left(home);
}

/* --- description --- */

void connection_describe(const struct connection *c, struct connection_description *out)
{
	const struct agents *agents = c->home->shared->agents;
	const struct agreed *a = c->agreed;
	uint64_t now_ms = connection_now_ms(c);

	*out = (struct connection_description){ .id = c->id,
		.listener = c->front->conf->name,
		.state = connection_state_name(c->state),
		.owner = c->state == CONNECTION_OWNED || c->state == CONNECTION_MOVING ? agents_name(agents, c->owner)
										       : NULL,
		.handshake_agent = c->handshake_agent == NO_AGENT ? NULL : agents_name(agents, c->handshake_agent),
		.affinity_agent = c->affinity_agent == NO_AGENT ? NULL : agents_name(agents, c->affinity_agent),
		.preamble_agent = connection_speaks_clear(c) && c->current.link
					  ? agents_name(agents, link_agent(c->current.link))
					  : NULL,
		.epoch = c->epoch,
		.moves = c->moves,
		.age_ms = now_ms - c->accepted_ms,
		.idle_ms = now_ms - c->active_ms,
		.client_records = c->busy ? c->busy->kept.next_record : c->position.client_records,
		.client_bytes = c->client_bytes,
		.server_records = c->position.server_records,
		.server_bytes = c->queued,
		.read_generation = c->position.read_generation,
		.write_generation = c->position.write_generation };
	endpoint_sockaddr(&c->endpoints.client, c->endpoints.client_port, &out->client);
	endpoint_sockaddr(&c->endpoints.server, c->endpoints.server_port, &out->server);
	if (!a)
		return;
	out->protocol_version = a->protocol_version;
	out->cipher_suite = a->cipher_suite;
	out->handshake = a->resumed ? HANDSHAKE_RESUMED : HANDSHAKE_FULL;
	out->server_name = agreed_server_name(a);
	out->alpn = agreed_alpn(a);
	memcpy(out->session_id, a->session_id, a->session_id_len);
	out->session_id_len = a->session_id_len;
	memcpy(out->family_id, a->family_id, FAMILY_ID_LEN);
}
