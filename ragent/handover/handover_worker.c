/* handover_worker.c: first each link with its descriptor; then the worker itself, with what agents said, which a link
 * that comes up forgets; then the connections, many to a message, which say on which streams of which links they are.
 */
#include "ragent/handover/handover_worker.h"

#include <string.h>

#include <sodium.h>

#include "net/log.h"
#include "proto/error.h"
#include "proto/fields.h"
#include "ragent/link/link_handover.h"

#define MESSAGE_FULL (1024u * 1024u)

/* --- the worker itself --- */

/* Made anew by its links and connections: links, open_links, connections, blocks, partials, awake, dormant. The new
 * process's own: shared, worker, listening with its count, open_listeners, takeovers (a pace begins again), mover (it
 * looks for itself), tick, drain_deadline, hello_scratch, candidates, state, on_closed, owner. Beside the rows:
 * counters, ownerships. */
static const struct field rows[] = {
	FIELD_OF(struct ragent_worker, 1, FIELD_UINT, requests.next_token, FIELD_ANY),
	FIELD_OF(struct ragent_worker, 2, FIELD_BYTES, id_check_key, 0),
};
#define ROWS (sizeof rows / sizeof rows[0])

static const struct field agent_rows[] = {
	FIELD_OF(struct agent_word, 1, FIELD_UINT, boot_id, FIELD_ANY),
	FIELD_OF(struct agent_word, 2, FIELD_UINT, sessions, FIELD_ANY),
	FIELD_OF(struct agent_word, 3, FIELD_UINT, ready, 1),
	FIELD_OF(struct agent_word, 4, FIELD_UINT, leaving, 1),
	FIELD_OF(struct agent_word, 5, FIELD_UINT, handshake_us, FIELD_ANY),
	FIELD_OF(struct agent_word, 6, FIELD_UINT, busy_permille, FIELD_ANY),
	FIELD_OF(struct agent_word, 7, FIELD_UINT, weight, FIELD_ANY),
	FIELD_OF(struct agent_word, 8, FIELD_UINT, weight_in_file, FIELD_ANY),
	FIELD_OF(struct agent_word, 9, FIELD_UINT, drain.state, DRAIN_TIMED_OUT),
	FIELD_OF(struct agent_word, 10, FIELD_UINT, drain.reason, DRAIN_LEAVING),
	FIELD_OF(struct agent_word, 11, FIELD_UINT, drain.began_ms, FIELD_ANY),
	FIELD_OF(struct agent_word, 12, FIELD_UINT, drain.over_ms, FIELD_ANY),
	FIELD_OF(struct agent_word, 13, FIELD_UINT, drain.deadline_ms, FIELD_ANY),
	FIELD_OF(struct agent_word, 14, FIELD_UINT, drain.total, FIELD_ANY),
	FIELD_OF(struct agent_word, 15, FIELD_UINT, drain.moved, FIELD_ANY),
	FIELD_OF(struct agent_word, 16, FIELD_UINT, drain.rested, FIELD_ANY),
	FIELD_OF(struct agent_word, 17, FIELD_UINT, drain.ended, FIELD_ANY),
	FIELD_OF(struct agent_word, 18, FIELD_UINT, drain.longest_pause_us, FIELD_ANY),
	FIELD_OF(struct agent_word, 19, FIELD_UINT, drain.summed_pause_us, FIELD_ANY),
};
#define AGENT_ROWS (sizeof agent_rows / sizeof agent_rows[0])

enum { TAG_COUNTER = 100, TAG_AGENT = 101, TAG_OWNERSHIPS = 102, TAG_AGENT_INDEX = 100 };

/* value (8) | name */
static void put_counters(struct wire_writer *w, const struct ragent_counters *c)
{
	for (size_t i = 0; i < ragent_counter_count(); i++) {
		const char *name = ragent_counter_row(i)->name;
		if (ragent_counter_row(i)->kind == COUNTER_GAUGE)
			continue; /* counts what is here; what comes along counts itself */
		field_begin(w, TAG_COUNTER, 8 + strlen(name));
		wire_put_u64(w, ragent_counter_value(c, i));
		wire_put_bytes(w, name, strlen(name));
	}
}

static size_t counters_len(void)
{
	size_t len = 0;

	for (size_t i = 0; i < ragent_counter_count(); i++)
		len += FIELD_HEADER_LEN + 8 + strlen(ragent_counter_row(i)->name);
	return len;
}

static void put_agent(struct wire_writer *w, const struct agents *agents, int agent)
{
	struct agent_word word;

	agents_word(agents, agent, &word);
	field_begin(w, TAG_AGENT, FIELD_HEADER_LEN + 2 + fields_len(agent_rows, AGENT_ROWS));
	field_begin(w, TAG_AGENT_INDEX, 2);
	wire_put_u16(w, (uint16_t)agent);
	fields_write(w, &word, agent_rows, AGENT_ROWS);
}

