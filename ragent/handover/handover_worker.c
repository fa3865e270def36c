/* handover_worker.c: first each link with its descriptor. Then the worker itself, with the words of agents: a link that
 * comes up deletes them, so links come first; its numbers go by their tags in a table, counters by their names. Then
 * the connections, many in a message; each names its streams and their links.
 */
#include "ragent/handover/handover_worker.h"

#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "proto/fields.h"
#include "ragent/link/link_handover.h"

#define MESSAGE_FULL (1024u * 1024u)

/* --- links --- */

/* agent (2) | its worker (2) | link */
static int pack_link(struct link *l, struct handover_message *m)
{
	const struct link_descriptors d = link_descriptors(l);
	struct framed_saved saved;
	/* law 1: the other process seals with these keys next, so this one seals nothing more, unless it is refused */
	int r = link_freeze(l, &saved);
	size_t len = 4 + (r == 0 ? link_packed_len(l) : 0);

	handover_message_begin(m, HANDOVER_LINK);
	uint8_t *room = r == 0 ? handover_message_room(m, len) : NULL;
	if (room) {
		struct wire_writer w = wire_writer(room, len);
		wire_put_u16(&w, (uint16_t)link_agent(l));
		wire_put_u16(&w, (uint16_t)link_agent_worker(l));
		link_pack(l, &d, &saved, &w);
		m->len = (size_t)wire_writer_len(&w);
		handover_message_put_fd(m, d.socket);
		if (d.memory >= 0)
			handover_message_put_fd(m, d.memory);
		if (d.pidfd >= 0)
			handover_message_put_fd(m, d.pidfd);
	}
	sodium_memzero(&saved, sizeof saved);
	return r < 0 || room ? r : CSSL_E_NO_MEMORY;
}

