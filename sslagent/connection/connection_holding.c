/* connection_holding.c: the bytes that a worker keeps for its connections, against their budget: client records that
 * wait, what backends have not taken of them, and what clients without RAgent have not taken. When there is too much,
 * the connection that keeps most is ended, with an alert where one may be said. Who keeps nothing is never asked.
 */
#include "net/log_pace.h"
#include "sslagent/connection/connection_internal.h"
#include "sslagent/counters.h"

static struct connection *connection_of(struct holding *h)
{
	return (struct connection *)((char *)h - offsetof(struct connection, holding));
}

static size_t weight(const struct connection *c)
{
	size_t len = c->input_cap;

	if (c->state == CONNECTION_FROZEN || c->state == CONNECTION_ENDED)
		return 0; /* another's, or nobody's */
	if (c->backend)
		len += c->to_backend - c->written;
	if (c->recovery)
		len += c->recovery->heard_cap;
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
		log_paced(LOG_WARNING, &c->id, "keeps too much", "bytes=%u of=%llu limit=%llu", h->len,
			(unsigned long long)home->holdings.len, (unsigned long long)home->holdings.limit);
		connection_give_up(c, END_OVERLOADED);
		if (c->state != CONNECTION_ENDED) /* its last words would have to wait */
			connection_end(c, END_OVERLOADED, CARRIER_ABORT);
		holdings_set(&home->holdings, h, 0);
	}
}
