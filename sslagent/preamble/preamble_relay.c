/* preamble_relay.c: mail in clear, of a client that does not use STARTTLS although the listener offers it. The agent
 * opens a backend connection, repeats the client's greeting there, and passes the rest on (smtp/relay.h). Such a
 * client stays with this agent. When the agent has to stop, it waits until no transaction is open.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/report/log_pace.h"
#include "proto/proxy_header.h"
#include "smtp/relay.h"
#include "sslagent/backend/backend.h"
#include "sslagent/counters.h"
#include "sslagent/preamble/preamble_inside.h"

#define GREETING_MAX (SMTP_DOMAIN_MAX + sizeof "EHLO \r\n")

struct preamble_relay {
	struct backend *backend; /* NULL: it ended */
	struct smtp_relay_rules rules;
	struct smtp_relay relay;
	char greeting[GREETING_MAX];
	char held[SMTP_PREAMBLE_LINE_MAX]; /* the line that began the mail, until the backend gets it */
	size_t held_len;
};

/* Extensions for clients with TLS only (RFC 3207 4.2, RFC 8689 2). */
#define HIDDEN_IN_CLEAR (SMTP_CAP_BIT(SMTP_CAP_AUTH) | SMTP_CAP_BIT(SMTP_CAP_REQUIRETLS))

/* Commands that clients in clear may not use (RFC 3207 4.2, RFC 4954 4), and STARTTLS within a mail session. A verb
 * that only the server knows may carry a password. */
static const uint8_t refused[SMTP_VERB_COUNT] = {
	[SMTP_VERB_UNKNOWN] = SMTP_OWN_UNKNOWN_COMMAND,
	[SMTP_VERB_AUTH] = SMTP_OWN_TLS_REQUIRED_FOR_AUTH,
	[SMTP_VERB_STARTTLS] = SMTP_OWN_BAD_SEQUENCE,
	[SMTP_VERB_XCLIENT] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XFORWARD] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XCSSLTX] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_CONNECT] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_GET] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_POST] = SMTP_OWN_FOREIGN_PROTOCOL,
};

/* --- end --- */

/* Reset the connection if the server has received a part of something (law 9). */
void preamble_relay_drop(struct preamble *p)
{
	struct preamble_relay *r = p->relay;

	if (!r)
		return;
	if (r->backend && smtp_tx_is_checkpoint(&r->relay.tx))
		backend_close(r->backend);
	else if (r->backend)
		backend_reset(r->backend);
	p->relay = NULL;
	free(r);
}

static enum end_reason why_over(const struct preamble *p)
{
	switch (p->relay->relay.over_for) {
	case SMTP_OWN_NONE:
	case SMTP_OWN_RECEIVER_REFUSES: return END_DONE;
	case SMTP_OWN_BACKEND_UNREACHABLE: return END_BACKEND_UNREACHABLE;
	case SMTP_OWN_OVERLOADED: return END_OVERLOADED;
	case SMTP_OWN_BACKEND_LOST:
	case SMTP_OWN_BACKEND_BROKEN: return END_BACKEND_CLOSED;
	case SMTP_OWN_TIMED_OUT: return (enum end_reason)p->reason;
	default: return END_PREAMBLE_REFUSED;
	}
}

/* --- both ways --- */

static void to_client(void *ctx, const char *words, size_t len, enum smtp_relay_words what)
{
	preamble_say(ctx, words, len, what == SMTP_WORDS_WHOLE ? PREAMBLE_WHOLE : PREAMBLE_PART);
}

static void to_server(void *ctx, const char *words, size_t len)
{
	const struct preamble *p = ctx;

	if (p->relay->backend)
		backend_write(p->relay->backend, (const uint8_t *)words, len);
}

static size_t server_room(const struct preamble *p)
{
	const size_t pending = p->relay->backend ? backend_pending(p->relay->backend) : 0;

	return pending < p->home->window_len ? p->home->window_len - pending : 0;
}

