/* connection_input.c: what a client sent: its PROXY header, first records and later records, one handler for each
 * state, and records that are not whole.
 *
 * Client records go into the kept queue, and from there into the link's output (connection_client.c). Reading stops
 * when the queue has no room for one more record of maximal length, and goes on when the owner has consumed some. No
 * read brings more than has room there, so a part of a record is all that waits in the client's stream.
 */

#include "net/container_of.h"
#include "net/log.h"
#include "proto/error.h"
#include "ragent/connection/connection_internal.h"
#include "ragent/dispatch/dispatch.h"

static void is_heard(struct connection *c)
{
	c->now.active_ms = connection_now_ms(c);
	if (c->busy->pace == CLIENT_UNHEARD)
		c->busy->pace = CLIENT_GOES_ON;
}

static void client_violated(struct connection *c, const struct tls_record_header *bad)
{
	counter_add(&c->home->counters.client_violations, 1);
	log_event(LOG_DEBUG, &c->id, "record violation", "type=%02x version=%04x length=%u", bad->type, bad->version,
		bad->length);
	connection_void(c);
	c->busy->bad = *bad;
	c->now.tail = TAIL_VIOLATION;
}

/* While the client has received no record, the handshake can begin again with its first record. Later, the successor
 * of a lost owner asks again from the checkpoint on. All records, with @more bytes of them that just came, must fit
 * into a window, because an agent takes no more. */
static bool may_replay(const struct connection *c, size_t more)
{
	const struct position *p = &c->now.position;

	if (p->stage == POSITION_HANDSHAKE)
		return p->server_records == 0;
	return p->response != POSITION_AT_CHECKPOINT && position_replays_from(p, c->busy->kept.first_record) &&
	       kept_replay_len(&c->busy->kept) <= connection_limits(c)->replay_len &&
	       kept_replay_len(&c->busy->kept) + kept_len(&c->busy->kept) + more <= connection_window(c);
}

void connection_trim_replay(struct connection *c, size_t more)
{
	if (kept_replay_len(&c->busy->kept) > 0 && !may_replay(c, more))
		kept_forget_consumed(&c->busy->kept, &c->home->blocks);
}

/* Keep whole records while there is room. Returns the bytes used; all of them once the client's records are over. */
static size_t keep_records(struct connection *c, const uint8_t *data, size_t len)
{
	size_t used = 0;

	while (used < len && c->now.tail == TAIL_NONE) {
		struct tls_record_run run;
		struct tls_record_header bad;
		int r = tls_record_scan_run(data + used, len - used, connection_room(c), &run, &bad);
		connection_trim_replay(c, run.len);
		if (run.len && kept_append(&c->busy->kept, &c->home->blocks, data + used, run.len, run.records) < 0) {
			connection_end(c, END_INTERNAL, END_RESET);
			return len;
		}
		connection_count_records(c, RECORDS_OF_CLIENT, &run);
		c->now.client_bytes += run.len;
		used += run.len;
		if (r < 0)
			client_violated(c, &bad);
		else if (run.len == 0)
			return used;
	}
	return c->now.tail == TAIL_NONE ? used : len;
}

static size_t take_proxy(struct connection *c, uint8_t *data, size_t len)
{
	struct proxy_header h;
	size_t taken;
	int r = proxy_header_parse(data, len, &h, &taken);

	if (r == PROXY_INCOMPLETE)
		return 0;
	connection_touch(c);
	if (r == 0)
		r = connection_take_header(c, &h);
	if (r < 0) {
		counter_add(&c->home->counters.proxy_malformed, 1);
		connection_end(c, END_PROXY_HEADER_BAD, END_RESET);
		return len;
	}
	return taken;
}

static void header_is_over(struct connection *c)
{
	connection_work_on_bytes_begins(c);
	connection_fault_at(c, "records.came");
	connection_known(c);
}

static size_t take_records(struct connection *c, uint8_t *data, size_t len)
{
	size_t used = keep_records(c, data, len);

	if (c->now.state == CONNECTION_CLOSING)
		return len;
	connection_read_less(c, len - used);
	connection_send_records(c);
	return used;
}

/* A client that speaks another protocol is told so, if there are words for that. */
static void end_unless_tls(struct connection *c, enum first_bytes what)
{
	size_t len;

	if (connection_clear_goes_on(c, what))
		return;
	const void *answer = first_bytes_answer(what, &len);
	connection_end_saying(c, first_bytes_reason(what), answer, len);
}

static void end_for_handshakes(struct connection *c, counter *which)
{
	counter_add(which, 1);
	connection_end(c, END_LIMIT_HANDSHAKES, END_RESET);
}

static bool may_shake_hands(struct connection *c)
{
	struct connection_home *home = c->home;
	struct handshake_place *loser;

	c->busy->place.holder = c;
	if (handshake_limit_enter(
		    home->handshakes, &c->busy->place, &c->endpoints.client, connection_now_ms(c), &loser) < 0) {
		end_for_handshakes(c, &home->counters.handshakes_refused);
		return false;
	}
	if (loser)
		end_for_handshakes(loser->holder, &home->counters.handshakes_displaced);
	connection_home_look_for_storm(home);
	return true;
}

static bool is_over(const struct connection *c)
{
	return c->now.state == CONNECTION_LINGERING || c->now.state == CONNECTION_CLOSING;
}