static size_t ownerships_len(const struct ragent_worker *rw, unsigned format)
{
	return format < HANDOVER_TELLS_PAST ? 0 : FIELD_HEADER_LEN + ownerships_packed_len(rw->ownerships);
}

static void put_ownerships(struct wire_writer *w, const struct ragent_worker *rw, unsigned format)
{
	if (format < HANDOVER_TELLS_PAST)
		return;
	field_begin(w, TAG_OWNERSHIPS, ownerships_packed_len(rw->ownerships));
	ownerships_pack(rw->ownerships, w);
}

static int pack_self(struct ragent_worker *rw, unsigned format, struct handover_message *m)
{
	const struct agents *agents = rw->shared->agents;
	size_t agent_len = 2 * FIELD_HEADER_LEN + 2 + fields_len(agent_rows, AGENT_ROWS);
	size_t cap =
		fields_len(rows, ROWS) + counters_len() + agents_count(agents) * agent_len + ownerships_len(rw, format);

	handover_message_begin(m, HANDOVER_WORKER);
	uint8_t *room = handover_message_room(m, cap);
	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room, cap);
	fields_write(&w, rw, rows, ROWS);
	put_counters(&w, &rw->counters);
	for (int a = 0; a < (int)agents_count(agents); a++)
		put_agent(&w, agents, a);
	put_ownerships(&w, rw, format);
	m->len = (size_t)wire_writer_len(&w);
	return 0;
}

static int take_counter(struct ragent_worker *rw, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	uint64_t value = wire_u64(&r);
	size_t len = wire_left(&r);
	const uint8_t *name = wire_bytes(&r, len);

	if (!name)
		return CSSL_E_TRUNCATED;
	for (size_t i = 0; i < ragent_counter_count(); i++) {
		const struct counter_row *ours = ragent_counter_row(i);
		if (strlen(ours->name) == len && memcmp(ours->name, name, len) == 0 && ours->kind != COUNTER_GAUGE)
			ragent_counter_set(&rw->counters, i, value);
	}
	return 0; /* one that is no more counted is no loss */
}

static int take_agent(struct ragent_worker *rw, const struct handover_map *map, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	struct field_item inner;
	struct agent_word word = { 0 };
	uint64_t agent = UINT64_MAX;
	int result;

	while ((result = field_next(&r, &inner)) == 0) {
		result = inner.tag == TAG_AGENT_INDEX ? field_number(&inner, map->agent_count - 1u, &agent)
						      : field_store(&word, agent_rows, AGENT_ROWS, &inner);
		if (result != 0)
			return result < 0 ? result : CSSL_E_VERSION;
	}
	if (result < 0 || agent == UINT64_MAX)
		return CSSL_E_TRUNCATED;
	if (map->agents[agent] != NO_AGENT)
		agents_believe(rw->shared->agents, map->agents[agent], &word);
	return 0;
}

static int unpack_self(struct ragent_worker *rw, const struct handover_map *map, const struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);
	struct field_item item;
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		result = field_store(rw, rows, ROWS, &item);
		if (result == FIELD_OTHER && item.tag == TAG_COUNTER)
			result = take_counter(rw, &item);
		else if (result == FIELD_OTHER && item.tag == TAG_AGENT)
			result = take_agent(rw, map, &item);
		else if (result == FIELD_OTHER && item.tag == TAG_OWNERSHIPS)
			result = ownerships_unpack(rw->ownerships, map->agents, map->agent_count, item.value, item.len);
		if (result != 0)
			return result < 0 ? result : CSSL_E_VERSION;
	}
	return result < 0 ? result : 0;
}

/* --- links --- */

static void each_link(struct ragent_worker *rw, void (*fn)(struct link *l))
{
	for (unsigned a = 0; a < agents_count(rw->shared->agents); a++)
		for (unsigned i = 0; i < rw->links[a].count; i++)
			fn(rw->links[a].at[i]);
}

/* agent (2) | its worker (2) | link */
static int pack_link(struct link *l, struct handover_message *m)
{
	struct framed_saved saved;
	int r = link_freeze(l, &saved);
	size_t len = 4 + (r == 0 ? link_packed_len(l) : 0);

	handover_message_begin(m, HANDOVER_LINK);
	uint8_t *room = r == 0 ? handover_message_room(m, len) : NULL;
	if (room) {
		struct wire_writer w = wire_writer(room, len);
		wire_put_u16(&w, (uint16_t)link_agent(l));
		wire_put_u16(&w, (uint16_t)link_agent_worker(l));
		link_pack(l, &saved, &w);
		m->len = (size_t)wire_writer_len(&w);
		handover_message_put_fd(m, link_fd(l));
	}
	sodium_memzero(&saved, sizeof saved);
	return r < 0 || room ? r : CSSL_E_NO_MEMORY;
}

