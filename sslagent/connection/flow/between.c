/* between.c: a connection whose service stands between client and backend (service.h): the bytes of either side go into
 * the service, and its output goes on. Such a connection leaves a note with RAgent before any effect that the note
 * does not contain can be seen outside. It moves at checkpoints (move.c).
 */
#include "sslagent/connection/flow/between.h"

#include <arpa/inet.h>

#include "net/points/fault.h"
#include "sslagent/connection/flow/consumed.h"
#include "sslagent/connection/flow/words.h"
#include "sslagent/connection/succession.h"
#include "sslagent/counters.h"

/* --- who owns it --- */

static void fill_client(const struct connection *c, struct service_owner *o, char text[static INET6_ADDRSTRLEN])
{
	const struct client_address *a = &c->endpoints.client;
	const int family = a->len == 16 ? AF_INET6 : AF_INET;

	if (a->len == 0 || !inet_ntop(family, a->bytes, text, INET6_ADDRSTRLEN))
		return;
	o->client = text;
	o->client_port = c->endpoints.client_port;
	o->is_ipv6 = family == AF_INET6;
}

int between_own(struct connection *c)
{
	struct service_owner owner = {
		.connection = &c->id, .epoch = c->epoch, .backend = conf_backend_find(c->home->conf, c->backend_name)
	};
	char address[INET6_ADDRSTRLEN];

	if (!service_stands_between(&c->service))
		return 0;
	conversation_id(c, &owner.id, &owner.id_len);
	fill_client(c, &owner, address);
	return service_own(&c->service, &owner);
}

/* --- both ways --- */

static void between_lose_backend(struct connection *c, bool is_own_lack)
{
	conversation_release(c, END_BACKEND_UNREACHABLE);
	count(COUNT_BACKEND_FAILURES);
	if (is_own_lack)
		service_end(&c->service, SERVICE_OVERLOADED);
	else
		service_backend_gone(&c->service);
}

/* All client bytes that the service used are at the backend. */
static void between_note_taken(struct connection *c)
{
	const uint8_t *data;

	if (service_for_backend(&c->service, &data) || (c->backend && backend_pending(c->backend)))
		return;
	c->written += service_taken(&c->service);
	consumed_written(c);
}

/* 1: there may be replies to it already. */
static bool between_give_backend(struct connection *c)
{
	const uint8_t *data;
	int r = 0;

	if (!c->backend && service_wants_backend(&c->service))
		r = conversation_ensure(c);
	const bool is_own_lack = r < 0;
	const size_t len = service_for_backend(&c->service, &data);
	if (r == 0 && len && c->backend) {
		succession_leave_word(c);
		r = backend_write(c->backend, data, len);
		fault_at("request.given", NULL, NULL);
	}
	service_given_to_backend(&c->service);
	if (r < 0)
		between_lose_backend(c, is_own_lack);
	return r < 0 || len;
}

/* A server in the middle of a mail must not take it for a complete one (law 9). */
static void between_finish(struct connection *c)
{
	if (service_is_over(&c->service) == SERVICE_OVER_CUT)
		conversation_release(c, END_BACKEND_CLOSED);
	words_finish(c, LAST_CLOSE_NOTIFY, service_over_for(&c->service));
}

/* The client's replies come first: while it has to take some, the backend gets no new bytes. */
void between_step(struct connection *c)
{
	if (!connection_serves(c))
		return;
	do {
		between_note_taken(c);
		if (!words_say_replies(c) || !connection_serves(c))
			return;
	} while (between_give_backend(c));
	between_note_taken(c);
	if (service_is_over(&c->service) != SERVICE_NOT_OVER)
		between_finish(c);
	else if (c->backend && c->from_client == HALF_CLOSED && c->to_backend == c->written)
		backend_shutdown(c->backend); /* nothing can complete what the server has only in part */
}

void between_give(struct connection *c, const uint8_t *data, size_t len)
{
	service_at_record(&c->service, c->client_records);
	c->to_backend += len;
	count_by(COUNT_BYTES_TO_BACKEND, len);
	service_from_client(&c->service, data, len);
	between_step(c);
}

bool between_replies_wait(const struct connection *c)
{
	const uint8_t *data;

	return service_stands_between(&c->service) && service_for_client(&c->service, &data) > 0;
}

/* Further input waits until the client has room for the replies. */
void between_read(struct connection *c)
{
	if (!connection_serves(c) || !c->backend)
		return;
	if (between_replies_wait(c))
		backend_read_pause(c->backend);
	else
		backend_read_on(c->backend, BACKEND_READ_MAX);
}

void between_hear(struct connection *c, const uint8_t *data, size_t len)
{
	service_backend_says(&c->service, data, len);
	between_step(c);
	between_read(c);
}

void between_backend_ended(struct connection *c, int uv_error)
{
	between_lose_backend(c, backend_is_own_lack(uv_error));
	between_step(c);
}
