/* handover_self.c: numbers go by their tags in a table, counters by their names. */
#include "ragent/handover/handover_self.h"

#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/fields.h"

/* Links and connections make these again: links, open_links, connections, blocks, partials, handshakes, preambles,
 * holdings, connection_blocks, busy_parts, dormant, belongings, table, went_on, restoring, on_restored,
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

#define LISTENER_COUNTER_NAME_MAX 128u /* a listener's name, "/", a counter's name */

enum { TAG_COUNTER = 100, TAG_AGENT = 101, TAG_OWNERSHIPS = 102, TAG_OF_AGENT = 103, TAG_AGENT_INDEX = 100 };

static int is_named(const struct counter_row *row, const uint8_t *name, size_t len)
{
	return strlen(row->name) == len && memcmp(row->name, name, len) == 0;
}

/* value (8) | name */
static void put_counters(struct wire_writer *w, const struct ragent_counters *c)
{
	for (size_t i = 0; i < ragent_counter_count(); i++) {
		const char *name = ragent_counter_row(i)->name;
		if (ragent_counter_row(i)->kind == COUNTER_GAUGE)
			continue; /* a gauge counts local objects; objects that come count themselves */
		field_begin(w, TAG_COUNTER, 8 + strlen(name));
		wire_put_u64(w, counter_get(counter_at(c, i)));
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

/* A listener's counters are written as counters, too: "LISTENER/COUNTER". A release that does not know them skips
 * them. */

static size_t of_listeners_len(const struct ragent_shared *s)
{
	return s->front_count * LISTENER_COUNTER_COUNT * (FIELD_HEADER_LEN + 8 + LISTENER_COUNTER_NAME_MAX);
}

static void put_of_listener(struct wire_writer *w, const char *listener, const struct listener_counters *c)
{
	char name[LISTENER_COUNTER_NAME_MAX];

	for (size_t i = 0; i < LISTENER_COUNTER_COUNT; i++) {
		snprintf(name, sizeof name, "%s/%s", listener, listener_counter_row(i)->name);
		field_begin(w, TAG_COUNTER, 8 + strlen(name));
		wire_put_u64(w, counter_get(counter_at(c, i)));
		wire_put_bytes(w, name, strlen(name));
	}
}

static void take_of_listeners(struct ragent_worker *rw, const uint8_t *name, size_t len, uint64_t value)
{
	const struct ragent_shared *s = rw->home.shared;
	char ours[LISTENER_COUNTER_NAME_MAX];

	for (size_t f = 0; f < s->front_count; f++) {
		for (size_t i = 0; i < LISTENER_COUNTER_COUNT; i++) {
			snprintf(ours, sizeof ours, "%s/%s", s->fronts[f].conf->name, listener_counter_row(i)->name);
			if (strlen(ours) == len && memcmp(ours, name, len) == 0)
				counter_set(counter_at(&rw->home.of_listeners[f], i), value);
		}
	}
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

/* --- parts that the first format lacks --- */

static size_t past_len(const struct ragent_worker *rw, unsigned format)
{
	size_t len = FIELD_HEADER_LEN + ownerships_packed_len(rw->home.ownerships);

	for (size_t i = 0; i < ownership_counter_count(); i++)
		len += agents_count(rw->home.shared->agents) *
		       (FIELD_HEADER_LEN + 10 + strlen(ownership_counter_row(i)->name));
	return format < HANDOVER_TELLS_PAST ? 0 : len;
}

/* agent (2) | value (8) | name */
static void put_of_agent(struct wire_writer *w, const struct ownership_counters *c, int agent)
{
	for (size_t i = 0; i < ownership_counter_count(); i++) {
		const char *name = ownership_counter_row(i)->name;
		if (counter_get(counter_at(c, i)) == 0)
			continue;
		field_begin(w, TAG_OF_AGENT, 10 + strlen(name));
		wire_put_u16(w, (uint16_t)agent);
		wire_put_u64(w, counter_get(counter_at(c, i)));
		wire_put_bytes(w, name, strlen(name));
	}
}

static void put_past(struct wire_writer *w, const struct ragent_worker *rw, unsigned format)
{
	if (format < HANDOVER_TELLS_PAST)
		return;
	for (int a = 0; a < (int)agents_count(rw->home.shared->agents); a++)
		put_of_agent(w, &rw->home.of_agents[a], a);
	field_begin(w, TAG_OWNERSHIPS, ownerships_packed_len(rw->home.ownerships));
	ownerships_pack(rw->home.ownerships, w);
}

static int take_of_agent(struct ragent_worker *rw, const struct handover_map *map, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	unsigned agent = wire_u16(&r);
	uint64_t value = wire_u64(&r);
	size_t len = wire_left(&r);
	const uint8_t *name = wire_bytes(&r, len);

	if (!name)
		return CSSL_E_TRUNCATED;
	if (agent >= map->agent_count)
		return CSSL_E_RANGE;
	for (size_t i = 0; map->agents[agent] != NO_AGENT && i < ownership_counter_count(); i++)
		if (is_named(ownership_counter_row(i), name, len))
			counter_set(counter_at(&rw->home.of_agents[map->agents[agent]], i), value);
	return 0;
}

/* --- the message --- */

int handover_self_pack(struct ragent_worker *rw, unsigned format, struct handover_message *m)
{
	const struct agents *agents = rw->home.shared->agents;
	size_t agent_len = 2 * FIELD_HEADER_LEN + 2 + fields_len(agent_rows, AGENT_ROWS);
	size_t cap = fields_len(rows, ROWS) + counters_len() + of_listeners_len(rw->home.shared) +
		     agents_count(agents) * agent_len + past_len(rw, format);

	handover_message_begin(m, HANDOVER_WORKER);
	uint8_t *room = handover_message_room(m, cap);
	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room, cap);
	fields_write(&w, rw, rows, ROWS);
	put_counters(&w, &rw->home.counters);
	for (size_t f = 0; f < rw->home.shared->front_count; f++)
		put_of_listener(&w, rw->home.shared->fronts[f].conf->name, &rw->home.of_listeners[f]);
	for (int a = 0; a < (int)agents_count(agents); a++)
		put_agent(&w, agents, a);
	put_past(&w, rw, format);
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
		if (is_named(ours, name, len) && ours->kind != COUNTER_GAUGE)
			counter_set(counter_at(&rw->home.counters, i), value);
	}
	if (memchr(name, '/', len))
		take_of_listeners(rw, name, len, value);
	return 0; /* a counter that this release lacks is skipped */
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
		agents_believe(rw->home.shared->agents, map->agents[agent], &word);
	return 0;
}

int handover_self_unpack(struct ragent_worker *rw, const struct handover_map *map, const struct handover_message *m)
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
		else if (result == FIELD_OTHER && item.tag == TAG_OF_AGENT)
			result = take_of_agent(rw, map, &item);
		else if (result == FIELD_OTHER && item.tag == TAG_OWNERSHIPS)
			result = ownerships_unpack(
				rw->home.ownerships, map->agents, map->agent_count, item.value, item.len);
		if (result != 0)
			return result < 0 ? result : CSSL_E_VERSION;
	}
	return result < 0 ? result : 0;
}
