/* session_store.c: deliver: queue. What a receiver would do is done here: a message is taken in full and given to the
 * queue, and the queue's answer is the reply to its end. */
#include "smtpproxy/sender/session_store.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "smtp/data.h"
#include "smtp/params.h"
#include "smtp/reply_write.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/store_parts.h"

#define ID_BYTES    8u
#define STORING_MAX 540000u /* ms for all parts; a sender waits 10 minutes (RFC 5321 4.5.3.2.6) */
#define ID_LEN      (2 * ID_BYTES + 1)

/* What a parameter of MAIL and RCPT may belong to: session_tx_name() has judged XCSSLTX. */
#define TAKEN                                                                                                          \
	(SMTP_CAP_BIT(SMTP_CAP_SIZE) | SMTP_CAP_BIT(SMTP_CAP_8BITMIME) | SMTP_CAP_BIT(SMTP_CAP_DSN) |                  \
		SMTP_CAP_BIT(SMTP_CAP_XCSSLTX))

static const char said_ok[] = "250 2.0.0 Ok\r\n";

static const char said_smuggles[] = "550 5.6.0 Message has line ends that are not allowed\r\n";

/* How the content comes. */
enum store_content {
	STORE_NOTHING,
	STORE_DATA,
	STORE_CHUNKS,
	STORE_JUDGED, /* hooks kept it until now */
};

struct store {
	struct session *session;
	struct envelope_text opening; /* of the envelope: all but the recipients */
	struct store_parts parts;
	unsigned recipients;
	struct body_share share; /* of the room that all messages have */
	uint64_t complete_ms;    /* when its end had come */
	struct message message;  /* begins with our Received field */
	size_t head;             /* its length */
	enum store_content content;
	const char *flaw;      /* the reply, if it is not kept any more; NULL: it is */
	struct smtp_data data; /* CHUNKS: the content as DATA would carry it */
	char id[ID_LEN];
	char name[SMTP_TX_ID_MAX + 24], reply[SMTP_REPLY_LINE_MAX]; /* of the transaction */
};

void session_store_drop(struct session *s)
{
	struct store *m = s->store;

	if (!m)
		return;
	s->store = NULL;
	store_parts_free(&m->parts);
	body_share_end(&m->share);
	envelope_free(&m->opening);
	message_free(&m->message);
	free(m);
}

uint64_t session_store_taken(const struct session *s)
{
	return s->store ? s->store->share.taken : 0;
}

/* A reply as if a server had said it. */
static void store_say(struct session *s, const char *reply)
{
	session_answer(s, reply, strlen(reply));
	if (s->state == SESSION_LEASES)
		session_check_end(s);
}

void session_store_offers(const struct session *s, struct smtp_ehlo *set)
{
	static const char *const offers[] = { "PIPELINING", "8BITMIME", "DSN", "ENHANCEDSTATUSCODES", "CHUNKING" };
	char size[32];

	smtp_ehlo_clear(set);
	for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
		smtp_ehlo_add(set, smtp_span_of(offers[i]));
	snprintf(size, sizeof size, "SIZE %" PRIu64, s->home->conf->queue.message_size);
	smtp_ehlo_add(set, smtp_span_of(size));
}

/* MAIL and RCPT */

/* Here it is, not at a receiver, that a mail with more than we offer has to end. */
static enum smtp_own store_refusal(const struct smtp_command *c)
{
	struct smtp_params ignored;

	if (c->path.utf8)
		return SMTP_OWN_NEEDS_UTF8;
	if (smtp_params_extensions(c) & ~TAKEN)
		return SMTP_OWN_UNKNOWN_PARAMETER;
	return smtp_params_read(c->verb, c->params, &ignored);
}

static const struct store_parts_ops parts_ops;

static struct store *store_begin(struct session *s, const struct smtp_command *c)
{
	char client[ADDRESS_TEXT_MAX], params[SESSION_LINE_MAX + sizeof ENVELOPE_SECURED];
	uint8_t id[ID_BYTES];
	struct store *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->session = s;
	store_parts_begin(&m->parts, s->home->queue, &parts_ops);
	randombytes_buf(id, sizeof id);
	sodium_bin2hex(m->id, sizeof m->id, id, sizeof id);
	snprintf(m->reply, sizeof m->reply, "250 2.0.0 Ok: queued as %s\r\n", m->id);
	snprintf(params, sizeof params, "%.*s%s", (int)c->params.len, c->params.len ? c->params.at : "",
		s->record.sender_tls.version[0] ? ENVELOPE_SECURED : "");
	session_client_text(s, client);
	if (!body_share_begin(&s->home->room, &m->share, &s->source) &&
		!envelope_begin(&m->opening, smtp_span_of(s->tx.name), smtp_span_of(client), c->path.mailbox,
			smtp_span_of(params)))
		return m;
	body_share_end(&m->share);
	envelope_free(&m->opening);
	free(m);
	return NULL;
}