static int pack_links(struct ragent_worker *rw, struct handover_message *m, handover_send *send, void *ctx)
{
	for (unsigned a = 0; a < agents_count(rw->home.shared->agents); a++) {
		for (unsigned i = 0; i < rw->home.links.of[a].count; i++) {
			struct link *l = rw->home.links.of[a].at[i];
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

	int fds[LINK_DESCRIPTORS_MAX];
	unsigned count = 0;

	if (m->fd_count == 0 || m->fd_count > LINK_DESCRIPTORS_MAX)
		return CSSL_E_SYSTEM; /* no room for descriptors here */
	if (ours == NO_AGENT || worker >= rw->home.links.of[ours].count)
		return CSSL_E_MISMATCH;
	while (m->fd_count > count && count < LINK_DESCRIPTORS_MAX)
		fds[count++] = handover_message_take_fd(m);
	return link_unpack(rw->home.links.of[ours].at[worker], fds, count, link, len);
}

/* --- the worker itself --- */

/* Links and connections make these again: links, open_links, connections, blocks, partials, handshakes, preambles,
 * holdings, connection_blocks, busy_parts, dormant, table, went_on, restoring, on_restored,
 * connection_share, belonging_share, trails, reattaching, working, nobody. The new process's own: shared, worker,
 * listening with its count, open_listeners, takeovers (its pace begins again), storm, mover (it searches again), tick,
 * drain_deadline, hello_scratch, cause, state, on_left, on_closed, owner, ended_lines (the lines of this second).
 * Beside the rows: counters, of_agents, of_listeners, ownerships. */
static const struct field rows[] = {
	FIELD_OF(struct ragent_worker, 1, FIELD_UINT, requests.next_token, FIELD_ANY),
	FIELD_OF(struct ragent_worker, 2, FIELD_BYTES, home.id_check_key, 0),
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

/* TAG_AGENT: index (2), then fields. */
enum { TAG_COUNTER = 100, TAG_AGENT = 101, TAG_OWNERSHIPS = 102 };

/* TAG_COUNTER: whose (1) | index of the agent or listener in the OFFER (2) | value (8) | name. A release that lacks the
 * counter skips it. */
enum whose { COUNTERS_OF_WORKER, COUNTERS_OF_AGENT, COUNTERS_OF_LISTENER };
#define COUNTER_FRONT_LEN 11u

struct told_counters {
	counter *at;
	size_t count;
	const struct counter_row *(*row)(size_t index);
};

static struct told_counters handover_set_of(struct connection_home *home, enum whose whose, unsigned index)
{
	switch (whose) {
	case COUNTERS_OF_AGENT:
		return (struct told_counters){ (counter *)&home->of_agents[index], ownership_counter_count(),
			ownership_counter_row };
	case COUNTERS_OF_LISTENER:
		return (struct told_counters){ (counter *)&home->of_listeners[index], LISTENER_COUNTER_COUNT,
			listener_counter_row };
	default:
		return (struct told_counters){ (counter *)&home->counters, ragent_counter_count(), ragent_counter_row };
	}
}

/* A gauge counts local objects; objects that come count themselves. */
static int put_counters(struct handover_message *m, struct connection_home *home, enum whose whose, unsigned index)
{
	const struct told_counters set = handover_set_of(home, whose, index);
	uint8_t front[COUNTER_FRONT_LEN] = { (uint8_t)whose };
	int r = 0;

	wire_store_u16(front + 1, (uint16_t)index);
	for (size_t i = 0; r == 0 && i < set.count; i++) {
		const struct counter_row *row = set.row(i);
		if (row->kind == COUNTER_GAUGE || counter_get(&set.at[i]) == 0)
			continue;
		wire_store_u64(front + 3, counter_get(&set.at[i]));
		r = handover_message_put_field(m, TAG_COUNTER, front, sizeof front, row->name);
	}
	return r;
}

static int put_agent(struct handover_message *m, const struct agents *agents, int agent)
{
	const size_t len = 2 + fields_len(agent_rows, AGENT_ROWS);
	uint8_t *room = handover_message_room(m, FIELD_HEADER_LEN + len);
	struct agent_word word;

	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room, FIELD_HEADER_LEN + len);
	agents_word(agents, agent, &word);
	field_begin(&w, TAG_AGENT, len);
	wire_put_u16(&w, (uint16_t)agent);
	fields_write(&w, &word, agent_rows, AGENT_ROWS);
	return 0;
}

static int put_own(struct handover_message *m, const struct ragent_worker *rw)
{
	const size_t past = ownerships_packed_len(rw->home.ownerships);
	const size_t len = fields_len(rows, ROWS) + FIELD_HEADER_LEN + past;
	uint8_t *room = handover_message_room(m, len);

	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room, len);
	fields_write(&w, rw, rows, ROWS);
	field_begin(&w, TAG_OWNERSHIPS, past);
	ownerships_pack(rw->home.ownerships, &w);
	return 0;
}

static int pack_self(struct ragent_worker *rw, struct handover_message *m)
{
	struct connection_home *home = &rw->home;
	const struct agents *agents = home->shared->agents;

	handover_message_begin(m, HANDOVER_WORKER);
	int r = put_own(m, rw);
	if (r == 0)
		r = put_counters(m, home, COUNTERS_OF_WORKER, 0);
	for (unsigned f = 0; r == 0 && f < home->shared->front_count; f++)
		r = put_counters(m, home, COUNTERS_OF_LISTENER, f);
	for (unsigned a = 0; r == 0 && a < agents_count(agents); a++) {
		r = put_agent(m, agents, (int)a);
		if (r == 0)
			r = put_counters(m, home, COUNTERS_OF_AGENT, a);
	}
	return r;
}

/* Of the other process's agent, or listener. 0; CSSL_E_RANGE; or AGENT_IS_GONE. */
#define AGENT_IS_GONE 1
static int our_index(const struct handover_map *map, enum whose whose, unsigned *index)
{
	const unsigned theirs = *index;

	switch (whose) {
	case COUNTERS_OF_WORKER: return 0;
	case COUNTERS_OF_AGENT:
		if (theirs >= map->agent_count)
			return CSSL_E_RANGE;
		*index = (unsigned)map->agents[theirs];
		return map->agents[theirs] == NO_AGENT ? AGENT_IS_GONE : 0;
	case COUNTERS_OF_LISTENER:
		if (theirs >= map->front_count)
			return CSSL_E_RANGE;
		*index = (unsigned)map->fronts[theirs]->index;
		return 0;
	default: return CSSL_E_RANGE;
	}
}

static int take_counter(struct ragent_worker *rw, const struct handover_map *map, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	const enum whose whose = (enum whose)wire_u8(&r);
	unsigned index = wire_u16(&r);
	const uint64_t value = wire_u64(&r);
	const size_t len = wire_left(&r);
	const uint8_t *name = wire_bytes(&r, len);
	int result = name ? our_index(map, whose, &index) : CSSL_E_TRUNCATED;

	if (result != 0)
		return result == AGENT_IS_GONE ? 0 : result;
	const struct told_counters set = handover_set_of(&rw->home, whose, index);
	for (size_t i = 0; i < set.count; i++) {
		const struct counter_row *row = set.row(i);
		if (row->kind != COUNTER_GAUGE && strlen(row->name) == len && memcmp(row->name, name, len) == 0)
			counter_set(&set.at[i], value);
	}
	return 0;
}

static int take_agent(struct ragent_worker *rw, const struct handover_map *map, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	unsigned agent = wire_u16(&r);
	struct agent_word word = { 0 };
	struct field_item inner;
	int result = our_index(map, COUNTERS_OF_AGENT, &agent), is_gone = result == AGENT_IS_GONE;

	if (result < 0)
		return result;
	while ((result = field_next(&r, &inner)) == 0) {
		result = field_store(&word, agent_rows, AGENT_ROWS, &inner);
		if (result != 0)
			return result < 0 ? result : CSSL_E_VERSION;
	}
	if (result == FIELDS_END && !is_gone)
		agents_believe(rw->home.shared->agents, (int)agent, &word);
	return result < 0 ? result : 0;
}

static int take_self_item(struct ragent_worker *rw, const struct handover_map *map, const struct field_item *item)
{
	switch (item->tag) {
	case TAG_COUNTER: return take_counter(rw, map, item);
	case TAG_AGENT: return take_agent(rw, map, item);
	case TAG_OWNERSHIPS:
		return ownerships_unpack(rw->home.ownerships, map->agents, map->agent_count, item->value, item->len);
	default: return field_store(rw, rows, ROWS, item);
	}
}

static int unpack_self(struct ragent_worker *rw, const struct handover_map *map, const struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);
	struct field_item item;
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		result = take_self_item(rw, map, &item);
		if (result != 0)
			return result < 0 ? result : CSSL_E_VERSION;
	}
	return result < 0 ? result : 0;
}