/* The agent's own replies come on top, each of less than SMTP_RELAY_OWN_MAX bytes. */
static size_t client_room(const struct preamble *p)
{
	const uint64_t under_way = p->said - p->drained + SMTP_RELAY_OWN_MAX;

	return under_way < p->home->window_len ? (size_t)(p->home->window_len - under_way) : 0;
}

static int preamble_relay_has_room(const void *ctx)
{
	return client_room(ctx) > 0;
}

static const struct smtp_relay_ops relay_ops = {
	.to_client = to_client, .to_server = to_server, .has_room = preamble_relay_has_room
};

static void say_held(struct preamble *p)
{
	struct preamble_relay *r = p->relay;

	if (r->held_len == 0 || r->relay.state != SMTP_RELAY_OPEN)
		return;
	const size_t used = smtp_relay_client(&r->relay, r->held, r->held_len);
	r->held_len -= used;
	memmove(r->held, r->held + used, r->held_len);
}

static bool relay_is_over(const struct preamble *p)
{
	return p->relay->relay.state == SMTP_RELAY_OVER;
}

/* The client has ended, and no reply is due or can still come. */
static bool client_is_done(const struct preamble *p)
{
	const struct smtp_relay *r = &p->relay->relay;

	return p->client == PREAMBLE_CLIENT_ENDED && (r->state != SMTP_RELAY_OPEN || r->tx.queue_len == 0);
}

static bool may_finish(const struct preamble *p)
{
	const struct smtp_relay *r = &p->relay->relay;

	return p->wish == PREAMBLE_FINISHING && (r->state != SMTP_RELAY_OPEN || smtp_tx_is_checkpoint(&r->tx));
}

void preamble_pause(struct preamble *p)
{
	p->pace = PREAMBLE_PAUSED;
	if (p->relay && p->relay->backend)
		backend_read_off(p->relay->backend);
}

void preamble_relay_look(struct preamble *p)
{
	if (p->pace == PREAMBLE_PAUSED)
		return;
	say_held(p);
	if (!relay_is_over(p) && may_finish(p)) {
		preamble_end_saying(p, (enum end_reason)p->reason, SMTP_OWN_SHUTTING_DOWN);
		return;
	}
	if (relay_is_over(p)) {
		const struct smtp_relay *r = &p->relay->relay;
		preamble_end(p, why_over(p), r->within ? PREAMBLE_ABORT : PREAMBLE_ORDERLY);
		return;
	}
	if (client_is_done(p)) {
		preamble_end(p, END_CLIENT_CLOSED, PREAMBLE_ORDERLY);
		return;
	}
	/* a side is read only if the other one has room for what it says (law 15) */
	if (p->relay->backend && client_room(p))
		backend_read_on(p->relay->backend, client_room(p));
	if (server_room(p) && client_room(p))
		p->carrier->ops->wants(p->carrier);
}

void preamble_relay_time_out(struct preamble *p, enum end_reason reason)
{
	struct smtp_relay *r = &p->relay->relay;

	if (reason == END_IDLE_TIMEOUT && smtp_tx_end_is_due(&r->tx))
		return;
	p->reason = (uint8_t)reason;
	smtp_relay_end(r, SMTP_OWN_TIMED_OUT);
	preamble_relay_look(p);
}

size_t preamble_relay_read(struct preamble *p, const uint8_t *data, size_t len)
{
	const size_t room = server_room(p);

	if (p->relay->held_len) /* the backend does not know of the mail yet */
		return 0;
	size_t used = smtp_relay_client(&p->relay->relay, (const char *)data, len < room ? len : room);
	p->taken += used;
	if (relay_is_over(p))
		preamble_relay_look(p);
	return used;
}

/* --- the backend --- */

static void count_refusal(struct preamble *p, enum smtp_relay_state before)
{
	const struct smtp_relay *r = &p->relay->relay;

	if (before == SMTP_RELAY_GREETING && r->refusal[0])
		count(COUNT_MAIL_GREETINGS_REFUSED);
	if (before == SMTP_RELAY_BANNER && r->over_for == SMTP_OWN_RECEIVER_REFUSES)
		count(COUNT_MAIL_CLIENTS_REFUSED);
}

