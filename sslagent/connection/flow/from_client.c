/* from_client.c: the client's records: they are opened in place, and their plaintext goes to the backend while that has
 * room. And the ends that the client makes: close_notify, a bare FIN, a breach of the record layer, a request's head
 * that takes too long. The bytes that the client sent before its end go to the backend first.
 */
#include "sslagent/connection/flow/from_client.h"

#include "net/points/fault.h"
#include "net/report/log_pace.h"
#include "sslagent/connection/flow/between.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/words.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

/* --- its ends --- */

/* RFC 8446 6.1 allows to go on sending. RFC 5246 7.2.1 wants pending writes dropped, but many clients of TLS 1.2
 * close after their request and wait for its answer. So their answer is finished first, too. */
static void from_client_close(struct connection *c)
{
	c->from_client = HALF_CLOSED;
	if (service_stands_between(&c->service))
		between_step(c);
	else if (c->head && !conversation_is_blank(c) && conversation_ensure(c) < 0)
		words_backend_unreachable(c);
	else if (c->backend)
		backend_shutdown(c->backend);
	words_finish_if_over(c);
}

static void from_client_violated(struct connection *c, enum tls_alert alert, enum end_reason reason)
{
	count(COUNT_RECORD_VIOLATIONS);
	log_paced(LOG_INFO, &c->id, "record violation", "alert=%d reason=%s", (int)alert, end_reason_text(reason));
	/* if the alert may not be sealed (our KeyUpdate is not committed yet), a reset is enough */
	bool said = connection_send_alert(c, TLS_ALERT_FATAL, alert) == 0;
	connection_end(c, reason, said ? CARRIER_ORDERLY : CARRIER_ABORT);
}

/* A bare FIN. After close_notify it means nothing new: the client may still read. Half a request must not pass for a
 * complete one (law 9), nor half an answer (law 8). */
static void from_client_went(struct connection *c)
{
	if (c->from_client == HALF_CLOSED)
		return;
	if (conversation_cuts_nothing(c))
		connection_end(c, END_DONE, CARRIER_ORDERLY);
	else
		words_finish(c, LAST_INTERNAL_ERROR, END_CLIENT_CLOSED);
}

void from_client_take_tail(struct connection *c, struct connection_event *e)
{
	enum tail tail = (enum tail)c->tail;

	if (!connection_serves(c) || c->input.len || connection_holds(c) || tail == TAIL_NONE)
		return;
	c->tail = TAIL_NONE;
	if (tail == TAIL_FIN)
		from_client_went(c);
	else
		from_client_violated(c,
			c->bad.length > TLS12_CIPHERTEXT_MAX ? TLS_ALERT_RECORD_OVERFLOW : TLS_ALERT_UNEXPECTED_MESSAGE,
			END_RECORD_VIOLATION);
}

/* --- the time limit of a head --- */

/* It is too long, or RAgent cannot say its records again, because they came before a KeyUpdate. */
static bool head_has_to_go_on(const struct connection *c)
{
	const struct consumed_mark *from = &c->consumed.reached, *to = &c->consumed.newest;

	return c->state == CONNECTION_OWNER && c->head &&
	       (to->record_bytes - from->record_bytes >= HEAD_KEPT_MAX ||
		       to->position.read_generation != from->position.read_generation);
}

void from_client_watch_head(struct connection *c)
{
	uint32_t limit_ms = c->home->conf->limits.request_head_timeout_ms;

	if (head_has_to_go_on(c) && conversation_ensure(c) < 0) {
		words_backend_unreachable(c);
		return;
	}
	uint32_t number = limit_ms && connection_serves(c) ? service_head_under_way(&c->service) : 0;

	if (number == 0 && c->head_until_ms == 0)
		return;
	if (number == 0)
		c->head_until_ms = 0;
	else if (c->head_until_ms == 0 || number != c->head_number)
		c->head_until_ms = worker_now_ms(c->home->worker) + limit_ms;
	c->head_number = number;
	consumed_arm(c);
}

/* While earlier answers are running, the client rightly waits for them: its request gets its full time again. */
static void from_client_head_is_late(struct connection *c)
{
	c->head_until_ms = 0;
	if (!connection_serves(c) || service_head_under_way(&c->service) == 0)
		return;
	if (service_outstanding(&c->service) > 1) {
		from_client_watch_head(c);
		return;
	}
	count(COUNT_REQUEST_HEADS_LATE);
	log_paced(LOG_INFO, &c->id, "request head late", "limit_ms=%u", c->home->conf->limits.request_head_timeout_ms);
	words_finish(c, LAST_HEAD_LATE, END_IDLE_TIMEOUT);
}

/* --- opening --- */

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
			words_part(c, parting);
			return (ptrdiff_t)len;
		}
		if (service_is_stranded(&c->service))
			continue;
		if (to.len)
			r = conversation_write(c, from, to.len);
		if (r == 0 && to.words_len)
			r = conversation_write(c, to.words, to.words_len);
		if (r < 0)
			return r;
		words_say(c);
		if (!connection_serves(c))
			return (ptrdiff_t)len;
	}
	return (ptrdiff_t)used;
}

static ptrdiff_t from_client_give(struct connection *c, const uint8_t *data, size_t len)
{
	size_t skip = c->skip < len ? c->skip : len, fresh = len - skip;

	c->skip -= (uint32_t)skip;
	data += skip;
	if (fresh == 0)
		return (ptrdiff_t)len;
	if (c->state == CONNECTION_RECOVERING) {
		int r = c->interlude->ops->hear(c, data, fresh);
		return r < 0 ? r : (ptrdiff_t)len;
	}
	if (service_stands_between(&c->service)) {
		between_give(c, data, fresh);
		return (ptrdiff_t)len;
	}
	if (service_takes_no_more(&c->service))
		return (ptrdiff_t)len;
	ptrdiff_t r = pass_to_backend(c, data, fresh);
	fault_at("request.given", NULL, NULL);
	return r < 0 ? r : (ptrdiff_t)skip + r;
}