static size_t take_hello(struct connection *c, uint8_t *data, size_t len)
{
	enum hello_offer kind;
	int r = hello_look(data, len, c->home->id_check_key, c->home->hello_scratch, &kind);

	if (r == HELLO_INCOMPLETE)
		return 0;
	if (r == CSSL_E_TOO_LONG) {
		counter_add(&c->home->counters.hellos_too_long, 1);
		connection_refuse(c, END_HANDSHAKE_FAILED, TLS_ALERT_ILLEGAL_PARAMETER);
		return len;
	}
	if (r < 0) {
		end_unless_tls(c, first_bytes_judge(data, len));
		return len;
	}
	c->now.hello = (uint8_t)kind;
	counter_add(&c->home->counters.hellos, 1);
	if (kind == HELLO_RESUMING)
		counter_add(&c->home->counters.hellos_resuming, 1);
	if (!may_shake_hands(c))
		return len;
	connection_send_open(c, NO_AGENT);
	return is_over(c) ? len : take_records(c, data, len);
}

/* Returns how many bytes it used; 0: it waits for more. What follows from the bytes, and is told to agents, is done
 * when they count as used. */
static size_t take_in_state(struct connection *c, uint8_t *data, size_t len)
{
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_PROXY: return take_proxy(c, data, len);
	case CONNECTION_HELLO: return take_hello(c, data, len);
	case CONNECTION_PREAMBLE:
	case CONNECTION_RELAYED: return connection_clear_take(c, data, len);
	case CONNECTION_REATTACHING:
		return connection_is_in_clear(c) ? connection_clear_take(c, data, len) : take_records(c, data, len);
	case CONNECTION_LINGERING: connection_discards(c, len); return len;
	case CONNECTION_CLOSING: return len;
	default: return take_records(c, data, len);
	}
}

static size_t take(struct connection *c, uint8_t *data, size_t len)
{
	const enum connection_state was = c->now.state;
	const size_t used = take_in_state(c, data, len);

	if (c->slot.bytes_read != SLOT_BYTES_UNKNOWN)
		c->slot.bytes_read += used;
	if (used && was == CONNECTION_OWNED)
		storm_sends(&c->home->storm, c->now.accepted_ms, connection_now_ms(c));
	if (used && was == CONNECTION_PROXY && c->now.state == was)
		header_is_over(c);
	/* if it has tried to find an owner, the next attempt has its deadline already */
	if (used && was == CONNECTION_RESTING && c->now.state == was && c->now.attempts == 0 &&
		connection_needs_owner(c))
		connection_wake(c);
	return used;
}

/* --- how many records --- */

void connection_count_records(struct connection *c, enum records_of whose, const struct tls_record_run *run)
{
	const bool of_client = whose == RECORDS_OF_CLIENT;
	struct ragent_counters *n = &c->home->counters;
	struct listener_counters *of_listener = connection_counts(c);
	/* the first of the types; the other ones follow */
	counter *by_type = of_client ? &n->client_change_cipher_spec : &n->server_change_cipher_spec;
	uint32_t *types = of_client ? c->now.client_types : c->now.server_types;

	for (unsigned i = 0; i < sizeof run->by_type / sizeof run->by_type[0]; i++) {
		if (run->by_type[i] == 0)
			continue;
		types[i] += run->by_type[i];
		counter_add(&by_type[i], run->by_type[i]);
	}
	counter_add(of_client ? &n->client_bytes : &n->server_bytes, run->len);
	counter_add(of_client ? &of_listener->client_bytes : &of_listener->server_bytes, run->len);
}

/* --- records that are not whole --- */

/* If reading is paused, the client is not at fault for the bytes that wait. They are read after the pause. */
static void note_partial(struct connection *c, size_t left, size_t used)
{
	if (c->now.reading == CLIENT_PAUSED || is_over(c))
		left = 0;
	if (left == 0 && !c->busy->partial.len)
		return;
	partials_note(&c->home->partials, &c->busy->partial, left, used ? PARTIAL_NEW_RECORD : PARTIAL_SAME_RECORD,
		connection_now_ms(c));
	if (c->home->partials.len > c->home->partials.budget)
		connection_end_partials(c->home);
}

void connection_forget_partial(struct connection *c)
{
	if (!c->busy)
		return;
	partials_note(&c->home->partials, &c->busy->partial, 0, PARTIAL_SAME_RECORD, 0);
}

void connection_end_partials(struct connection_home *home)
{
	struct partial *p;

	while ((p = partials_victim(&home->partials, worker_now_ms(home->worker))) != NULL) {
		struct busy_part *a = container_of(p, struct busy_part, partial);
		connection_end(a->connection, END_OVERLOADED, END_RESET);
	}
}

/* --- all of it --- */

size_t connection_client_said(struct connection *c, uint8_t *data, size_t len)
{
	struct connection_home *home = c->home;
	size_t used = 0, n;

	connection_fault_at(c, "records.read");
	connection_log_input(c, data, len);
	/* before the header of a balancer, the client is unknown */
	if (c->now.state != CONNECTION_PROXY)
		connection_work_on_bytes_begins(c);
	connection_fault_at(c, "records.came");
	is_heard(c);
	do {
		n = take(c, data + used, len - used);
		used += n;
	} while (n && used < len);
	connection_save_amid_input(c, data + used, len - used);
	note_partial(c, len - used, used);
	c->busy->unused = (uint32_t)(len - used);
	connection_weigh(c);
	connection_relieve(c->home);
	connection_work_ends(home);
	return used;
}
