/* session_record.c: the facts about a session's transaction for the event log. */
#include "smtpproxy/sender/session_record.h"

#include <inttypes.h>
#include <stdio.h>

#include "net/socket/endpoints.h"
#include "smtpproxy/events/event_log.h"
#include "smtpproxy/sender/session.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_lease.h"

/* Transactions without an end that have a record: of one session, in a row; and of all, in a second, but for those that
 * were not served: they tell of a receiver, and each has cost its sender a turn. */
#define EMPTY_OF_SESSION 20u
#define EMPTY_PER_S      100u

static uint64_t now_of(const struct session *s)
{
	return worker_now_ms(s->home->worker);
}

/* The client of the header, or the peer. */
struct sockaddr_storage session_client(const struct session *s)
{
	struct sockaddr_storage a = { .ss_family = AF_INET }; /* of a UNIX socket: 0.0.0.0 */
	if (s->source.len > 0)
		endpoint_sockaddr(&s->source, s->source_port, &a);
	return a;
}

void session_client_text(const struct session *s, char out[static ADDRESS_TEXT_MAX])
{
	const struct sockaddr_storage a = session_client(s);
	address_format((const struct sockaddr *)&a, out);
}

void session_record_header(struct session *s, const struct proxy_header *h)
{
	if (!(h->ssl_flags & PROXY_SSL))
		return;
	snprintf(s->record.sender_tls.version, sizeof s->record.sender_tls.version, "%.*s", (int)h->ssl_version_len,
		(const char *)h->ssl_version);
	if (h->ssl_version_len == 0)
		snprintf(s->record.sender_tls.version, sizeof s->record.sender_tls.version, "TLS");
	snprintf(s->record.sender_tls.cipher, sizeof s->record.sender_tls.cipher, "%.*s", (int)h->ssl_cipher_len,
		(const char *)h->ssl_cipher);
}

void session_record_begin(struct session *s, struct smtp_span from)
{
	char client[ADDRESS_TEXT_MAX], destination[ADDRESS_TEXT_MAX], name[SMTP_TX_ID_MAX + 24];
	session_client_text(s, client);
	if (s->destination)
		address_format((const struct sockaddr *)&s->destination->route.to, destination);
	else
		snprintf(destination, sizeof destination, "queue");
	const struct record_origin origin = { .connection = s->number,
		.client = client,
		.ehlo = s->tx.name,
		.destination = destination,
		.wall_ms = worker_wall_ms(),
		.now_ms = now_of(s) };
	record_begin(&s->record.open, &origin, from);
	if (s->record.sender_tls.version[0])
		record_sender_tls(&s->record.open, smtp_span_of(s->record.sender_tls.version),
			smtp_span_of(s->record.sender_tls.cipher));
	if (s->named.state != SESSION_TX_OPEN)
		return;
	snprintf(name, sizeof name, "%s/%" PRIu64, s->named.entry->id, s->named.number);
	record_text(&s->record.open, "transaction", name);
}

void session_record_greeting(struct session *s)
{
	session_record_begin(s, (struct smtp_span){ 0 });
	json_object_del(s->record.open.fields, "from");
}

void session_record_turn(struct session *s)
{
	s->home->counters->sent_in_clear += s->record.sender_tls.version[0] && !s->onward->tls;
	if (!record_is_open(&s->record.open))
		return;
	record_turn(&s->record.open, now_of(s));
	if (s->onward->tls)
		record_tls(&s->record.open, onward_tls_version(s->onward->tls), onward_tls_cipher(s->onward->tls));
}

void session_record_recipient(struct session *s, const struct smtp_command *c)
{
	if (record_is_open(&s->record.open))
		record_recipient(&s->record.open, c->path.mailbox);
}

void session_record_reply(struct session *s, const struct smtp_server_event *e)
{
	const bool decides = session_is_decision(s, e);
	if (e->turn == SMTP_VERB_RCPT && e->line.code / 100 == 2)
		session_filter_note_recipient(s);
	if (!record_is_open(&s->record.open))
		return;
	if (e->turn == SMTP_VERB_RCPT)
		record_recipient_reply(&s->record.open, &e->line);
	else if (decides || e->line.code >= 400)
		record_reply(&s->record.open, &e->line);
	if (decides)
		session_record_end(s, e->line.code / 100 == 2 ? RECORD_ACCEPTED : RECORD_REFUSED);
}

/* MAIL and RSET cost a sender nothing, and each record takes room on the disk. */
static bool is_told(struct session *s, enum record_outcome outcome)
{
	struct sender_home *h = s->home;
	const uint64_t second = now_of(s) / 1000;

	/* All of the content came: a part costs no more than MAIL does (BDAT 1, RSET). */
	if (outcome != RECORD_ABORTED && outcome != RECORD_NOT_SERVED && s->tx.mail_code / 100 == 2) {
		s->record.empty = 0;
		return true;
	}
	if (h->empty.second != second)
		h->empty.told = 0;
	h->empty.second = second;
	return ++s->record.empty <= EMPTY_OF_SESSION &&
	       (outcome == RECORD_NOT_SERVED || ++h->empty.told <= EMPTY_PER_S);
}

void session_record_end(struct session *s, enum record_outcome outcome)
{
	json_t *ended;

	if (!record_is_open(&s->record.open))
		return;
	ended = record_end(&s->record.open, outcome, s->tx.message_len, now_of(s));
	if (!is_told(s, outcome)) {
		s->home->counters->events_left_out++;
		json_decref(ended);
		return;
	}
	if (outcome != RECORD_ACCEPTED)
		record_tell(ended);
	event_log_add(s->home->events, ended);
}

void session_record_not_served(struct session *s, enum smtp_own why)
{
	if (record_is_open(&s->record.open))
		record_own_reply(&s->record.open, why, s->said);
	session_record_end(s, RECORD_NOT_SERVED);
}
