/* tx_ledger.c: a hash table of entries. Entries without a session are also in a list, in the order in which they
 * lost it. */
#include "smtpproxy/ledger/tx_ledger.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define BUCKETS 4096u

LIST_HEAD(bucket, tx_entry);
TAILQ_HEAD(idle, tx_entry);

struct tx_ledger {
	uint64_t ids, ids_max, evicted;
	struct idle idle;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct bucket buckets[BUCKETS];
};

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
	struct tx_entry *e;
	if (!l)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		while ((e = LIST_FIRST(&l->buckets[i]))) {
			LIST_REMOVE(e, in_bucket);
			free(e);
		}
	}
	free(l);
}

void tx_ledger_set_max(struct tx_ledger *l, uint64_t ids_max)
{
	l->ids_max = ids_max;
}

static unsigned bucket_of(const struct tx_ledger *l, const char *id)
{
	uint8_t hash[crypto_shorthash_BYTES];
	crypto_shorthash(hash, (const uint8_t *)id, strlen(id), l->hash_key);
	return (hash[0] | hash[1] << 8) % BUCKETS;
}

/* Make room for one more entry. */
static int evict(struct tx_ledger *l)
{
	struct tx_entry *e = TAILQ_FIRST(&l->idle);
	if (!e)
		return CSSL_E_FULL;
	TAILQ_REMOVE(&l->idle, e, in_idle);
	LIST_REMOVE(e, in_bucket);
	free(e);
	l->ids--;
	l->evicted++;
	return 0;
}

static struct tx_entry *add(struct tx_ledger *l, const char *id)
{
	uint8_t key[8];
	while (l->ids >= l->ids_max) {
		if (evict(l) < 0)
			return NULL;
	}
	struct tx_entry *e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	smtp_span_copy(smtp_span_of(id), e->id, sizeof e->id);
	randombytes_buf(key, sizeof key);
	sodium_bin2hex(e->key, sizeof e->key, key, sizeof key);
	LIST_INIT(&e->sessions);
	LIST_INSERT_HEAD(&l->buckets[bucket_of(l, id)], e, in_bucket);
	l->ids++;
	return e;
}

struct tx_entry *tx_ledger_find(const struct tx_ledger *l, const char *id)
{
	struct tx_entry *e;
	LIST_FOREACH(e, &l->buckets[bucket_of(l, id)], in_bucket)
	{
		if (strcmp(e->id, id) == 0)
			return e;
	}
	return NULL;
}

void tx_ledger_each(const struct tx_ledger *l, void (*fn)(void *ctx, const struct tx_entry *e), void *ctx)
{
	const struct tx_entry *e;
	for (unsigned i = 0; i < BUCKETS; i++) {
		LIST_FOREACH(e, &l->buckets[i], in_bucket)
		fn(ctx, e);
	}
}

struct tx_entry *tx_ledger_enter(struct tx_ledger *l, const char *id)
{
	struct tx_entry *e = tx_ledger_find(l, id);
	if (e && e->sessions_len == 0)
		TAILQ_REMOVE(&l->idle, e, in_idle);
	if (!e)
		e = add(l, id);
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
