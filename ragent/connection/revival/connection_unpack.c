/* connection_unpack.c: makes a connection from the data of another process. It is parsed into an object that nothing
 * else uses yet, checked, and only then put among the others.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/points/mutant.h"
#include "net/socket/tcp_counts.h"
#include "proto/error.h"
#include "ragent/connection/connection_clear.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/connection/revival/connection_fields.h"
#include "ragent/connection/revival/revival.h"
#include "ragent/link/link_handover.h"
#include "ragent/link/stream_fields.h"

/* Values that are parsed and not yet in the connection. */
struct parsed {
	struct connection *c;
	const struct handover_map *map;
	struct stream_leftovers left;
	const uint8_t *kept;
	size_t kept_len;
	uint32_t kept_consumed, kept_sent;
};

static int unpack_agent(const struct parsed *p, int16_t *agent)
{
	const unsigned count = p->map ? p->map->agent_count : agents_count(connection_agents(p->c));

	if (*agent == NO_AGENT)
		return 0;
	if (*agent < 0 || (unsigned)*agent >= count)
		return CSSL_E_RANGE;
	if (p->map)
		*agent = (int16_t)p->map->agents[*agent];
	return 0;
}

static int unpack_listener(struct parsed *p, const struct field_item *item)
{
	const struct ragent_shared *shared = p->c->home->shared;
	const size_t count = p->map ? p->map->front_count : shared->front_count;
	uint64_t index;
	int r = field_number(item, count - 1, &index);

	if (r == 0)
		p->c->front = p->map ? p->map->fronts[index] : &shared->fronts[index];
	return r;
}

static int unpack_place(struct parsed *p, const struct field_item *item, struct place *place)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	int16_t agent = (int16_t)wire_u16(&r);
	uint16_t worker = wire_u16(&r);
	uint32_t stream = wire_u32(&r);

	if (wire_reader_end(&r) < 0 || place->link || unpack_agent(p, &agent) < 0 || agent == NO_AGENT ||
		worker >= p->c->home->links.of[agent].count)
		return CSSL_E_MISMATCH;
	struct link *l = p->c->home->links.of[agent].at[worker];
	int result = link_stream_continue(l, stream, p->c);
	if (result < 0)
		return result;
	*place = (struct place){ l, stream };
	agents_enter(connection_agents(p->c), agent, AGENT_OWNERSHIPS);
	return 0;
}

static int unpack_unique_id(struct parsed *p, const struct field_item *item)
{
	struct endpoints *e = &p->c->endpoints;

	if (item->len == 0 || item->len > PROXY_UNIQUE_ID_MAX || e->unique_id)
		return CSSL_E_RANGE;
	e->unique_id = fine_block_take(&p->c->home->blocks, item->len);
	if (!e->unique_id)
		return CSSL_E_NO_MEMORY;
	memcpy(e->unique_id, item->value, item->len);
	e->unique_id_len = (uint8_t)item->len;
	return 0;
}

static int unpack_copy(struct parsed *p, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);
	uint32_t read_generation = wire_u32(&r), write_generation = wire_u32(&r);
	size_t len = wire_left(&r);
	const uint8_t *data = wire_bytes(&r, len);

	if (!data || len == 0)
		return CSSL_E_TRUNCATED;
	return copies_offer(&p->c->now.copies, &p->c->home->blocks,
		&(struct copy_offer){ data, len, read_generation, write_generation,
			item->tag == TAG_COPY ? COPY_OF_LIVE : COPY_ALONE });
}

static int unpack_agreed(struct parsed *p, const struct field_item *agreed)
{
	struct wire_reader r = wire_reader(agreed->value, agreed->len);
	const size_t alpn_len = wire_u16(&r);
	const char *alpn = (const char *)wire_bytes(&r, alpn_len);
	const size_t name_len = wire_u16(&r);
	const char *name = (const char *)wire_bytes(&r, name_len);
	struct field_item item;

	if (p->c->now.agreed || !name || memchr(alpn, '\0', alpn_len) || memchr(name, '\0', name_len))
		return CSSL_E_RANGE; /* it comes twice, is cut off, or has a NUL in a name */
	int result = agreed_create(&p->c->home->blocks, name, name_len, alpn, alpn_len, &p->c->now.agreed);
	while (result == 0 && (result = field_next(&r, &item)) == 0)
		result = field_store(p->c->now.agreed, agreed_rows, agreed_row_count, &item) == 0 ? 0 : CSSL_E_RANGE;
	return result < 0 ? result : 0;
}