static enum smtp_own store_refusal_of_mail(struct session *s, const struct smtp_command *c)
{
	struct smtpproxy_counters *counters = s->home->counters;
	const int room = queue_room(s->home->queue);

	if (room == QUEUE_NOT_READY)
		return SMTP_OWN_OVERLOADED;
	if (room == QUEUE_FULL) {
		counters->queue_full++;
		return SMTP_OWN_NO_ROOM;
	}
	if (s->home->room.state == BODY_ROOM_FULL) {
		counters->no_room++;
		return SMTP_OWN_NO_ROOM;
	}
	return s->store || s->state != SESSION_TALKS ? SMTP_OWN_BAD_SEQUENCE : store_refusal(c);
}

void session_store_mail(struct session *s, const struct smtp_client_event *e)
{
	enum smtp_own refusal = store_refusal_of_mail(s, &e->command);

	if (!refusal && !(s->store = store_begin(s, &e->command)))
		refusal = SMTP_OWN_LOCAL_ERROR;
	if (refusal) {
		session_answer_own(s, e, refusal);
		return;
	}
	s->hops = (struct hops){ 0 };
	s->pace = (struct pace){ 0 };
	session_record_begin(s, e->command.path.mailbox);
	session_move(s, SESSION_LEASES);
	smtp_tx_pass(&s->tx, e);
	store_say(s, "250 2.1.0 Ok\r\n");
}

/* Without a domain it is ours (RFC 5321 4.5.1), unless a next hop takes all mail as it is. */
static struct smtp_span store_mailbox(const struct session *s, const struct smtp_path *path, char *own, size_t cap)
{
	const struct conf_smtpproxy *conf = s->home->conf;

	if (path->kind != SMTP_PATH_POSTMASTER || conf->queue.next_hop.ss_family != AF_UNSPEC)
		return path->mailbox;
	snprintf(own, cap, "%.*s@%s", (int)path->mailbox.len, path->mailbox.at, conf->name);
	return smtp_span_of(own);
}

enum smtp_own session_store_recipient(const struct session *s, const struct smtp_command *c, struct store_recipient *to)
{
	const enum smtp_own refusal = store_refusal(c);

	if (refusal)
		return refusal;
	if (s->store->content != STORE_NOTHING) /* its receiver is not asked, either */
		return SMTP_OWN_BAD_SEQUENCE;
	if (s->store->recipients >= s->home->conf->queue.recipients)
		return SMTP_OWN_TOO_MANY_RECIPIENTS;
	to->mailbox = store_mailbox(s, &c->path, to->own, sizeof to->own);
	return line_name_of(&s->home->conf->queue, to->mailbox, to->line) ? SMTP_OWN_BAD_RECIPIENT : SMTP_OWN_NONE;
}

static void store_rcpt(struct session *s, const struct smtp_client_event *e)
{
	const struct smtp_command *c = &e->command;
	struct store *m = s->store;
	struct store_recipient to;
	enum smtp_own refusal = session_store_recipient(s, c, &to);
	size_t cost; /* bytes of memory that the recipient takes; all are given back with the message */

	if (!refusal) {
		cost = store_parts_cost(&m->parts, to.line, &m->opening) + c->path.mailbox.len + c->params.len;
		if (body_share_resize(&m->share, m->share.taken + cost)) {
			s->home->counters->no_room++;
			refusal = SMTP_OWN_NO_ROOM;
		} else if (store_parts_add(&m->parts, to.line, &m->opening, to.mailbox, c->params)) {
			refusal = SMTP_OWN_LOCAL_ERROR;
		}
	}
	if (refusal) {
		session_answer_own(s, e, refusal);
		return;
	}
	m->recipients++;
	session_record_recipient(s, c);
	smtp_tx_pass(&s->tx, e);
	store_say(s, "250 2.1.5 Ok\r\n");
}

/* Content */

static void store_refuse_content(struct store *m, const char *flaw)
{
	body_share_resize(&m->share, m->share.taken - m->message.cap);
	message_free(&m->message);
	m->flaw = flaw;
}