static int pack_links(struct ragent_worker *rw, struct handover_message *m, handover_send *send, void *ctx)
{
	for (unsigned a = 0; a < agents_count(rw->shared->agents); a++) {
		for (unsigned i = 0; i < rw->links[a].count; i++) {
			struct link *l = rw->links[a].at[i];
			int r = link_open(l) ? pack_link(l, m) : 0;
			if (r == 0 && link_open(l))
				r = send(ctx, m);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int unpack_link(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);
	uint16_t agent = wire_u16(&r), worker = wire_u16(&r);
	size_t len = wire_left(&r);
	const uint8_t *link = wire_bytes(&r, len);
	int ours = link && agent < map->agent_count ? map->agents[agent] : NO_AGENT;

	if (m->fd_count != 1)
		return CSSL_E_SYSTEM; /* no room for descriptors here */
	if (ours == NO_AGENT || worker >= rw->links[ours].count)
		return CSSL_E_MISMATCH;
	return link_unpack(rw->links[ours].at[worker], handover_message_take_fd(m), link, len);
}

/* --- connections --- */

/* length (4) | connection, as often as there are descriptors */
static int pack_connection(const struct connection *c, struct handover_message *m)
{
	size_t cap = 4 + connection_packed_len(c), before = m->len;
	uint8_t *room = handover_message_room(m, cap);

	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room + 4, cap - 4);
	connection_pack(c, &w);
	size_t len = (size_t)wire_writer_len(&w);
	wire_store_u32(room, (uint32_t)len);
	m->len = before + 4 + len;
	handover_message_put_fd(m, connection_fd(c));
	return 0;
}

static int pack_connections(struct ragent_worker *rw, struct handover_message *m, handover_send *send, void *ctx)
{
	int r = 0;

	handover_message_begin(m, HANDOVER_CONNECTIONS);
	for (const struct connection *c = rw->connections; c && r == 0; c = connection_next(c)) {
		if (!connection_can_be_packed(c))
			continue;
		r = pack_connection(c, m);
		if (r == 0 && (m->fd_count == HANDOVER_FDS_MAX || m->len >= MESSAGE_FULL)) {
			r = send(ctx, m);
			handover_message_begin(m, HANDOVER_CONNECTIONS);
		}
	}
	return r == 0 && m->fd_count ? send(ctx, m) : r;
}

static int unpack_connections(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);

	while (wire_left(&r) > 0) {
		size_t len = wire_u32(&r);
		const uint8_t *connection = wire_bytes(&r, len);
		int fd = handover_message_take_fd(m);
		if (fd < 0)
			return CSSL_E_SYSTEM; /* no room for descriptors here */
		int result = connection ? connection_unpack(rw, map, fd, connection, len) : CSSL_E_TRUNCATED;
		if (result < 0)
			return result;
	}
	return wire_reader_end(&r);
}

/* --- all of it --- */

/* What is ending already ends before; that may make others end. */
static void settle(struct ragent_worker *rw)
{
	int again = 1;

	while (again) {
		again = 0;
		for (unsigned a = 0; a < agents_count(rw->shared->agents); a++)
			for (unsigned i = 0; i < rw->links[a].count; i++)
				again |= link_settle(rw->links[a].at[i]);
		for (struct connection *c = rw->connections, *next; c; c = next) {
			next = connection_next(c);
			connection_settle(c);
		}
	}
}

int handover_worker_pack(struct ragent_worker *rw, unsigned format, handover_send *send, void *ctx)
{
	struct handover_message m = { 0 };

	settle(rw);
	int r = pack_links(rw, &m, send, ctx);
	if (r == 0)
		r = pack_self(rw, format, &m);
	if (r == 0)
		r = send(ctx, &m);
	if (r == 0)
		r = pack_connections(rw, &m, send, ctx);
	handover_message_clear(&m);
	return r;
}

int handover_worker_unpack(struct ragent_worker *rw, const struct handover_map *map, struct handover_message *m)
{
	switch ((enum handover_type)m->type) {
	case HANDOVER_WORKER: return unpack_self(rw, map, m);
	case HANDOVER_LINK: return unpack_link(rw, map, m);
	case HANDOVER_CONNECTIONS: return unpack_connections(rw, map, m);
	default: return CSSL_E_TYPE;
	}
}

void handover_worker_resume(struct ragent_worker *rw)
{
	each_link(rw, link_resume);
	worker_refresh_now(rw->worker);
}

void handover_worker_let_go(struct ragent_worker *rw)
{
	for (struct connection *c = rw->connections, *next; c; c = next) {
		next = connection_next(c);
		connection_let_go(c);
	}
	requests_end(&rw->requests, "this process is being replaced");
	ragent_worker_park(rw);
	worker_refresh_now(rw->worker);
}

void handover_worker_go_on(struct ragent_worker *rw)
{
	worker_refresh_now(rw->worker); /* what comes along is younger than this turn */
	ragent_worker_unpark(rw);
	for (struct connection *c = rw->connections, *next; c; c = next) {
		next = connection_next(c);
		connection_go_on(c);
	}
}