static int unpack_preamble(struct parsed *p, const struct field_item *preamble)
{
	struct busy_part *a = p->c->busy;
	struct wire_reader r = wire_reader(preamble->value, preamble->len);
	struct field_item item;
	int result;

	if (a->preamble) /* twice */
		return CSSL_E_RANGE;
	a->preamble = calloc(1, sizeof *a->preamble);
	if (!a->preamble)
		return CSSL_E_NO_MEMORY;
	while ((result = field_next(&r, &item)) == 0)
		if (field_store(a->preamble, preamble_rows, preamble_row_count, &item) != 0)
			return CSSL_E_RANGE;
	return result < 0 ? result : 0;
}

static int unpack_kept(struct parsed *p, const struct field_item *item)
{
	struct wire_reader r = wire_reader(item->value, item->len);

	p->kept_consumed = wire_u32(&r);
	p->kept_sent = wire_u32(&r);
	p->kept_len = wire_left(&r);
	p->kept = wire_bytes(&r, p->kept_len);
	return p->kept ? 0 : CSSL_E_TRUNCATED;
}

static int unpack_item(struct parsed *p, const struct field_item *item)
{
	switch (item->tag) {
	case TAG_LISTENER: return unpack_listener(p, item);
	case TAG_CURRENT: return unpack_place(p, item, &p->c->now.current);
	case TAG_FROZEN: return unpack_place(p, item, &p->c->busy->frozen);
	case TAG_UNIQUE_ID: return unpack_unique_id(p, item);
	case TAG_COPY:
	case TAG_COPY_PENDING: return unpack_copy(p, item);
	case TAG_DOWNLOAD: return note_set(&p->c->busy->note, &p->c->home->blocks, item->value, item->len);
	case TAG_AGREED: return unpack_agreed(p, item);
	case TAG_PREAMBLE: return unpack_preamble(p, item);
	case TAG_KEPT: return unpack_kept(p, item);
	case TAG_INPUT:
	case TAG_OUTPUT: return stream_fields_take(&p->left, (struct stream_tags){ TAG_INPUT, TAG_OUTPUT }, item);
	default: return CSSL_E_VERSION; /* a part that is not understood may be one that the connection needs */
	}
}

static int unpack_parse(struct parsed *p, const uint8_t *in, size_t len)
{
	struct wire_reader r = wire_reader(in, len);
	struct field_item item;
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		result = field_store(p->c, connection_rows, connection_row_count, &item);
		if (result == FIELD_OTHER)
			result = field_store(p->c->busy, busy_rows, busy_row_count, &item);
		if (result == FIELD_OTHER)
			result = unpack_item(p, &item);
		if (result < 0)
			return result;
	}
	if (mutant("record-not-handed-over"))
		p->c->now.position.write_sequence--;
	return result < 0 ? result : 0;
}

static int unpack_agents(const struct parsed *p)
{
	struct connection *c = p->c;
	int16_t *agents[] = { &c->now.handshake_agent, &c->now.owner, &c->now.affinity_agent, &c->now.handshaking_at,
		&c->now.move_target };
	int r = 0, targeted = c->now.move_target != NO_AGENT;

	for (size_t i = 0; r == 0 && i < sizeof agents / sizeof agents[0]; i++)
		r = unpack_agent(p, agents[i]);
	/* if the target no longer exists, the owner gets it back when it has frozen it */
	if (r == 0 && targeted && c->now.move_target == NO_AGENT && c->now.current.link)
		c->now.move_target = (int16_t)link_agent(c->now.current.link);
	return r;
}

static bool unpack_has_a_place(const struct connection *c)
{
	return connection_is_in(c, IN(HANDSHAKING) | IN(OWNED) | IN(MOVING) | IN(ADOPTING) | IN(FINISHING));
}

static bool unpack_address_is_whole(const struct client_address *a)
{
	return a->len == 0 || a->len == 4 || a->len == 16;
}

/* A connection in clear has a place while its agent can be reached, and never an epoch. */
static bool unpack_is_consistent(const struct connection *c)
{
	if (c->now.state == CONNECTION_CLOSING)
		return false;
	if (connection_speaks_clear(c))
		return c->busy->preamble && (c->now.current.link || c->now.state == CONNECTION_PREAMBLE);
	return unpack_has_a_place(c) == (c->now.current.link != NULL) && !(unpack_has_a_place(c) && c->now.epoch == 0);
}

