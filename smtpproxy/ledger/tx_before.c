/* tx_before.c: questions that are under way are in a list; entries that were given are in a ledger of their own. */
#include "smtpproxy/ledger/tx_before.h"

#include <stdlib.h>
#include <string.h>

#include "smtpproxy/ledger/tx_message.h"

struct tx_before {
	struct tx_ledger *given;
	void (*send)(void *ctx, const uint8_t *data, size_t len); /* NULL: there is no channel */
	void *ctx;
	uint32_t tickets;
	struct tx_waiters waiters;
};

struct tx_before *tx_before_create(uint64_t ids_max)
{
	struct tx_before *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->given = tx_ledger_create(ids_max);
	if (b->given)
		return b;
	free(b);
	return NULL;
}

void tx_before_destroy(struct tx_before *b)
{
	if (!b)
		return;
	tx_ledger_destroy(b->given);
	free(b);
}

void tx_before_open(struct tx_before *b, void (*send)(void *ctx, const uint8_t *data, size_t len), void *ctx)
{
	b->send = send;
	b->ctx = ctx;
}

static void tx_waiter_tell(struct tx_waiter *w, enum smtp_fate fate, struct smtp_span reply)
{
	LIST_REMOVE(w, next);
	w->on_fate(w, fate, reply);
}

void tx_before_close(struct tx_before *b)
{
	struct tx_waiter *w;
	b->send = NULL;
	while ((w = LIST_FIRST(&b->waiters)))
		tx_waiter_tell(w, SMTP_FATE_UNKNOWN, (struct smtp_span){ 0 });
}

/* Reading */

static void on_tx_before_answer(struct tx_before *b, const struct tx_message *m)
{
	struct tx_waiter *w;
	LIST_FOREACH(w, &b->waiters, next)
	{
		if (w->ticket == m->ticket) {
			tx_waiter_tell(w, m->fate, m->reply);
			return;
		}
	}
}

/* A later one of the same id takes the place of an earlier one, whose key then counts as forgotten. */
static void on_entry(struct tx_before *b, const struct tx_message *m)
{
	char id[SMTP_TX_ID_MAX + 1];
	struct tx_entry *e = smtp_span_copy(m->id, id, sizeof id) < 0 ? NULL : tx_ledger_enter(b->given, id);
	if (!e)
		return;
	if (smtp_span_copy(m->key, e->key, sizeof e->key) < 0)
		e->key[0] = '\0';
	memset(e->decisions, 0, sizeof e->decisions);
	e->next_decision = 0;
	e->newest = m->newest;
	e->forgotten = 0;
	for (unsigned i = 0; i < m->decisions; i++)
		tx_entry_decide(e, m->decided[i].number, m->decided[i].reply);
	e->forgotten = m->forgotten;
	tx_ledger_leave(b->given, e);
}

int tx_before_read(struct tx_before *b, const uint8_t *data, size_t len)
{
	struct tx_message m;
	size_t used = 0;
	int r;
	while ((r = tx_message_read(data + used, len - used, &m)) > 0) {
		used += (size_t)r;
		if (m.kind == TX_MESSAGE_ANSWER)
			on_tx_before_answer(b, &m);
		else if (m.kind == TX_MESSAGE_ENTRY)
			on_entry(b, &m);
	}
	return r < 0 ? r : (int)used;
}

/* Asking */

enum tx_before_answer tx_before_ask(struct tx_before *b, const struct smtp_tx_question *q, struct tx_waiter *w,
	enum smtp_fate *fate, struct smtp_span *reply)
{
	uint8_t out[TX_MESSAGE_MAX];
	struct tx_entry *e = tx_ledger_find(b->given, q->name.id);
	struct tx_message m = { .kind = TX_MESSAGE_QUESTION, .number = q->name.number };
	if (e && (q->entry[0] == '\0' || strcmp(e->key, q->entry) == 0)) {
		*fate = tx_entry_ask(e, q->name.number, reply);
		return TX_BEFORE_KNOWN;
	}
	if (!b->send)
		return TX_BEFORE_NOTHING;
	m.ticket = w->ticket = ++b->tickets;
	m.id = smtp_span_of(q->name.id);
	m.key = smtp_span_of(q->entry);
	LIST_INSERT_HEAD(&b->waiters, w, next);
	b->send(b->ctx, out, tx_message_write(&m, out));
	return TX_BEFORE_ASKED;
}

/* Giving */

struct giving {
	void (*send)(void *ctx, const uint8_t *data, size_t len);
	void *ctx;
};

/* The oldest decision first, so that it is the first to be overwritten. */
static void on_tx_before_found(void *ctx, const struct tx_entry *e)
{
	const struct giving *g = ctx;
	uint8_t out[TX_MESSAGE_MAX];
	struct tx_message m = { .kind = TX_MESSAGE_ENTRY, .newest = e->newest, .forgotten = e->forgotten };
	m.id = smtp_span_of(e->id);
	m.key = smtp_span_of(e->key);
	for (unsigned i = 0; i < TX_LEDGER_DECISIONS; i++) {
		const struct tx_decided *d = &e->decisions[(e->next_decision + i) % TX_LEDGER_DECISIONS];
		if (d->number == 0)
			continue;
		m.decided[m.decisions].number = d->number;
		m.decided[m.decisions++].reply = smtp_span_of(d->reply);
	}
	g->send(g->ctx, out, tx_message_write(&m, out));
}

void tx_before_give(const struct tx_before *b, const struct tx_ledger *own,
	void (*send)(void *ctx, const uint8_t *data, size_t len), void *ctx)
{
	struct giving g = { send, ctx };
	tx_ledger_each(b->given, on_tx_before_found, &g);
	tx_ledger_each(own, on_tx_before_found, &g);
}