/* --- connections --- */

/* length (4) | connection; once for each descriptor */
static int pack_connection(const struct connection *c, struct handover_message *m)
{
	const size_t cap = connection_packed_len(c), before = m->len;

	if (cap == 0)
		return 0;
	uint8_t *room = handover_message_room(m, 4 + cap);
	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room + 4, cap);
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
	for (const struct connection *c = rw->home.connections; c && r == 0; c = connection_next(c)) {
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
		int result = connection ? connection_unpack(&rw->home, map, fd, connection, len) : CSSL_E_TRUNCATED;
		if (result < 0)
			return result;
	}
	return wire_reader_end(&r);
}

/* --- a whole worker --- */

/* Finish all ends that are under way; one end may cause others. The other process can go on with no re-attach. */
static void handover_worker_settle(struct ragent_worker *rw)
{
	bool again = true;

	while (again) {
		again = false;
		for (unsigned a = 0; a < agents_count(rw->home.shared->agents); a++)
			for (unsigned i = 0; i < rw->home.links.of[a].count; i++)
				again |= link_settle(rw->home.links.of[a].at[i]);
		connection_home_each(&rw->home, connection_end_if_broken);
		connection_home_each(&rw->home, connection_stop_reattaching);
	}
}

int handover_worker_pack(struct ragent_worker *rw, handover_send *send, void *ctx)
{
	struct handover_message m = { 0 };

	handover_worker_settle(rw);
	int r = pack_links(rw, &m, send, ctx);
	if (r == 0)
		r = pack_self(rw, &m);
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
	links_each(&rw->home.links, link_resume);
	worker_refresh_now(rw->home.worker);
}

void handover_worker_let_go(struct ragent_worker *rw)
{
	connection_home_each(&rw->home, connection_let_go);
	requests_end(&rw->requests, "this process is being replaced");
	ragent_worker_park(rw);
	worker_refresh_now(rw->home.worker);
}

void handover_worker_go_on(struct ragent_worker *rw)
{
	worker_refresh_now(rw->home.worker); /* times that come are younger than this turn */
	ragent_worker_unpark(rw->home.worker, rw);
	links_each(&rw->home.links, link_prove); /* the process after this one will show another proof */
	connection_home_each(&rw->home, connection_go_on);
}
