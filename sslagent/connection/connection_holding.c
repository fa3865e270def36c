/* connection_holding.c: a worker's budget for the bytes that it keeps for its connections: client records that wait,
 * bytes that backends have not taken, and bytes that clients without RAgent have not taken. Above the budget, the
 * connection that keeps most is ended, with an alert if one may be sent. A connection that keeps nothing is never
 * ended for this.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/container_of.h"
#include "net/log_pace.h"
#include "proto/error.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

static struct connection *connection_of(struct holding *h)
{
	return container_of(h, struct connection, holding);
}

static size_t weight(const struct connection *c)
{
	size_t len = c->input_cap;

	if (c->state == CONNECTION_FROZEN || c->state == CONNECTION_ENDED)
		return 0; /* it belongs to another connection, or to none */
	len += connection_head_cap(c);
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
		struct connection *c = connection_of(h);
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

static size_t len_of(const struct tls_record *records, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += tls_record_len(&records[i]);
	return len;
}

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
	const size_t len = len_of(records, count);

	if (connection_waiting(c) + len > connection_window(c) + TLS_RECORD_MAX)
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
