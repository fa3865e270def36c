/* connection.c: the life of a client connection: accept, creation, description. Its states are in connection_states.c.
 */
#include "ragent/connection/connection_internal.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "conf/memory.h"
#include "net/discard.h"
#include "net/listener.h"
#include "proto/error.h"
#include "smtp/preamble.h"

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

	for (size_t i = 0; c->now.agreed && i < l->alpn_count; i++)
		if (strcmp(l->alpn[i].protocol, agreed_alpn(c->now.agreed)) == 0)
			return &service_traits[l->alpn[i].service];
	return &service_traits[l->service];
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

/* Did clients of its source crash earlier processes? */
static bool is_refused(const struct connection *c)
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
	if (blocked_has(c->home->shared->blocked, &c->endpoints.client, connection_now_ms(c))) {
		connection_end(c, END_OPERATOR, END_RESET);
		return;
	}
	if (admission_enter_source(c->home->shared->admission, &c->endpoints.client) < 0) {
		refuse_source(c);
		return;
	}
	c->now.source = SOURCE_COUNTED;
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
	uint8_t *id = fine_block_take(&c->home->blocks, e->unique_id_len);
	if (id)
		memcpy(id, e->unique_id, e->unique_id_len);
	else
		e->unique_id_len = 0;
	free(e->unique_id);
	e->unique_id = id;
	return id ? 0 : CSSL_E_NO_MEMORY;
}

/* --- memory of its own --- */

int agreed_create(struct blocks *from, const char *server_name, size_t server_name_len, const char *alpn,
	size_t alpn_len, struct agreed **out)
{
	const size_t len = sizeof(struct agreed) + server_name_len + alpn_len + 2;

	if (server_name_len > NAME_MAX_LEN || alpn_len > NAME_MAX_LEN)
		return CSSL_E_TOO_LONG;
	struct agreed *a = fine_block_take(from, len);
	if (!a)
		return CSSL_E_NO_MEMORY;
	memset(a, 0, len);
	if (alpn_len)
		memcpy(a->names, alpn, alpn_len);
	if (server_name_len)
		memcpy(a->names + alpn_len + 1, server_name, server_name_len);
	*out = a;
	return 0;
}

void agreed_destroy(struct blocks *from, struct agreed *a)
{
	if (a)
		fine_block_give(from, a, sizeof *a + strlen(agreed_server_name(a)) + strlen(agreed_alpn(a)) + 2);
}

static void begin(struct connection *c, const struct sockaddr_storage *peer, const struct sockaddr_storage *server)
{
	endpoints_from_sockets(&c->endpoints, (const struct sockaddr *)peer, (const struct sockaddr *)server);
	connection_arm_deadline(c);
	connection_begin_reading(c);
	if (c->front->conf->proxy_protocol == CONF_OFF) {
		connection_known(c);
	} else if (!address_nets_have(
			   c->front->conf->trusted, c->front->conf->trusted_count, (const struct sockaddr *)peer)) {
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
	c->now.handshake_agent = c->now.owner = c->now.affinity_agent = c->now.handshaking_at = c->now.move_target =
		NO_AGENT;
	c->deadline.fn = connection_deadline_is_over;
	c->now.accepted_ms = c->now.active_ms = connection_now_ms(c);
	position_init(&c->now.position);
	randombytes_buf(c->id.bytes, sizeof c->id.bytes);
	return c;
}

void connection_discard(struct connection *c)
{
	fine_block_give(&c->home->blocks, c->endpoints.unique_id, c->endpoints.unique_id_len);
	agreed_destroy(&c->home->blocks, c->now.agreed);
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
	if (c->now.source == SOURCE_COUNTED)
		admission_leave_source(c->home->shared->admission, &c->endpoints.client);
	admission_leave(c->home->shared->admission);
	atomic_fetch_sub(&c->front->connections, 1);
	deadline_cancel(&c->deadline);
	struct connection_home *home = c->home;
	mover_forget(&home->mover, c);
	counter_add(&home->counters.client_queued_bytes, c->slot.bytes_written - c->now.queued);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	connection_discard(c);
	counter_add(&home->counters.connections_open, (uint64_t)-1);
	home->on_left(home);
}

/* --- description --- */

const char *connection_client_text(const struct connection *c, char text[static ADDRESS_TEXT_MAX])
{
	struct sockaddr_storage client;

	endpoint_sockaddr(&c->endpoints.client, c->endpoints.client_port, &client);
	return address_format((struct sockaddr *)&client, text);
}

/* What a client says in clear has no records. */
static uint64_t client_records(const struct connection *c)
{
	if (!c->busy)
		return c->now.position.now.client_records;
	return c->busy->kept.unit == KEPT_BYTES ? 0 : c->busy->kept.next_record;
}

void connection_describe(const struct connection *c, struct connection_description *out)
{
	const struct agents *agents = c->home->shared->agents;
	const struct agreed *a = c->now.agreed;
	uint64_t now_ms = connection_now_ms(c);

	*out = (struct connection_description){ .id = c->id,
		.listener = c->front->conf->name,
		.state = connection_state_name(c->now.state),
		.owner = c->now.state == CONNECTION_OWNED || c->now.state == CONNECTION_MOVING
				 ? agents_name(agents, c->now.owner)
				 : NULL,
		.handshake_agent =
			c->now.handshake_agent == NO_AGENT ? NULL : agents_name(agents, c->now.handshake_agent),
		.affinity_agent = c->now.affinity_agent == NO_AGENT ? NULL : agents_name(agents, c->now.affinity_agent),
		.preamble_agent = connection_speaks_clear(c) && c->now.current.link
					  ? agents_name(agents, link_agent(c->now.current.link))
					  : NULL,
		.epoch = c->now.epoch,
		.moves = c->now.moves,
		.age_ms = now_ms - c->now.accepted_ms,
		.idle_ms = now_ms - c->now.active_ms,
		.client_records = client_records(c),
		.client_bytes = c->now.client_bytes,
		.server_records = c->now.position.server_records,
		.server_bytes = c->now.queued,
		.read_generation = c->now.position.now.read_generation,
		.write_generation = c->now.position.write_generation };
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