/* The rest of the record waits for the next owner. */
static void from_client_hold(struct connection *c, const struct live_record *r, size_t taken, size_t record_len)
{
	if (kept_bytes_add(&c->interlude->kept, r->data + taken, r->len - taken) < 0) {
		words_finish(c, LAST_INTERNAL_ERROR, END_INTERNAL);
		return;
	}
	c->interlude->record_len = record_len;
	c->client_records--;
	c->record_bytes -= record_len;
	c->skip = (uint32_t)taken;
}

void from_client_give_held(struct connection *c, const struct interlude *i)
{
	if (!i->kept)
		return;
	c->client_records++;
	c->record_bytes += i->record_len;
	c->skip = 0;
	if (from_client_give(c, i->kept->bytes, i->kept->len) < 0)
		words_backend_unreachable(c);
}

static void from_client_take_data(struct connection *c, const struct live_record *r, size_t record_len)
{
	ptrdiff_t taken = r->len ? from_client_give(c, r->data, r->len) : 0;

	if (taken < 0)
		words_backend_unreachable(c);
	else if ((size_t)taken < r->len)
		from_client_hold(c, r, (size_t)taken, record_len);
}

/* Open one whole record in place. */
static void open_record(struct connection *c, const struct tls_record *record)
{
	const size_t len = tls_record_len(record);
	struct live_record r;

	if (live_open(c->live, record, worker_now_ms(c->home->worker), &r) < 0) {
		from_client_violated(c, live_alert_owed(c->live), live_end_reason(c->live));
		return;
	}
	c->client_records++;
	c->record_bytes += len;
	count(COUNT_RECORDS_OPENED);
	switch (r.content) {
	case LIVE_DATA: from_client_take_data(c, &r, len); return;
	case LIVE_KEY_UPDATED:
		count(COUNT_KEY_UPDATES_RECEIVED);
		consumed_judge_pace(c);
		fault_at("keyupdate.received", NULL, NULL);
		if (succession_send_copy(c, LIVE_NOW) < 0)
			connection_end(c, END_INTERNAL, CARRIER_ABORT);
		else if (c->state != CONNECTION_RECOVERING) /* the backend has none of what was heard there */
			consumed_opened(c);                 /* between two requests a successor may begin again here */
		return;
	case LIVE_CLOSE_NOTIFY: from_client_close(c); return;
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
		return c->carrier->pace != CARRIER_PAUSED && c->interlude->ops->hears(c);
	return (c->state == CONNECTION_OWNER ||
		       (c->state == CONNECTION_SETTLING && service_is_being_asked(&c->service))) &&
	       c->carrier->pace != CARRIER_PAUSED && c->to_backend - c->written < c->home->window_len &&
	       c->consumed.pace == CLIENT_GOES_ON && !between_replies_wait(c);
}

/* Some records were opened, and no more can be opened now. */
static void from_client_opened(struct connection *c)
{
	if (!connection_serves(c))
		return;
	consumed_opened(c);
	consumed_tell_pace(c);
	from_client_watch_head(c);
	if (!connection_serves(c))
		return;
	words_say_due(c);
	words_say(c);
}

void from_client_open_input(struct connection *c)
{
	uint32_t used = 0, count = 0;

	for (; used < c->input.len && takes_more(c); count++) {
		struct tls_record record;
		used = unopened_record(&c->input, used, &record);
		open_record(c, &record);
	}
	if (count)
		from_client_opened(c);
	if (c->state == CONNECTION_ENDED)
		return;
	unopened_used(&c->input, used, count, c->carrier);
	if (c->state == CONNECTION_RECOVERING)
		connection_look(c);
	else
		from_client_take_tail(c, NULL);
}

void from_client_open_waiting(struct connection *c)
{
	if (c->input.len && connection_serves(c))
		from_client_open_input(c);
}

void from_client_keep(struct connection *c, struct connection_event *e)
{
	if (unopened_keep(&c->input, e->records.first, e->records.count, c->home->window_len + TLS_RECORD_MAX) < 0)
		connection_end(c, END_LINK_VIOLATION, CARRIER_ABORT);
}

/* Opens records while there is room for their plaintext. */
void from_client_open(struct connection *c, struct connection_event *e)
{
	const size_t all = e->records.count;

	for (; c->input.len == 0 && e->records.count && takes_more(c); e->records.count--)
		open_record(c, e->records.first++);
	if (e->records.count < all)
		from_client_opened(c);
	if (e->records.count && connection_serves(c))
		from_client_keep(c, e);
	connection_look(c); /* the client may have answered a PING of the agent */
}

/* --- the deadline --- */

/* If it is over; opens what waited. */
static void from_client_end_pace(struct connection *c)
{
	if (c->consumed.pace == CLIENT_GOES_ON || !connection_serves(c) || consumed_wait_ms(c) > 0)
		return;
	c->consumed.pace = CLIENT_GOES_ON;
	from_client_open_waiting(c);
	if (connection_serves(c))
		consumed_tell_pace(c);
}

void from_client_deadline(struct connection *c, struct connection_event *e)
{
	if (c->consumed.report != REPORT_NOTHING)
		consumed_report(c);
	else if (c->head_until_ms && c->head_until_ms <= worker_now_ms(c->home->worker))
		from_client_head_is_late(c);
	from_client_end_pace(c);
	consumed_arm(c);
}