static void store_append(struct store *m, const void *data, size_t len)
{
	const size_t most = m->session->home->conf->queue.message_size + RECEIVED_MAX;
	int r;

	if (m->flaw)
		return;
	r = body_share_add(&m->share, &m->message, data, len, most);
	m->session->home->counters->no_room += r == CSSL_E_FULL;
	if (r)
		store_refuse_content(m, session_flaw_of(r));
}

/* A chunk may hold any bytes, but the receiver gets them by DATA. So they must not look like an end of DATA to a less
 * careful server, which would read a second mail behind it. A line with a dot alone gets its second dot then. */
static void store_follow_chunk(struct store *m, const char *at, size_t len)
{
	size_t taken;

	for (; len && m->content == STORE_CHUNKS && !m->flaw; at += taken, len -= taken) {
		enum smtp_data_event event = smtp_data_follow(&m->data, at, len, &taken);

		if (event == SMTP_DATA_BAD)
			store_refuse_content(m, said_smuggles);
		else if (event == SMTP_DATA_END)
			smtp_data_begin(&m->data, SMTP_DATA_SMUGGLING);
	}
}

static void store_write_received(struct session *s, struct store *m)
{
	const struct sockaddr_storage client = session_client(s);
	struct received r = { .hello = s->tx.name,
		.client = (const struct sockaddr *)&client,
		.by = s->home->conf->name,
		.id = m->id,
		.with = s->record.sender_tls.version[0] ? "ESMTPS" : "ESMTP",
		.time = (time_t)(worker_wall_ms() / 1000) };
	char out[RECEIVED_MAX];

	if (s->tx.greeting == SMTP_VERB_HELO)
		r.with = "SMTP";
	store_append(m, out, received_write(&r, out));
	m->head = m->message.len;
}

static void store_begin_content(struct session *s, enum store_content content)
{
	if (s->store->content != STORE_NOTHING)
		return;
	store_write_received(s, s->store);
	s->store->content = content;
	smtp_data_begin(&s->store->data, SMTP_DATA_SMUGGLING);
}

static void store_end_content(struct session *s);

void session_store_command(struct session *s, const struct smtp_client_event *e)
{
	const enum smtp_verb verb = e->command.verb;
	const struct store *m = s->store;

	pace_count(&s->pace, e->wire.len);
	if (verb == SMTP_VERB_RSET) {
		smtp_tx_pass(&s->tx, e);
		store_say(s, said_ok);
	} else if (m->content != STORE_NOTHING &&
		   verb != SMTP_VERB_BDAT) { /* RFC 3030 2: behind a chunk, only chunks come */
		session_answer_own(s, e, SMTP_OWN_BAD_SEQUENCE);
	} else if (verb == SMTP_VERB_RCPT) {
		store_rcpt(s, e);
	} else if (!m->recipients) {
		session_answer_own(s, e, SMTP_OWN_NO_RECIPIENTS);
	} else if (verb == SMTP_VERB_BDAT) {
		store_begin_content(s, STORE_CHUNKS);
		smtp_tx_pass(&s->tx, e);
		if (!e->command.chunk_len) /* it is complete at once */
			store_end_content(s);
	} else if (!session_held_begin(s, e)) {
		store_begin_content(s, STORE_DATA);
		smtp_tx_pass(&s->tx, e);
		store_say(s, "354 End data with <CR><LF>.<CR><LF>\r\n");
	}
}

void session_store_content(struct session *s, const struct smtp_client_event *e)
{
	if (e->discard) /* its command was refused, and answered */
		return;
	s->home->counters->bytes += e->wire.len;
	pace_count(&s->pace, e->wire.len);
	store_append(s->store, e->wire.at, e->wire.len);
	store_follow_chunk(s->store, e->wire.at, e->wire.len);
	if (e->kind == SMTP_CLIENT_CONTENT_END)
		store_end_content(s);
}

/* The end */

void session_store_decide(struct session *s, struct smtp_span reply)
{
	session_answer(s, reply.at, reply.len);
	if (s->state == SESSION_ALONE) {
		session_store_drop(s);
		session_finish_alone(s);
		return;
	}
	if (s->state >= SESSION_LEAVES)
		return;
	if (s->tx.closing) {
		session_leave(s);
		return;
	}
	session_check_end(s);
	session_go_on(s);
}

static void store_decide(struct session *s, const char *reply)
{
	session_store_decide(s, smtp_span_of(reply));
}

/* The backups answer, so the parts that are to come get their time, too. */
static void on_progress(struct store_parts *p)
{
	const struct store *m = container_of(p, struct store, parts);
	struct session *s = m->session;
	const uint32_t each_ms = s->home->conf->queue.store_ms;

	if (worker_now_ms(s->home->worker) + each_ms < m->complete_ms + STORING_MAX)
		deadline_set(s->home->worker, &s->deadline, each_ms);
}

