/* connection_holding.c: the bytes that a worker keeps for its connections.
 *
 * Their budget: client records that wait, bytes that backends have not taken, and bytes that clients without RAgent
 * have not taken. Above it, the connection that keeps most is ended, with an alert if one may be sent. A connection
 * that keeps nothing is never ended for this.
 *
 * A request's head that is not complete (services that follow requests). A client that says its request byte by byte
 * would else keep a connection, and its backend's, for as long as it likes. So a head has a time limit. And a
 * conversation with a backend begins only when a head is complete: until then, its bytes are kept here. For the rest of
 * the connection they count as given to a backend that has not taken them.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/container_of.h"
#include "net/log_pace.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

static size_t weight(const struct connection *c)
{
	size_t len = c->input_cap;

	if (c->state == CONNECTION_FROZEN || c->state == CONNECTION_ENDED)
		return 0; /* it belongs to another connection, or to none */
	len += (c->head ? c->head->cap : 0) + (c->asked ? c->asked->cap : 0);
	if (c->backend)
		len += c->to_backend - c->written;
	len += service_kept_len(&c->service);
	if (c->recovery && c->recovery->heard)
		len += c->recovery->heard->cap;
	if (!carrier_moves(c->carrier))
		len += c->sent - c->drained;
	return len;
}

void connection_weigh(struct connection *c)
{
	holdings_set(&c->home->holdings, &c->holding, weight(c));
}

void connection_relieve(struct connection_home *home)
{
	struct holding *h;

	while ((h = holdings_greatest(&home->holdings)) != NULL) {
		struct connection *c = container_of(h, struct connection, holding);
		count(COUNT_KEPT_ENDED);
		log_paced(LOG_WARNING, &c->id, "connection ended to free memory", "bytes=%u of=%llu limit=%llu", h->len,
			(unsigned long long)home->holdings.len, (unsigned long long)home->holdings.limit);
		connection_give_up(c, END_OVERLOADED);
		if (c->state != CONNECTION_ENDED) /* its last words would have to wait */
			connection_end(c, END_OVERLOADED, CARRIER_ABORT);
		holdings_set(&home->holdings, h, 0);
	}
}

/* --- records that wait to be opened: before each, its header as the carrier parsed it --- */

size_t connection_waiting(const struct connection *c)
{
	return c->input_len - c->input_records * sizeof(struct tls_record_header);
}

static int make_room(struct connection *c, size_t len)
{
	if (c->input_len + len > c->input_cap) {
		uint32_t cap = (uint32_t)(c->input_len + len);
		uint8_t *bigger = realloc(c->input, cap);
		if (!bigger)
			return CSSL_E_NO_MEMORY;
		c->input = bigger;
		c->input_cap = cap;
	}
	return 0;
}

static void append(struct connection *c, const void *bytes, size_t len)
{
	memcpy(c->input + c->input_len, bytes, len);
	c->input_len += (uint32_t)len;
}

int connection_input_keep(struct connection *c, const struct tls_record *records, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += tls_record_len(&records[i]);
	if (connection_waiting(c) + len > c->home->window_len + TLS_RECORD_MAX)
		return CSSL_E_FULL;
	int r = make_room(c, len + count * sizeof records->header);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		append(c, &records[i].header, sizeof records->header);
		append(c, records[i].bytes, tls_record_len(&records[i]));
	}
	c->input_records += (uint32_t)count;
	return 0;
}

uint32_t connection_input_record(const struct connection *c, uint32_t at, struct tls_record *out)
{
	memcpy(&out->header, c->input + at, sizeof out->header);
	out->bytes = c->input + at + sizeof out->header;
	return at + (uint32_t)(sizeof out->header + tls_record_len(out));
}

void connection_input_used(struct connection *c, uint32_t at, uint32_t count)
{
	c->input_len -= at;
	c->input_records -= count;
	if (c->input_len) {
		memmove(c->input, c->input + at, c->input_len);
		if (at > c->input_len) /* they were opened in place: wipe the plaintext after the others */
			sodium_memzero(c->input + c->input_len, at - c->input_len);
		return;
	}
	if (c->input)
		sodium_memzero(c->input, at);
	free(c->input);
	c->input = NULL;
	c->input_cap = 0;
	if (c->carrier->ops->taken)
		c->carrier->ops->taken(c->carrier);
}

void connection_input_drop(struct connection *c)
{
	connection_input_used(c, c->input_len, c->input_records);
}

/* --- the bytes that wait for a backend --- */

#define HEAD_CAP_MIN 120u

/* Longer ones, with their records, are passed on in pieces. Strangers' heads must not take the memory that other
 * connections need. And RAgent must not stop first: it reads while one more record has room in a window. */
#define HEAD_KEPT_MAX 8192u
static_assert(HEAD_KEPT_MAX + TLS_RECORD_MAX <= CONF_WINDOW_MIN, "a head would wait for RAgent, and RAgent for it");

