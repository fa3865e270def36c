/* session_tx.c: names, decisions and questions of one session. All sessions of one id are in its entry's list. */
#include "smtpproxy/sender/session_tx.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "smtp/reply_write.h"
#include "smtpproxy/ledger/tx_before.h"
#include "smtpproxy/queue/queue.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"

#define UNIQUE_ID_MAX (SMTP_TX_ID_MAX / 2)

void session_tx_enter(struct session *s, const struct proxy_header *h)
{
	char id[SMTP_TX_ID_MAX + 1];
	if (h->unique_id_len == 0 || h->unique_id_len > UNIQUE_ID_MAX)
		return;
	sodium_bin2hex(id, sizeof id, h->unique_id, h->unique_id_len);
	s->named.entry = tx_ledger_enter(s->home->ledger, id);
	if (s->named.entry)
		LIST_INSERT_HEAD(&s->named.entry->sessions, &s->named.member, in_entry);
}

/* Transactions */

enum smtp_own session_tx_name(struct session *s, struct smtp_span value)
{
	struct smtp_tx_name name;
	if (!s->named.entry)
		return SMTP_OWN_UNKNOWN_PARAMETER;
	if (smtp_tx_name_parse(value, &name) < 0)
		return SMTP_OWN_BAD_PARAMETER;
	if (strcmp(name.id, s->named.entry->id) != 0)
		return SMTP_OWN_NOT_TRUSTED;
	if (tx_entry_begin(s->named.entry, name.number) < 0)
		return SMTP_OWN_BAD_SEQUENCE;
	s->named.number = name.number;
	s->named.state = SESSION_TX_OPEN;
	return SMTP_OWN_NONE;
}

void session_tx_forget(struct session *s)
{
	if (s->named.state == SESSION_TX_OPEN)
		s->named.state = SESSION_TX_NONE;
}

void session_tx_wait(struct session *s)
{
	if (s->named.state == SESSION_TX_OPEN)
		s->named.state = SESSION_TX_UNDECIDED;
}