static void on_decided(struct store_parts *p, enum queue_outcome outcome)
{
	struct store *m = container_of(p, struct store, parts);
	char queued[SMTP_REPLY_LINE_MAX];

	memcpy(queued, m->reply, sizeof queued); /* the decision frees it */
	switch (outcome) {
	case QUEUE_STORED: store_decide(m->session, queued); break;
	case QUEUE_REFUSED:
		m->session->home->counters->backups_full++;
		store_decide(m->session, "452 4.3.1 No room for the message, try again later\r\n");
		break;
	case QUEUE_LOST: store_decide(m->session, "421 4.3.2 Another server took over, try again\r\n"); break;
	}
}

static const struct store_parts_ops parts_ops = { .on_progress = on_progress, .on_decided = on_decided };

static void store_submit(struct session *s)
{
	struct store *m = s->store;
	struct message *all = &m->message;
	struct smtp_dots dots = { 0 };
	struct queue_mail mail = { 0 };
	int r;

	if (m->content == STORE_DATA) /* the content as it was before DATA carried it */
		all->len = m->head + smtp_dots_remove(&dots, all->at + m->head, all->len - m->head - strlen(".\r\n"),
					     all->at + m->head);
	m->complete_ms = worker_now_ms(s->home->worker);
	mail.body = (struct content_bytes){ (const uint8_t *)all->at, all->len };
	/* FENCED: another session asked about it while hooks judged it */
	if (s->named.state == SESSION_TX_UNDECIDED || s->named.state == SESSION_TX_FENCED) {
		snprintf(m->name, sizeof m->name, "%s/%" PRIu64, s->named.entry->id, s->named.number);
		mail.transaction = (struct content_bytes){ (const uint8_t *)m->name, strlen(m->name) };
		mail.reply = (struct content_bytes){ (const uint8_t *)m->reply, strlen(m->reply) - strlen("\r\n") };
	}
	r = store_parts_submit(&m->parts, &mail);
	if (!r && m->parts.count == 1) /* the queue has its own copy, which counts in the room until it is stored */
		message_free(all);
	if (!r) /* of several parts, the one that comes last needs it still */
		return;
	s->home->counters->queue_full += r == QUEUE_FULL;
	store_decide(s, r == QUEUE_NOT_READY ? "421 4.3.2 No copy can be stored now, try again later\r\n"
			: r > 0              ? "452 4.3.1 The queue is full, try again later\r\n"
					     : "451 4.3.0 Local error, try again later\r\n");
}

/* Our Received field stands in front of the message. */
static void name_mbox_line(struct store *m)
{
	struct message *all = &m->message;
	char name[MESSAGE_MBOX_NAME];
	size_t len;

	if (m->flaw)
		return;
	len = message_mbox_line((struct smtp_span){ all->at + m->head, all->len - m->head }, name);
	if (len == 0)
		return;
	store_append(m, name, len);
	if (m->flaw)
		return;
	memmove(all->at + m->head + len, all->at + m->head, all->len - len - m->head);
	memcpy(all->at + m->head, name, len);
}

/* All of it has come, and nobody else has to judge it. */
static void store_finish_content(struct session *s)
{
	name_mbox_line(s->store);
	s->home->counters->smuggling += s->store->flaw == said_smuggles;
	if (s->store->flaw)
		store_decide(s, s->store->flaw);
	else
		store_submit(s);
}

static void store_end_content(struct session *s)
{
	if (s->tx.state != SMTP_TX_DOT) { /* a chunk that is not the last one, or does not count */
		store_say(s, said_ok);
		return;
	}
	session_move(s, SESSION_DECIDES);
	session_tx_wait(s);
	session_expect_sender(s);
	store_follow_chunk(s->store, "\r\n", 2); /* DATA ends the last line, too */
	store_finish_content(s);
}

void session_store_judged(struct session *s, const struct message *judged)
{
	struct smtp_span piece;

	store_begin_content(s, STORE_JUDGED);
	for (size_t i = 0; message_piece(judged, i, &piece); i++)
		if (piece.len > 0)
			store_append(s->store, piece.at, piece.len);
	deadline_set(s->home->worker, &s->deadline, s->home->conf->queue.store_ms);
	store_finish_content(s);
}

void session_store_expire(struct session *s)
{
	s->home->counters->stores_expired++;
	store_parts_withdraw(&s->store->parts);
	store_decide(s, "451 4.3.0 The copies were not confirmed in time, try again later\r\n");
}
