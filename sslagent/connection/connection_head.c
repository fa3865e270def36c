/* connection_head.c: a request's head that is not complete (services that follow requests). A client that says its
 * request byte by byte would else keep a connection, and its backend's, for as long as it likes. So a head has a time
 * limit. And a conversation with a backend begins only when a head is complete: until then, its bytes are kept here.
 * For the rest of the connection they count as given to a backend that has not taken them.
 *
 * The connection's deadline is for reports first: when none is due, it is the head's, or the pause's of
 * connection_pace.c.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/log_pace.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

/* --- the bytes that wait for a backend --- */

struct connection_head {
	uint32_t len, cap;
	uint8_t bytes[];
};

#define HEAD_CAP_MIN 120u

/* Longer ones, with their records, are passed on in pieces. Strangers' heads must not take the memory that other
 * connections need. And RAgent must not stop first: it reads while one more record has room in a window. */
#define HEAD_KEPT_MAX 8192u
static_assert(HEAD_KEPT_MAX + TLS_RECORD_MAX <= CONF_WINDOW_MIN, "a head would wait for RAgent, and RAgent for it");

/* Without a time limit for heads, nothing would end a client that says empty lines only, and it could never rest. */
static int may_wait(const struct connection *c)
{
	return c->home->conf->limits.request_head_timeout_ms || service_place(&c->service) != SERVICE_CHECKPOINT;
}

/* The request under way is the only one: nobody has to answer anything before the client says more. */
int connection_head_waits(const struct connection *c)
{
	return may_wait(c) && !c->backend && c->from_client == HALF_OPEN &&
	       (c->state == CONNECTION_OWNER || c->state == CONNECTION_RECOVERING) &&
	       service_head_under_way(&c->service) && service_outstanding(&c->service) <= 1;
}

size_t connection_head_cap(const struct connection *c)
{
	return c->head ? c->head->cap : 0;
}

void connection_drop_head(struct connection *c)
{
	if (c->head)
		sodium_memzero(c->head->bytes, c->head->len);
	free(c->head);
	c->head = NULL;
}

/* Without realloc(), so that no plaintext is left in memory. */
static int grow(struct connection *c, size_t len)
{
	const size_t need = (c->head ? c->head->len : 0) + len, wish = connection_head_cap(c) * 2 + len;
	const size_t most = need > HEAD_KEPT_MAX ? need : HEAD_KEPT_MAX;
	const size_t cap = wish < HEAD_CAP_MIN ? HEAD_CAP_MIN : wish < most ? wish : most;
	struct connection_head *bigger = malloc(sizeof *bigger + cap);

	if (!bigger)
		return CSSL_E_NO_MEMORY;
	bigger->len = c->head ? c->head->len : 0;
	bigger->cap = (uint32_t)cap;
	if (c->head)
		memcpy(bigger->bytes, c->head->bytes, c->head->len);
	connection_drop_head(c);
	c->head = bigger;
	return 0;
}

int connection_keep_head(struct connection *c, const uint8_t *data, size_t len)
{
	if ((!c->head || c->head->cap - c->head->len < len) && grow(c, len) < 0)
		return CSSL_E_NO_MEMORY;
	memcpy(c->head->bytes + c->head->len, data, len);
	c->head->len += (uint32_t)len;
	return 0;
}

int connection_give_head(struct connection *c)
{
	int r = 0;

	if (c->head) {
		count_by(COUNT_BYTES_TO_BACKEND, c->head->len);
		r = backend_write(c->backend, c->head->bytes, c->head->len);
	}
	connection_drop_head(c);
	return r;
}

int connection_only_blank_waits(const struct connection *c)
{
	return c->head && service_place(&c->service) == SERVICE_CHECKPOINT;
}

/* It is too long, or RAgent cannot say its records again, because they came before a KeyUpdate. */
static int has_to_go_on(const struct connection *c)
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
		connection_backend_unreachable(c, END_BACKEND_UNREACHABLE);
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
