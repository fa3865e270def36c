/* tx_ledger.h: a server's memory of named transactions (doc/xcssltx.md): an entry for each id, in bounded memory. No
 * sockets, no clock.
 *
 * An entry is evicted only while no session has it. A later session with its id gets a new entry with another key,
 * and learns by that key that the memory is lost. An entry keeps only the newest decisions, and remembers up to
 * which number it has forgotten them.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "net/memory/table.h"
#include "smtp/tx_name.h"

#define TX_LEDGER_DECISIONS 4u
#define TX_LEDGER_REPLY_MAX 480u /* behind "250 decided ", it fits a line of 512 bytes */

/* A session's place in its entry. Embedded. */
struct tx_member {
	LIST_ENTRY(tx_member) in_entry;
};

/* Who waits for the fate of a transaction. Embedded. */
struct tx_waiter {
	LIST_ENTRY(tx_waiter) next;
	uint64_t number;
	uint32_t ticket; /* of a question to the process before (tx_before.h) */
	/* @reply for DECIDED. It waits no more. */
	void (*on_fate)(struct tx_waiter *w, enum smtp_fate fate, struct smtp_span reply);
};

LIST_HEAD(tx_waiters, tx_waiter);

struct tx_decided {
	uint64_t number; /* 0: none */
	char reply[TX_LEDGER_REPLY_MAX];
};

struct tx_entry {
	char id[SMTP_TX_ID_MAX + 1];
	char key[17];       /* 16 random hex digits */
	uint64_t newest;    /* highest number of a name or a question; no lower one is named again */
	uint64_t forgotten; /* the highest number whose decision was overwritten */
	unsigned next_decision, sessions_len;
	struct tx_decided decisions[TX_LEDGER_DECISIONS];
	LIST_HEAD(, tx_member) sessions; /* the sessions that have it; the caller's list */
	struct tx_waiters waiters;
	struct table_link link;
	TAILQ_ENTRY(tx_entry) in_idle; /* only while no session has it */
};

/* For at most so many ids. NULL: out of memory. */
struct tx_ledger *tx_ledger_create(uint64_t ids_max);
void tx_ledger_destroy(struct tx_ledger *l);

/* Change the limit. Entries above it are forgotten when the next one is made. */
void tx_ledger_set_max(struct tx_ledger *l, uint64_t ids_max);

/* The entry of @id, for one more session. NULL: out of memory, or sessions have all entries. */
struct tx_entry *tx_ledger_enter(struct tx_ledger *l, const char *id);

/* One session less. The entry stays until room is needed. */
void tx_ledger_leave(struct tx_ledger *l, struct tx_entry *e);

/* The entry of @id, which the caller does not keep; NULL: there is none. */
struct tx_entry *tx_ledger_find(const struct tx_ledger *l, const char *id);

void tx_ledger_each(const struct tx_ledger *l, void (*fn)(void *ctx, const struct tx_entry *e), void *ctx);

uint64_t tx_ledger_evicted(const struct tx_ledger *l);

/* A transaction gets its name. 0, or CSSL_E_RANGE: the number is not above all earlier names and questions. */
int tx_entry_begin(struct tx_entry *e, uint64_t number);

/* The reply to its end is @reply, without CRLF. It is cut after TX_LEDGER_REPLY_MAX bytes. */
void tx_entry_decide(struct tx_entry *e, uint64_t number, struct smtp_span reply);

/* How the transaction ended. The question is a fence: no number up to this one may begin any more. @reply, for
 * DECIDED, points into @e. If a transaction is still open, the caller has to abort it, or wait for it, before it
 * asks. */
enum smtp_fate tx_entry_ask(struct tx_entry *e, uint64_t number, struct smtp_span *reply);

/* @w waits for the transaction w->number, which is open. */
void tx_entry_wait(struct tx_entry *e, struct tx_waiter *w);
/* It is decided, or will never be: those who wait for it learn its fate. An on_fate may end other waits. */
void tx_entry_tell(struct tx_entry *e, uint64_t number);
/* @w does not want to know any more. */
void tx_waiter_cancel(struct tx_waiter *w);
