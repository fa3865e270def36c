/* connection_flow.c: an owner's records in both directions (connection_ends.c has the ends). Client records are
 * opened in place and given to the backend. The backend's bytes are sealed straight into the carrier's output. Each
 * direction stops when the other side has no room, and goes on in connection_pump().
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/fault.h"
#include "net/log_pace.h"
#include "net/mutant.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

/* --- to the client --- */

uint64_t connection_credit(const struct connection *c)
{
	uint64_t on_the_way = c->sent - c->drained, window = c->home->window_len;

	if (c->carrier->pace == CARRIER_PAUSED && !mutant("parked-owner-seals"))
		return 0;
	return on_the_way < window ? window - on_the_way : 0;
}

static void send_records(struct connection *c, size_t len, unsigned records, uint8_t flags)
{
	c->carrier->ops->send(c->carrier, len, flags);
	c->sent += len;
	c->server_records += records;
}

/* Sends one small record: an alert or a KeyUpdate. */
static int send_small(struct connection *c, const uint8_t *record, ptrdiff_t len, uint8_t flags)
{
	if (len < 0)
		return (int)len;
	uint8_t *room = c->carrier->ops->reserve(c->carrier, (size_t)len);
	if (!room)
		return CSSL_E_NO_MEMORY;
	memcpy(room, record, (size_t)len);
	send_records(c, (size_t)len, 1, flags);
	return 0;
}

int connection_send_alert(struct connection *c, enum tls_alert_level level, enum tls_alert description)
{
	uint8_t record[LIVE_SMALL_RECORD_MAX];
	bool is_last = level == TLS_ALERT_FATAL || description == TLS_ALERT_CLOSE_NOTIFY;

	return send_small(
		c, record, live_seal_alert(c->live, level, description, record), is_last ? FRAME_LAST_RECORD : 0);
}

/* Our own KeyUpdate: the copy of the new keys goes first, and nothing is sealed after it before the commit (law 6). */
static int send_key_update(struct connection *c)
{
	uint8_t record[LIVE_SMALL_RECORD_MAX];
	int r = mutant("copy-not-renewed") ? 0 : connection_send_copy(c, LIVE_AFTER_KEY_UPDATE);

	if (r < 0)
		return r;
	r = send_small(c, record, live_seal_key_update(c->live, record), FRAME_LAST_OF_WRITE_GENERATION);
	count(COUNT_KEY_UPDATES_SENT);
	if (r == 0 && !carrier_moves(c->carrier))
		live_committed(c->live, live_position(c->live).write_generation); /* no other agent could own it */
	return r;
}

void connection_say_due(struct connection *c)
{
	int r = 0;

	switch (live_due(c->live)) {
	case LIVE_NOTHING_DUE:
	case LIVE_WAITS_FOR_COMMIT: break;
	case LIVE_WARNING_DUE: r = connection_send_alert(c, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION); break;
	case LIVE_KEY_UPDATE_DUE:
		/* a client that sends requests and never reads has to wait, as for data */
		if (connection_credit(c) > 0 && fault_at("keyupdate.due", NULL, NULL) != FAULT_FAIL)
			r = send_key_update(c);
		break;
	case LIVE_LIMIT_REACHED:
		if (c->state == CONNECTION_ENDING)
			return;
		connection_finish(c, connection_cuts_nothing(c) ? LAST_FAREWELL : LAST_INTERNAL_ERROR, END_KEY_LIMIT);
		return;
	}
	if (r < 0)
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
}

/* The parts of a full record. */
struct full_record {
	size_t fragment, overhead; /* the most plaintext, and all other bytes */
};

/* The credit that comes back in halves of a window is always enough for one. */
static struct full_record full_record_of(const struct connection *c)
{
	const size_t max = live_fragment_max(c->live), overhead = live_overhead(c->live);
	const size_t half = c->home->window_len / 2 - overhead;

	return (struct full_record){ .fragment = max < half ? max : half, .overhead = overhead };
}

size_t connection_fragment_max(const struct connection *c)
{
	return full_record_of(c).fragment;
}

