/* session_tx_remote.c: questions of the process that has replaced this one, about transactions that were named here.
 * Their sessions are here, so the fence is, too. */
#include "smtpproxy/sender/session_tx_remote.h"

#include <stdlib.h>
#include <string.h>

#include "net/container_of.h"

struct remote_asker {
	LIST_ENTRY(remote_asker) next;
	struct sender_home *home;
	struct tx_entry *entry;  /* NULL: the process before this one is asked */
	struct tx_waiter waiter; /* then */
	uint64_t number;
	uint32_t ticket;
	const struct remote_channel *channel;
};

static void answer(const struct remote_channel *c, uint32_t ticket, enum smtp_fate fate, struct smtp_span reply)
{
	const struct tx_message m = { .kind = TX_MESSAGE_ANSWER, .ticket = ticket, .fate = fate, .reply = reply };
	uint8_t out[TX_MESSAGE_MAX];
	c->send(c->ctx, out, tx_message_write(&m, out));
}

static void forget(struct remote_asker *a)
{
	LIST_REMOVE(a, next);
	free(a);
}

static void answer_of_entry(const struct remote_channel *c, uint32_t ticket, struct tx_entry *e, uint64_t number)
{
	struct smtp_span reply = { 0 };
	const enum smtp_fate fate = tx_entry_ask(e, number, &reply);
	answer(c, ticket, fate, reply);
}

void session_tx_tell_remote(struct sender_home *home, struct tx_entry *e, uint64_t number)
{
	struct remote_asker *a, *next;
	for (a = LIST_FIRST(&home->askers); a; a = next) {
		next = LIST_NEXT(a, next);
		if (a->entry != e || a->number != number)
			continue;
		answer_of_entry(a->channel, a->ticket, e, number);
		tx_ledger_leave(home->ledger, e);
		forget(a);
	}
}

static void on_fate(struct tx_waiter *w, enum smtp_fate fate, struct smtp_span reply)
{
	struct remote_asker *a = container_of(w, struct remote_asker, waiter);
	answer(a->channel, a->ticket, fate, reply);
	forget(a);
}

/* NULL: out of memory; it was answered. */
static struct remote_asker *keep(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m)
{
	struct remote_asker *a = calloc(1, sizeof *a);
	if (!a) {
		answer(c, m->ticket, SMTP_FATE_UNKNOWN, (struct smtp_span){ 0 });
		return NULL;
	}
	a->home = home;
	a->number = m->number;
	a->ticket = m->ticket;
	a->channel = c;
	a->waiter.on_fate = on_fate;
	LIST_INSERT_HEAD(&home->askers, a, next);
	return a;
}

/* An earlier process may know it. */
static void ask_before(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m,
	const struct smtp_tx_question *q)
{
	struct remote_asker *a = keep(home, c, m);
	struct smtp_span reply = { 0 };
	enum smtp_fate fate = SMTP_FATE_UNKNOWN;
	if (!a)
		return;
	if (tx_before_ask(home->before, q, &a->waiter, &fate, &reply) == TX_BEFORE_ASKED)
		return;
	answer(c, m->ticket, fate, reply);
	forget(a);
}

/* A question without a key is for the id alone: then an earlier process may know what this one does not. */
static int knows(struct tx_entry *e, const struct smtp_tx_question *q)
{
	struct smtp_span reply;
	if (q->entry[0] == '\0')
		return tx_entry_ask(e, q->name.number, &reply) != SMTP_FATE_NEVER;
	return strcmp(e->key, q->entry) == 0;
}

void session_tx_ask_remote(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m)
{
	struct smtp_tx_question q = { .name.number = m->number };
	struct tx_entry *e;
	struct remote_asker *a;
	if (smtp_span_copy(m->id, q.name.id, sizeof q.name.id) < 0 ||
		smtp_span_copy(m->key, q.entry, sizeof q.entry) < 0)
		return;
	e = tx_ledger_find(home->ledger, q.name.id) ? tx_ledger_enter(home->ledger, q.name.id) : NULL;
	if (e && session_tx_fence(e, NULL, m->number)) {
		a = keep(home, c, m);
		if (a)
			a->entry = e;
		else
			tx_ledger_leave(home->ledger, e);
		return;
	}
	if (e && knows(e, &q))
		answer_of_entry(c, m->ticket, e, m->number);
	else
		ask_before(home, c, m, &q);
	if (e)
		tx_ledger_leave(home->ledger, e);
}

void session_tx_forget_remote(struct sender_home *home)
{
	struct remote_asker *a;
	while ((a = LIST_FIRST(&home->askers))) {
		if (a->entry)
			tx_ledger_leave(home->ledger, a->entry);
		else
			tx_before_cancel(&a->waiter);
		forget(a);
	}
}
