/* tx_ledger.c: a table of entries. Entries without a session are also in a list, in the order in which they
 * lost it. */
#include "smtpproxy/ledger/tx_ledger.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "proto/error.h"

struct tx_ledger {
	uint64_t ids_max, evicted;
	TAILQ_HEAD(, tx_entry) idle;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct table entries;
};

static struct tx_entry *tx_entry_of_link(struct table_link *link)
{
	return link ? container_of(link, struct tx_entry, link) : NULL;
}

struct tx_ledger *tx_ledger_create(uint64_t ids_max)
{
	struct tx_ledger *l = calloc(1, sizeof *l);
	if (!l)
		return NULL;
	l->ids_max = ids_max;
	TAILQ_INIT(&l->idle);
	crypto_shorthash_keygen(l->hash_key);
	return l;
}

void tx_ledger_destroy(struct tx_ledger *l)
{
	if (!l)
		return;
	for (struct table_link *link = table_walk(&l->entries, NULL), *next; link; link = next) {
		next = table_walk(&l->entries, link);
		free(tx_entry_of_link(link));
	}
	table_clear(&l->entries);
	free(l);
}

void tx_ledger_set_max(struct tx_ledger *l, uint64_t ids_max)
{
	l->ids_max = ids_max;
}

static uint64_t tx_ledger_hash(const struct tx_ledger *l, const char *id)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t number;
	crypto_shorthash(hash, (const uint8_t *)id, strlen(id), l->hash_key);
	memcpy(&number, hash, sizeof number);
	return number;
}

static struct tx_entry *tx_ledger_add(struct tx_ledger *l, const char *id)
{
	uint8_t key[8];
	struct tx_entry *e;
	while (l->entries.count >= l->ids_max) { /* room for one more */
		e = TAILQ_FIRST(&l->idle);
		if (!e)
			return NULL;
		TAILQ_REMOVE(&l->idle, e, in_idle);
		table_remove(&l->entries, &e->link);
		free(e);
		l->evicted++;
	}
	e = calloc(1, sizeof *e);
	if (!e || table_add(&l->entries, &e->link, tx_ledger_hash(l, id))) {
		free(e);
		return NULL;
	}
	smtp_span_copy(smtp_span_of(id), e->id, sizeof e->id);
	randombytes_buf(key, sizeof key);
	sodium_bin2hex(e->key, sizeof e->key, key, sizeof key);
	return e;
}

struct tx_entry *tx_ledger_find(const struct tx_ledger *l, const char *id)
{
	struct tx_entry *e = tx_entry_of_link(table_first(&l->entries, tx_ledger_hash(l, id)));
	while (e && strcmp(e->id, id) != 0)
		e = tx_entry_of_link(table_next(&e->link));
	return e;
}

void tx_ledger_each(const struct tx_ledger *l, void (*fn)(void *ctx, const struct tx_entry *e), void *ctx)
{
	for (struct table_link *link = NULL; (link = table_walk(&l->entries, link));)
		fn(ctx, tx_entry_of_link(link));
}

struct tx_entry *tx_ledger_enter(struct tx_ledger *l, const char *id)
{
	struct tx_entry *e = tx_ledger_find(l, id);
	if (e && e->sessions_len == 0)
		TAILQ_REMOVE(&l->idle, e, in_idle);
	if (!e)
		e = tx_ledger_add(l, id);
	if (e)
		e->sessions_len++;
	return e;
}

void tx_ledger_leave(struct tx_ledger *l, struct tx_entry *e)
{
	assert(e->sessions_len > 0);
	if (--e->sessions_len == 0)
		TAILQ_INSERT_TAIL(&l->idle, e, in_idle);
}

uint64_t tx_ledger_evicted(const struct tx_ledger *l)
{
	return l->evicted;
}

int tx_entry_begin(struct tx_entry *e, uint64_t number)
{
	if (number <= e->newest)
		return CSSL_E_RANGE;
	e->newest = number;
	return 0;
}

void tx_entry_decide(struct tx_entry *e, uint64_t number, struct smtp_span reply)
{
	struct tx_decided *d = &e->decisions[e->next_decision++ % TX_LEDGER_DECISIONS];
	if (d->number > e->forgotten)
		e->forgotten = d->number;
	if (reply.len >= sizeof d->reply)
		reply.len = sizeof d->reply - 1;
	d->number = number;
	smtp_span_copy(reply, d->reply, sizeof d->reply);
}

enum smtp_fate tx_entry_ask(struct tx_entry *e, uint64_t number, struct smtp_span *reply)
{
	if (number > e->newest)
		e->newest = number;
	for (unsigned i = 0; i < TX_LEDGER_DECISIONS; i++) {
		if (e->decisions[i].number == number) {
			*reply = smtp_span_of(e->decisions[i].reply);
			return SMTP_FATE_DECIDED;
		}
	}
	return number <= e->forgotten ? SMTP_FATE_UNKNOWN : SMTP_FATE_NEVER;
}

void tx_entry_wait(struct tx_entry *e, struct tx_waiter *w)
{
	LIST_INSERT_HEAD(&e->waiters, w, next);
}

void tx_entry_tell(struct tx_entry *e, uint64_t number)
{
	struct tx_waiter *w = LIST_FIRST(&e->waiters);
	while (w) {
		struct smtp_span reply = { 0 };
		if (w->number != number) {
			w = LIST_NEXT(w, next);
			continue;
		}
		LIST_REMOVE(w, next);
		const enum smtp_fate fate = tx_entry_ask(e, number, &reply);
		w->on_fate(w, fate, reply);
		w = LIST_FIRST(&e->waiters); /* others may have left meanwhile */
	}
}

void tx_waiter_cancel(struct tx_waiter *w)
{
	LIST_REMOVE(w, next);
}