static int unpack_check(const struct parsed *p)
{
	const struct connection *c = p->c;

	if (!c->front || !unpack_is_consistent(c))
		return CSSL_E_MISMATCH;
	if (p->left.output_len > c->now.queued || c->now.account.frames_told > c->now.account.frames ||
		!unpack_address_is_whole(&c->endpoints.client) || !unpack_address_is_whole(&c->endpoints.server))
		return CSSL_E_RANGE;
	if ((c->now.state == CONNECTION_ADOPTING || c->now.state == CONNECTION_RESTING) && !c->now.copies.current)
		return CSSL_E_MISMATCH; /* without a copy no agent can adopt it */
	return 0;
}

static int unpack_restore_kept(struct parsed *p)
{
	struct connection *c = p->c;
	struct kept *k = &c->busy->kept;

	k->unit = connection_is_in_clear(c) ? KEPT_BYTES : KEPT_RECORDS;
	return kept_restore(k, &c->home->blocks, p->kept, p->kept_len, p->kept_consumed, p->kept_sent);
}

/* The steps that may fail. */
static int unpack_apply(struct parsed *p, int fd)
{
	struct connection *c = p->c;
	struct tcp_counts counts;
	int r = unpack_restore_kept(p);

	if (r == 0 && connection_shakes_hands(c)) {
		c->busy->place.holder = c;
		r = handshake_limit_bring(
			c->home->handshakes, &c->busy->place, &c->endpoints.client, c->now.accepted_ms);
	}
	if (r == 0)
		r = connection_preamble_count(c);
	if (r == 0 && c->now.source == SOURCE_COUNTED)
		r = admission_bring_source(c->home->shared->admission, &c->endpoints.client);
	if (r < 0) {
		close(fd);
		return r;
	}
	if (c->now.current.link)
		c->now.account.stream = connection_stream_name(c);
	/* What the kernel has: after a death the next process compares it with the kernel's own counts. */
	c->slot.bytes_written = c->now.queued - p->left.output_len;
	c->slot.bytes_read = tcp_counts_get(fd, &counts) == 0 ? counts.read - p->left.input_len : SLOT_BYTES_UNKNOWN;
	connection_owe_queued(c);
	r = stream_open_fd_with(&c->busy->client, c->home->worker, &connection_client_ops, fd, &p->left);
	if (r < 0 && c->now.source == SOURCE_COUNTED)
		admission_leave_source(c->home->shared->admission, &c->endpoints.client);
	return r;
}

static void unpack_count(struct connection *c)
{
	const int affinity = c->now.affinity_agent, handshake = c->now.handshaking_at;

	admission_bring(c->home->shared->admission);
	connection_join(c);
	connection_count_state(c, c->now.state, 1);
	counter_add(&c->home->counters.client_queued_bytes, c->now.queued - c->slot.bytes_written);
	connection_weigh(c);
	c->now.affinity_agent = c->now.handshaking_at = NO_AGENT;
	connection_assign(c, affinity, handshake);
}

int connection_unpack(
	struct connection_home *home, const struct handover_map *map, int fd, const uint8_t *in, size_t len)
{
	struct parsed p = { .c = connection_create(home, NULL), .map = map };

	int r = p.c ? unpack_parse(&p, in, len) : CSSL_E_NO_MEMORY;
	if (r == 0)
		r = unpack_agents(&p);
	if (r == 0)
		r = unpack_check(&p);
	if (r == 0)
		r = unpack_apply(&p, fd);
	else
		close(fd);
	if (r == 0) {
		unpack_count(p.c);
		return 0;
	}
	if (p.c) {
		connection_forget_state(p.c);
		connection_discard(p.c);
	}
	return r;
}

/* The client cannot have heard the answer to STARTTLS that is not written yet. So what it has sent was injected. */
static bool unpack_hello_is_injected(const struct connection *c)
{
	return c->now.state == CONNECTION_HELLO && c->busy->preamble && c->now.queued != c->slot.bytes_written &&
	       stream_has_unread(&c->busy->client);
}

void connection_go_on(struct connection *c)
{
	connection_arm_deadline(c);
	connection_shut_if_due(c);
	if (unpack_hello_is_injected(c)) {
		connection_clear_reset_injected(c);
		return;
	}
	connection_begin_reading(c);
	if (!connection_speaks_clear(c))
		connection_resume_reading(c); /* the process before did not read while its client had to wait */
	if (c->now.state == CONNECTION_LINGERING) {
		connection_linger(c);
		return;
	}
	if (c->now.state == CONNECTION_RESTING) {
		connection_may_compact(c);
		if (connection_needs_owner(c))
			connection_wake_in_turn(c);
	}
	connection_send_records(c);
	connection_acknowledge(c, ACCEPTED_IF_DRAINED);
	connection_save(c);
}