static size_t records_len(const struct full_record *full, size_t len)
{
	return len + (len + full->fragment - 1) / full->fragment * full->overhead;
}

/* How many of @len bytes fit: their records take at most @room bytes. All of them, or as many full records as there
 * is room for. A short record in the middle of an answer would cost every hop up to the client as much as a full
 * one. */
static size_t sealable(const struct full_record *full, size_t len, uint64_t room)
{
	if (records_len(full, len) <= room)
		return len;
	return (size_t)(room / (full->fragment + full->overhead)) * full->fragment;
}

size_t connection_seal(struct connection *c, const uint8_t *data, size_t len)
{
	const struct full_record full = full_record_of(c);
	uint64_t room = connection_credit(c);
	size_t most = sealable(&full, len, room < FRAME_PAYLOAD_MAX ? room : FRAME_PAYLOAD_MAX);
	size_t used = 0, out = 0;
	unsigned records = 0;

	if (most == 0)
		return 0;
	connection_leave_note(c, data, len, most);
	connection_report(c); /* before the frame begins */
	uint8_t *frame = c->carrier->ops->reserve(c->carrier, records_len(&full, most));
	if (!frame) {
		connection_end(c, END_INTERNAL, CARRIER_ABORT);
		return 0;
	}
	while (used < most) {
		size_t n = most - used < full.fragment ? most - used : full.fragment;
		ptrdiff_t sealed = live_seal(c->live, data + used, n, frame + out);
		if (sealed < 0)
			break;
		used += n;
		out += (size_t)sealed;
		records++;
	}
	if (records == 0)
		return 0;
	enum service_piece piece = service_from_backend(&c->service, data, used);
	count_by(COUNT_RECORDS_SEALED, records);
	fault_at("answer.sealed", NULL, NULL);
	count_by(COUNT_BYTES_TO_CLIENT, used);
	uint8_t flags = piece == SERVICE_RESPONSE ? FRAME_RESPONSE_BYTES : 0;
	if (flags)
		c->delivered = DELIVERED_SOME;
	connection_drop_asked(c);
	if (connection_at_checkpoint(c)) {
		flags |= FRAME_CHECKPOINT;
		connection_reach_checkpoint(c);
	}
	send_records(c, out, records, flags);
	return used;
}

static size_t seal_from_backend(struct connection *c, const uint8_t *data, size_t len)
{
	size_t used = 0;

	while (used < len && connection_serves(c)) {
		connection_say_due(c);
		if (!connection_serves(c) || live_due(c->live) != LIVE_NOTHING_DUE)
			break;
		const size_t held = service_hold(&c->service, data + used, len - used);
		used += held;
		const size_t said = connection_say_words(c);
		if (!connection_serves(c))
			break;
		size_t n = connection_seal(c, data + used, service_until_words(&c->service, data + used, len - used));
		if (n == 0 && held == 0 && said == 0) /* the client has no room; else the next bytes may be held, too */
			break;
		used += n;
		enum service_parting parting = service_parting(&c->service);
		if (parting != SERVICE_STAYS && connection_serves(c))
			connection_part(c, parting);
	}
	connection_say_words(c);
	return used;
}

/* --- backend --- */

/* How much of an answer the client has room for. */
static size_t answer_room(const struct connection *c)
{
	const struct full_record full = full_record_of(c);

	return sealable(&full, BACKEND_READ_MAX, connection_credit(c));
}

static void read_backend(struct connection *c, size_t room)
{
	if (room)
		backend_read_on(c->backend, room);
	else
		backend_read_pause(c->backend);
}

/* Give the client [data + used, data + len). Returns the bytes used. */
static size_t pass_on(struct connection *c, uint8_t *data, size_t used, size_t len)
{
	if (connection_serves(c))
		used += seal_from_backend(c, data + used, len - used);
	if (c->state == CONNECTION_ENDED)
		return len;
	if (used == len && c->state == CONNECTION_OWNER && c->from_client == HALF_OPEN)
		connection_reuse_backend(c);
	if (c->backend)
		read_backend(c, used == len ? answer_room(c) : 0);
	connection_finish_if_over(c);
	connection_hand_off_if_settled(c);
	return used;
}

