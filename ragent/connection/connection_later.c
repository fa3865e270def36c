/* connection_later.c: sends messages that may wait a little later. Usually something else is sent meanwhile anyway,
 * or the message is no longer needed. This saves a system call here and a turn of the agent's loop for each.
 *
 * The tickets after a handshake of TLS 1.3 go with the first answer, but not to clients of mail. A client's FIN matters
 * only if the conversation is not over; after close_notify the owner ends it by itself.
 */
#include "net/container_of.h"
#include "net/stream.h"
#include "ragent/connection/connection_internal.h"

#define LATER_MS 10u /* one tick of the deadlines */

void connection_on_later(struct deadline *d)
{
	struct busy_part *a = container_of(d, struct busy_part, later);

	a->fin = FIN_AT_ONCE;
	stream_flush_soon(&a->client);
	connection_send_records(a->connection);
}

static void say_later(struct connection *c)
{
	if (!deadline_is_set(&c->busy->later))
		deadline_set(c->home->worker, &c->busy->later, LATER_MS);
}

/* A client with Nagle's algorithm (RFC 896) sends nothing after its Finished before that is acknowledged, and the
 * tickets are what acknowledges it. Mail clients use it more often than not, and would wait for a tick at each
 * connection. */
static int waits_for_tickets(const struct connection *c)
{
	return connection_service(c)->start == SERVICE_MAY_START_AS_SMTP;
}

void connection_hold_tickets(struct connection *c)
{
	if (c->agreed->protocol_version != TLS13_VERSION_WIRE || !stream_pending(&c->busy->client) ||
		waits_for_tickets(c))
		return;
	stream_hold(&c->busy->client);
	say_later(c);
}

void connection_hold_fin(struct connection *c)
{
	c->busy->fin = FIN_LATER;
	say_later(c);
}