static size_t relay_on_backend_data(void *user, uint8_t *data, size_t len)
{
	struct preamble *p = user;
	const enum smtp_relay_state before = p->relay->relay.state;
	size_t used = 0;

	if (p->pace == PREAMBLE_PAUSED) {
		backend_read_off(p->relay->backend);
		return 0;
	}
	while (used < len && client_room(p) &&
		!relay_is_over(p)) { /* what is not for the client takes none of its room */
		const size_t room = client_room(p), n = room < len - used ? room : len - used;
		smtp_relay_server(&p->relay->relay, (const char *)data + used, n);
		used += n;
	}
	count_refusal(p, before);
	if (used < len)
		backend_read_off(p->relay->backend);
	preamble_relay_look(p);
	return used;
}

static void relay_on_backend_written(void *user, size_t len)
{
	preamble_relay_look(user);
}

static void relay_on_backend_end(void *user, enum stream_end end, int uv_error)
{
	struct preamble *p = user;

	log_paced(LOG_INFO, &p->id, "backend ended in clear mail", "error=%s",
		end == STREAM_ERROR ? uv_strerror(uv_error) : "none");
	count(COUNT_BACKEND_FAILURES);
	backend_reset(p->relay->backend);
	p->relay->backend = NULL;
	if (end == STREAM_ERROR && backend_is_own_lack(uv_error))
		smtp_relay_end(&p->relay->relay, SMTP_OWN_OVERLOADED);
	else
		smtp_relay_server_ended(&p->relay->relay);
	preamble_relay_look(p);
}

static const struct backend_user_ops backend_ops = {
	.on_data = relay_on_backend_data, .on_written = relay_on_backend_written, .on_end = relay_on_backend_end
};

static struct backend *connect_backend(struct preamble *p)
{
	const struct conf_backend *conf = conf_backend_find(p->home->conf, p->listener->backend);
	struct proxy_header header = { 0 };

	endpoints_to_proxy(&p->endpoints, &header);
	header.unique_id =
		p->id.bytes; /* and never another hop's: the server keeps an entry for each (doc/xcssltx.md) */
	header.unique_id_len = sizeof p->id.bytes;
	count(COUNT_BACKEND_CONNECTS);
	return backend_connect(p->home->backends, conf, conf->proxy_v2 == CONF_ON ? &header : NULL, &backend_ops, p);
}

void preamble_relay_begin(struct preamble *p, struct smtp_span held)
{
	const uint32_t hidden = conf_smtp_hidden(&p->listener->smtp) | HIDDEN_IN_CLEAR;
	struct preamble_relay *r = calloc(1, sizeof *r);

	p->relay = r;
	if (!r) {
		preamble_end_saying(p, END_INTERNAL, SMTP_OWN_OVERLOADED);
		return;
	}
	r->rules = (struct smtp_relay_rules){ .name = p->listener->smtp.hostname,
		.refused = refused,
		.hidden = hidden,
		.data_refuse = SMTP_DATA_SMUGGLING,
		.banner = SMTP_BANNER_SWALLOWED,
		.greeted = SMTP_GREETED_BY_US,
		.seen = conf_backend_find(p->home->conf, p->listener->backend)->proxy_v2 == CONF_ON
				? SMTP_CLIENT_IS_SEEN
				: SMTP_AGENT_IS_SEEN,
		.refusals_max = p->listener->smtp.refusals_max,
		.parse = smtp_relay_parse(hidden) };
	memcpy(r->held, held.at, held.len);
	r->held_len = held.len;
	snprintf(r->greeting, GREETING_MAX, "%s %s\r\n", p->greeted == SMTP_PREAMBLE_HELO ? "HELO" : "EHLO",
		p->dialogue.name);
	smtp_relay_begin(&r->relay, &r->rules, &relay_ops, p, r->greeting);
	r->backend = connect_backend(p);
	if (!r->backend)
		preamble_end_saying(p, END_OVERLOADED, SMTP_OWN_OVERLOADED);
}