void connection_pass_answer(struct connection *c, struct connection_event *e)
{
	if (service_stands_between(&c->service)) {
		e->bytes.used = connection_hear_backend(c, e->bytes.data, e->bytes.len);
	} else if (service_said_last(&c->service)) {
		connection_backend_said_last(c, STREAM_RESET);
		e->bytes.used = e->bytes.len;
	} else {
		e->bytes.used = pass_on(c, e->bytes.data, 0, e->bytes.len);
	}
}

void connection_pass_rest(struct connection *c, struct connection_event *e)
{
	e->bytes.used = connection_take_rest(c, e->bytes.data, e->bytes.len);
	if (c->state != CONNECTION_RECOVERING) /* while recovering, the unused bytes are a part of a head */
		e->bytes.used = pass_on(c, e->bytes.data, e->bytes.used, e->bytes.len);
}

void connection_hold_answer(struct connection *c, struct connection_event *e)
{
	backend_read_pause(c->backend);
}

void connection_count_written(struct connection *c, struct connection_event *e)
{
	if (!service_stands_between(&c->service))
		c->written += e->written;
}

void connection_backend_took(struct connection *c, struct connection_event *e)
{
	if (service_stands_between(&c->service))
		connection_step_between(c);
	else
		c->written += e->written;
	if (!connection_serves(c))
		return;
	connection_reach_marks(c);
	connection_finish_if_over(c);
	connection_hand_off_if_settled(c);
	connection_open_waiting(c);
}

/* --- from the client --- */

/* Gives the backend what the service lets pass, and the client what the service says to it. Returns the bytes that
 * were taken: fewer if the conversation settles; or negative. */
static ptrdiff_t pass_to_backend(struct connection *c, const uint8_t *data, size_t len)
{
	const enum service_until until = c->state == CONNECTION_SETTLING ? SERVICE_TO_END : SERVICE_ALL;
	int settles = 0, r = 0;
	size_t used = 0;

	while (used < len && !settles) {
		struct service_outgoing to;
		const uint8_t *from = data + used;
		const size_t n = service_pass(&c->service, until, from, len - used, &to);
		used += n;
		settles = n == to.len && to.words_len == 0; /* the rest belongs to the next request */
		enum service_parting parting = service_parting(&c->service);
		if (parting != SERVICE_STAYS) {
			connection_part(c, parting);
			return (ptrdiff_t)len;
		}
		if (service_is_stranded(&c->service))
			continue;
		if (to.len)
			r = connection_write_to_backend(c, from, to.len);
		if (r == 0 && to.words_len)
			r = connection_write_to_backend(c, to.words, to.words_len);
		if (r < 0)
			return r;
		connection_say_words(c);
		if (!connection_serves(c))
			return (ptrdiff_t)len;
	}
	return (ptrdiff_t)used;
}

ptrdiff_t connection_give_to_backend(struct connection *c, const uint8_t *data, size_t len)
{
	size_t skip = c->skip < len ? c->skip : len, fresh = len - skip;

	c->skip -= (uint32_t)skip;
	data += skip;
	if (fresh == 0)
		return (ptrdiff_t)len;
	if (c->state == CONNECTION_RECOVERING) {
		int r = connection_hear(c, data, fresh);
		return r < 0 ? r : (ptrdiff_t)len;
	}
	if (service_stands_between(&c->service))
		return connection_give_to_service(c, data, fresh) < 0 ? CSSL_E_SYSTEM : (ptrdiff_t)len;
	if (service_takes_no_more(&c->service))
		return (ptrdiff_t)len;
	ptrdiff_t r = pass_to_backend(c, data, fresh);
	fault_at("request.given", NULL, NULL);
	return r < 0 ? r : (ptrdiff_t)skip + r;
}

static void take_data(struct connection *c, const struct live_record *r, size_t record_len)
{
	ptrdiff_t taken = r->len ? connection_give_to_backend(c, r->data, r->len) : 0;

	if (taken < 0)
		connection_backend_unreachable(c);
	else if ((size_t)taken < r->len)
		connection_hold(c, r, (size_t)taken, record_len);
}