/* Answers the session's question, as if a server had sent it. */
static void tx_say_fate(struct session *s, enum smtp_fate fate, struct smtp_span reply)
{
	uint8_t out[SMTP_REPLY_LINE_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	smtp_fate_write(&w, fate, reply);
	session_answer(s, (const char *)out, (size_t)wire_writer_len(&w));
}

/* The transaction may be another process's. Its decision to store is in the queue, which outlives processes. */
static void answer_of_queue(struct session *s, const struct smtp_tx_name *n)
{
	char name[SMTP_TX_ID_MAX + 24], reply[TX_LEDGER_REPLY_MAX];
	const bool forgets = tx_ledger_evicted(s->home->ledger) > 0;
	enum smtp_fate fate = SMTP_FATE_UNKNOWN;
	size_t len = 0;
	int r = QUEUE_NONE;
	snprintf(name, sizeof name, "%s/%" PRIu64, n->id, n->number);
	if (s->home->queue)
		r = queue_decided(s->home->queue, (struct content_bytes){ (const uint8_t *)name, strlen(name) }, reply,
			sizeof reply, &len);
	if (r == 0)
		fate = SMTP_FATE_DECIDED;
	else if (s->named.is_own && (r == QUEUE_NONE || (r == QUEUE_FORGOTTEN_HERE && !forgets)))
		fate = SMTP_FATE_NEVER; /* it was not decided here before, and nothing of it is in the queue */
	tx_say_fate(s, fate, (struct smtp_span){ reply, len });
}

int session_tx_reopen(struct session *s)
{
	if (s->named.state == SESSION_TX_FENCED)
		return -1;
	if (s->named.state == SESSION_TX_UNDECIDED)
		s->named.state = SESSION_TX_OPEN;
	return 0;
}

void session_tx_decide(struct session *s, struct smtp_span text)
{
	const enum session_tx_state before = (enum session_tx_state)s->named.state;
	if (before == SESSION_TX_NONE || before >= SESSION_TX_ASKING)
		return;
	s->named.state = SESSION_TX_NONE;
	tx_entry_decide(s->named.entry, s->named.number, text);
	tx_entry_tell(s->named.entry, s->named.number);
	s->drains |= before == SESSION_TX_FENCED;
}

void session_tx_leave(struct session *s)
{
	struct tx_entry *e = s->named.entry;
	const enum session_tx_state before = (enum session_tx_state)s->named.state;
	if (!e)
		return;
	s->named.state = SESSION_TX_NONE;
	LIST_REMOVE(&s->named.member, in_entry);
	if (before >= SESSION_TX_ASKING)
		tx_waiter_cancel(&s->named.waiter);
	if (before == SESSION_TX_UNDECIDED || before == SESSION_TX_FENCED)
		tx_entry_tell(e, s->named.number);
	s->named.entry = NULL;
	tx_ledger_leave(s->home->ledger, e);
}

/* The question */

/* From now on, transactions that other sessions of the entry have not sent completely have no effect. @asker may be
 * NULL. True when one of them has sent transaction @number completely, and its decision is still to come. */
static bool tx_fence(struct tx_entry *e, const struct session *asker, uint64_t number)
{
	struct tx_member *m, *next;
	bool waits = false;
	for (m = LIST_FIRST(&e->sessions); m; m = next) {
		struct session *s = container_of(m, struct session, named.member);
		next = LIST_NEXT(m, in_entry);
		if (s == asker)
			continue;
		if (s->named.state != SESSION_TX_UNDECIDED && s->named.state != SESSION_TX_FENCED) {
			session_cut(s);
			continue;
		}
		s->named.state = SESSION_TX_FENCED;
		waits |= s->named.number == number;
	}
	return waits;
}

/* The process before has no session that can complete the transaction. One here has not, either, unless its entry was
 * forgotten since. */
static enum smtp_fate fate_of_both(struct session *s, enum smtp_fate before)
{
	struct smtp_span reply;
	const enum smtp_fate here = tx_entry_ask(s->named.entry, s->named.number, &reply);
	if (before == SMTP_FATE_DECIDED)
		return before;
	if (s->named.is_own)
		return here;
	if (here != SMTP_FATE_NEVER || tx_ledger_evicted(s->home->ledger) > 0)
		return SMTP_FATE_UNKNOWN;
	return before;
}

static void on_fate(struct tx_waiter *w, enum smtp_fate fate, struct smtp_span reply)
{
	struct session *s = container_of(w, struct session, named.waiter);
	const bool is_of_both = s->named.state == SESSION_TX_ASKING_BEFORE;
	s->named.state = SESSION_TX_NONE;
	session_move(s, SESSION_TALKS);
	tx_say_fate(s, is_of_both ? fate_of_both(s, fate) : fate, reply);
	session_go_on(s);
}

/* on_fate will come. */
static void tx_ask(struct session *s, enum session_tx_state state)
{
	s->named.state = (uint8_t)state;
	session_move(s, SESSION_ASKS);
}

/* The process before may know it, or the queue. */
static void tx_ask_before(struct session *s, const struct smtp_tx_question *q)
{
	struct smtp_span reply = { 0 };
	enum smtp_fate fate;
	if (tx_entry_ask(s->named.entry, s->named.number, &reply) == SMTP_FATE_DECIDED) {
		tx_say_fate(s, SMTP_FATE_DECIDED, reply);
		return;
	}
	switch (tx_before_ask(s->home->before, q, &s->named.waiter, &fate, &reply)) {
	case TX_BEFORE_KNOWN: tx_say_fate(s, fate_of_both(s, fate), reply); break;
	case TX_BEFORE_ASKED: tx_ask(s, SESSION_TX_ASKING_BEFORE); break;
	case TX_BEFORE_NOTHING: answer_of_queue(s, &q->name); break;
	}
}

/* The asker showed the key of this process's entry. It may have learned the key just now, and have named the
 * transaction before this process began. So the session asks the process before for the id alone, without the key. */
static void tx_ask_all(struct session *s, struct smtp_tx_question *q)
{
	struct smtp_span reply = { 0 };
	const enum smtp_fate fate = tx_entry_ask(s->named.entry, s->named.number, &reply);
	s->named.is_own = fate == SMTP_FATE_NEVER;
	if (!s->named.is_own) {
		tx_say_fate(s, fate, reply);
		return;
	}
	q->entry[0] = '\0';
	tx_ask_before(s, q);
}

static enum smtp_own tx_refusal(const struct session *s, const struct smtp_command *c, struct smtp_tx_question *q)
{
	if (!s->named.entry)
		return SMTP_OWN_NOT_TRUSTED;
	if (smtp_tx_question_parse(c->argument, q) < 0)
		return SMTP_OWN_SYNTAX;
	if (strcmp(q->name.id, s->named.entry->id) != 0)
		return SMTP_OWN_NOT_TRUSTED;
	return s->tx.greeting && s->state == SESSION_TALKS ? SMTP_OWN_NONE : SMTP_OWN_BAD_SEQUENCE;
}

void session_tx_question(struct session *s, const struct smtp_client_event *e)
{
	struct smtp_tx_question q;
	const enum smtp_own own = tx_refusal(s, &e->command, &q);
	if (own) {
		session_answer_own(s, e, own);
		return;
	}
	smtp_tx_pass(&s->tx, e);
	s->named.number = q.name.number;
	s->named.is_own = 0;
	s->named.waiter = (struct tx_waiter){ .number = q.name.number, .on_fate = on_fate };
	if (tx_fence(s->named.entry, s, q.name.number)) {
		tx_entry_wait(s->named.entry, &s->named.waiter);
		tx_ask(s, SESSION_TX_ASKING);
	} else if (strcmp(q.entry, s->named.entry->key) != 0) {
		tx_ask_before(s, &q);
	} else {
		tx_ask_all(s, &q);
	}
}

/* Questions of the process that has replaced this one, about transactions that were named here. Their sessions are
 * here, so the fence is, too. */

struct remote_asker {
	LIST_ENTRY(remote_asker) next;
	struct sender_home *home;
	struct tx_entry *entry; /* NULL: the process before this one is asked */
	struct tx_waiter waiter;
	uint32_t ticket;
	const struct remote_channel *channel;
};

static void answer_remote(const struct remote_channel *c, uint32_t ticket, enum smtp_fate fate, struct smtp_span reply)
{
	const struct tx_message m = { .kind = TX_MESSAGE_ANSWER, .ticket = ticket, .fate = fate, .reply = reply };
	uint8_t out[TX_MESSAGE_MAX];
	c->send(c->ctx, out, tx_message_write(&m, out));
}

static void forget_remote(struct remote_asker *a)
{
	LIST_REMOVE(a, next);
	if (a->entry)
		tx_ledger_leave(a->home->ledger, a->entry);
	free(a);
}

static void on_remote_fate(struct tx_waiter *w, enum smtp_fate fate, struct smtp_span reply)
{
	struct remote_asker *a = container_of(w, struct remote_asker, waiter);
	answer_remote(a->channel, a->ticket, fate, reply);
	forget_remote(a);
}

/* It waits for @e, which it takes over; NULL: an earlier process may know it. */
static void ask_for_remote(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m,
	struct tx_entry *e, const struct smtp_tx_question *q)
{
	struct remote_asker *a = calloc(1, sizeof *a);
	struct smtp_span reply = { 0 };
	enum smtp_fate fate = SMTP_FATE_UNKNOWN;
	if (!a) {
		if (e)
			tx_ledger_leave(home->ledger, e);
		answer_remote(c, m->ticket, fate, reply);
		return;
	}
	*a = (struct remote_asker){ .home = home,
		.entry = e,
		.waiter = { .number = m->number, .on_fate = on_remote_fate },
		.ticket = m->ticket,
		.channel = c };
	LIST_INSERT_HEAD(&home->askers, a, next);
	if (e)
		tx_entry_wait(e, &a->waiter);
	else if (tx_before_ask(home->before, q, &a->waiter, &fate, &reply) != TX_BEFORE_ASKED)
		on_remote_fate(&a->waiter, fate, reply);
}

void session_tx_ask_remote(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m)
{
	struct smtp_tx_question q = { .name.number = m->number };
	struct smtp_span reply = { 0 };
	struct tx_entry *e;
	if (smtp_span_copy(m->id, q.name.id, sizeof q.name.id) < 0 ||
		smtp_span_copy(m->key, q.entry, sizeof q.entry) < 0)
		return;
	e = tx_ledger_find(home->ledger, q.name.id) ? tx_ledger_enter(home->ledger, q.name.id) : NULL;
	if (e && tx_fence(e, NULL, m->number)) {
		ask_for_remote(home, c, m, e, &q);
		return;
	}
	/* A question without a key is for the id alone: then an earlier process may know what this one does not. */
	if (e && (q.entry[0] ? strcmp(e->key, q.entry) == 0 : tx_entry_ask(e, m->number, &reply) != SMTP_FATE_NEVER)) {
		const enum smtp_fate fate = tx_entry_ask(e, m->number, &reply);
		answer_remote(c, m->ticket, fate, reply);
	} else {
		ask_for_remote(home, c, m, NULL, &q);
	}
	if (e)
		tx_ledger_leave(home->ledger, e);
}

void session_tx_forget_remote(struct sender_home *home)
{
	struct remote_asker *a;
	while ((a = LIST_FIRST(&home->askers))) {
		tx_waiter_cancel(&a->waiter);
		forget_remote(a);
	}
}