/* The request under way is the only one: nobody has to answer anything before the client says more. */
bool connection_head_waits(const struct connection *c)
{
	/* without a time limit, nothing would end a client that says empty lines only, and it could never rest */
	const bool may_wait =
		c->home->conf->limits.request_head_timeout_ms || service_place(&c->service) != SERVICE_CHECKPOINT;

	return may_wait && !c->backend && c->from_client == HALF_OPEN &&
	       (c->state == CONNECTION_OWNER || c->state == CONNECTION_RECOVERING) &&
	       service_head_under_way(&c->service) && service_outstanding(&c->service) <= 1;
}

void connection_wipe(struct kept_bytes **k)
{
	if (*k)
		sodium_memzero((*k)->bytes, (*k)->len);
	free(*k);
	*k = NULL;
}

void connection_drop_asked(struct connection *c)
{
	connection_wipe(&c->asked);
	c->backend_age = BACKEND_NEW;
}

/* Without realloc(), so that no plaintext is left in memory. */
static int grow(struct kept_bytes **h, size_t len)
{
	const size_t need = (*h ? (*h)->len : 0) + len, wish = (*h ? (*h)->cap : 0) * 2 + len;
	const size_t most = need > HEAD_KEPT_MAX ? wish : HEAD_KEPT_MAX;
	const size_t cap = wish < HEAD_CAP_MIN ? HEAD_CAP_MIN : wish < most ? wish : most;
	struct kept_bytes *bigger = malloc(sizeof *bigger + cap);

	if (!bigger)
		return CSSL_E_NO_MEMORY;
	bigger->len = *h ? (*h)->len : 0;
	bigger->cap = (uint32_t)cap;
	if (*h)
		memcpy(bigger->bytes, (*h)->bytes, (*h)->len);
	connection_wipe(h);
	*h = bigger;
	return 0;
}

int connection_keep(struct kept_bytes **k, const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	if ((!*k || (*k)->cap - (*k)->len < len) && grow(k, len) < 0)
		return CSSL_E_NO_MEMORY;
	memcpy((*k)->bytes + (*k)->len, data, len);
	(*k)->len += (uint32_t)len;
	return 0;
}

void connection_keep_asked(struct connection *c, const uint8_t *data, size_t len)
{
	const size_t all = len + (c->asked ? c->asked->len : 0);

	if (c->backend_age == BACKEND_NEW)
		return;
	if (!connection_serves(c) || all > HEAD_KEPT_MAX || connection_keep(&c->asked, data, len) < 0)
		connection_drop_asked(c);
}

int connection_give_asked(struct connection *c)
{
	struct kept_bytes *asked = c->asked;

	c->asked = NULL;
	c->written = c->to_backend - asked->len;
	int r = backend_write(c->backend, asked->bytes, asked->len);
	connection_wipe(&asked);
	return r;
}

int connection_give_head(struct connection *c)
{
	int r = 0;

	if (c->head) {
		count_by(COUNT_BYTES_TO_BACKEND, c->head->len);
		connection_keep_asked(c, c->head->bytes, c->head->len);
		r = backend_write(c->backend, c->head->bytes, c->head->len);
	}
	connection_wipe(&c->head);
	return r;
}

bool connection_only_blank_waits(const struct connection *c)
{
	return c->head && service_place(&c->service) == SERVICE_CHECKPOINT;
}

/* It is too long, or RAgent cannot say its records again, because they came before a KeyUpdate. */
static bool has_to_go_on(const struct connection *c)
{
	const struct consumed_mark *from = &c->consumed, *to = &c->newest;

	return c->state == CONNECTION_OWNER && c->head &&
	       (to->record_bytes - from->record_bytes >= HEAD_KEPT_MAX ||
		       to->position.read_generation != from->position.read_generation);
}

/* --- its time limit --- */

void connection_watch_head(struct connection *c)
{
	uint32_t limit_ms = c->home->conf->limits.request_head_timeout_ms;

	if (has_to_go_on(c) && connection_ensure_backend(c) < 0) {
		connection_backend_unreachable(c);
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
	connection_arm(c);
}

/* While earlier answers are running, the client rightly waits for them: its request gets its full time again. */
void connection_head_is_late(struct connection *c)
{
	c->head_until_ms = 0;
	if (!connection_serves(c) || service_head_under_way(&c->service) == 0)
		return;
	if (service_outstanding(&c->service) > 1) {
		connection_watch_head(c);
		return;
	}
	count(COUNT_REQUEST_HEADS_LATE);
	log_paced(LOG_INFO, &c->id, "request head late", "limit_ms=%u", c->home->conf->limits.request_head_timeout_ms);
	connection_finish(c, LAST_HEAD_LATE, END_IDLE_TIMEOUT);
}