/* Open one whole record in place. */
static void open_record(struct connection *c, const struct tls_record *record)
{
	const size_t len = tls_record_len(record);
	struct live_record r;

	if (live_open(c->live, record, worker_now_ms(c->home->worker), &r) < 0) {
		connection_violated(c, live_alert_owed(c->live), live_end_reason(c->live));
		return;
	}
	c->client_records++;
	c->record_bytes += len;
	count(COUNT_RECORDS_OPENED);
	switch (r.content) {
	case LIVE_DATA: take_data(c, &r, len); return;
	case LIVE_KEY_UPDATED:
		count(COUNT_KEY_UPDATES_RECEIVED);
		connection_judge_pace(c);
		fault_at("keyupdate.received", NULL, NULL);
		if (connection_send_copy(c, LIVE_NOW) < 0)
			connection_end(c, END_INTERNAL, CARRIER_ABORT);
		else if (c->state != CONNECTION_RECOVERING) /* the backend has none of what was heard there */
			connection_mark(c);                 /* between two requests a successor may begin again here */
		return;
	case LIVE_CLOSE_NOTIFY: connection_close_towards_backend(c); return;
	case LIVE_ALERT:
		log_paced(LOG_INFO, &c->id, "alert received", "alert=%d", r.alert);
		connection_end(c, live_end_reason(c->live), CARRIER_ORDERLY);
		return;
	case LIVE_IGNORED: return;
	}
}

/* A connection that has ended has no carrier any more. */
static bool takes_more(const struct connection *c)
{
	if (c->state == CONNECTION_RECOVERING)
		return c->carrier->pace != CARRIER_PAUSED && connection_hears(c);
	return (c->state == CONNECTION_OWNER ||
		       (c->state == CONNECTION_SETTLING && service_is_being_asked(&c->service))) &&
	       c->carrier->pace != CARRIER_PAUSED && c->to_backend - c->written < c->home->window_len &&
	       c->client_pace == CLIENT_GOES_ON && !connection_replies_wait(c);
}

/* Some records were opened, and no more can be opened now. */
static void opened(struct connection *c)
{
	if (!connection_serves(c))
		return;
	connection_mark(c);
	connection_tell_pace(c);
	connection_watch_head(c);
	if (!connection_serves(c))
		return;
	connection_say_due(c);
	connection_say_words(c);
}

void connection_open_input(struct connection *c)
{
	uint32_t used = 0, count = 0;

	for (; used < c->input_len && takes_more(c); count++) {
		struct tls_record record;
		used = connection_input_record(c, used, &record);
		open_record(c, &record);
	}
	if (count)
		opened(c);
	if (c->state == CONNECTION_ENDED)
		return;
	connection_input_used(c, used, count);
	if (c->state == CONNECTION_RECOVERING)
		connection_heard(c);
	else
		connection_take_tail(c);
}

void connection_open_waiting(struct connection *c)
{
	if (c->input_len && connection_serves(c))
		connection_open_input(c);
}

static void keep_from(struct connection *c, const struct connection_event *e, size_t used)
{
	if (connection_input_keep(c, e->records.first + used, e->records.count - used) < 0)
		connection_end(c, END_LINK_VIOLATION, CARRIER_ABORT);
}

void connection_keep_records(struct connection *c, struct connection_event *e)
{
	keep_from(c, e, 0);
}

/* Opens records while there is room for their plaintext. */
void connection_open_records(struct connection *c, struct connection_event *e)
{
	size_t used = 0;

	for (; c->input_len == 0 && used < e->records.count && takes_more(c); used++)
		open_record(c, &e->records.first[used]);
	if (used)
		opened(c);
	const enum connection_state now = (enum connection_state)c->state;
	if (used < e->records.count && connection_cell(EVENT_RECORDS, now)->verdict != EVENT_IGNORED)
		keep_from(c, e, used);
	connection_hand_off_if_settled(c); /* the client may have answered a PING of the agent */
}

void connection_hear_records(struct connection *c, struct connection_event *e)
{
	keep_from(c, e, 0);
	if (c->state != CONNECTION_ENDED)
		connection_open_input(c);
}

/* --- what the carrier tells --- */

void connection_start_owning(struct connection *c)
{
	c->owner_since_ms = (uint32_t)worker_now_ms(c->home->worker);
	connection_judge_pace(c);
	if (connection_own_between(c) < 0) {
		connection_finish(c, LAST_INTERNAL_ERROR, END_INTERNAL);
		return;
	}
	if (service_traits_now(&c->service)->first == SERVICE_BACKEND_FIRST && connection_ensure_backend(c) < 0) {
		connection_backend_unreachable(c);
		return;
	}
	connection_pump(c);
	if (connection_serves(c))
		connection_tell_pace(c);
}

void connection_pump(struct connection *c)
{
	if (!connection_serves(c))
		return;
	connection_say_due(c);
	if (connection_serves(c) && service_stands_between(&c->service))
		connection_step_between(c);
	if (connection_serves(c) && c->from_backend == HALF_CLOSING)
		connection_close_towards_client(c);
	connection_open_waiting(c);
	connection_take_tail(c);
	connection_say_words(c);
	if (connection_serves(c) && service_stands_between(&c->service))
		connection_read_between(c);
	else if (connection_serves(c) && c->backend && live_due(c->live) == LIVE_NOTHING_DUE)
		read_backend(c, answer_room(c));
	connection_watch_head(c);
	if (c->client_pace == CLIENT_WAITS) /* it may come from a state in which the deadline had another purpose */
		connection_arm(c);
	connection_hand_off_if_settled(c);
}

/* Peers hear of the newest keys that often at most; a client may ask for a KeyUpdate every second. */
#define KEYS_TOLD_EVERY_MS 10000u

/* No peer may use keys that are older than these. Those that could not be told yet are told with a later ACCEPTED. */
static void tell_keys(struct connection *c)
{
	const uint32_t now_ms = (uint32_t)worker_now_ms(c->home->worker);
	const struct seen_mark at = connection_sealed_mark(c);

	if (c->keys_told != KEYS_TOLD_NEVER && now_ms - c->keys_told_ms < KEYS_TOLD_EVERY_MS) {
		c->keys_told = KEYS_UNTOLD;
		cluster_note(c->home->cluster, &c->id, &at);
		return;
	}
	c->keys_told = KEYS_TOLD;
	c->keys_told_ms = now_ms;
	cluster_tell_adopted(
		c->home->cluster, c->home->worker, &c->id, &at, live_position(c->live).read_generation, SEEN_NO_DOUBT);
}

/* From the commit on RAgent knows of the new keys, and no owner may use older ones. */
static void commit_keys(struct connection *c, uint32_t write_generation)
{
	live_committed(c->live, write_generation);
	if (live_due(c->live) != LIVE_WAITS_FOR_COMMIT && carrier_moves(c->carrier) && !mutant("commit-untold"))
		tell_keys(c);
}

bool connection_may_have_drained(const struct connection *c, uint64_t bytes)
{
	/* these two do not look at it, and have no counts */
	if (c->state == CONNECTION_ADOPTING || c->state == CONNECTION_ENDED)
		return true;
	return bytes >= c->drained && bytes <= c->sent;
}

void connection_count_accepted(struct connection *c, struct connection_event *e)
{
	c->drained = e->accepted->drained;
	if (c->live && live_due(c->live) == LIVE_WAITS_FOR_COMMIT)
		commit_keys(c, e->accepted->write_generation);
	else if (c->live)
		live_committed(c->live, e->accepted->write_generation);
	if (c->live && c->keys_told == KEYS_UNTOLD)
		tell_keys(c);
}

void connection_go_on_serving(struct connection *c, struct connection_event *e)
{
	connection_count_accepted(c, e);
	connection_pump(c);
}

void connection_go_on_ending(struct connection *c, struct connection_event *e)
{
	connection_count_accepted(c, e);
	connection_say_last_words(c);
}
