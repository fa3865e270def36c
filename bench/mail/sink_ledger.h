/* sink_ledger.h: what smtp-sink remembers of named transactions (doc/xcssltx.md): an entry for each id, in bounded
 * memory. No sockets, no clock.
 *
 * An entry is evicted only while no session has it. Whoever comes with its id later gets a new entry with another key,
 * and knows by that key that the memory is lost. Within an entry only the newest decisions are kept; it remembers up to
 * which number it forgot.
 */
#ifndef CSSL_BENCH_MAIL_SINK_LEDGER_H
#define CSSL_BENCH_MAIL_SINK_LEDGER_H

#include <stdint.h>
#include <sys/queue.h>

#include "bench/mail/sink_rules.h"
#include "smtp/tx_fate.h"

#define SINK_LEDGER_DECISIONS 4u

struct sink_session;

struct sink_decided {
	uint64_t number; /* 0: none */
	char reply[SINK_REPLY_MAX];
};

struct sink_entry {
	char id[SMTP_TX_ID_MAX + 1];
	char key[17];       /* 16 random hex digits */
	uint64_t newest;    /* number that was named or asked about; no lower one is named again */
	uint64_t forgotten; /* the highest number whose decision was overwritten */
	unsigned next_decision, sessions_len;
	struct sink_decided decisions[SINK_LEDGER_DECISIONS];
	LIST_HEAD(, sink_session) sessions; /* the caller's list of those that have it */
	LIST_ENTRY(sink_entry) in_bucket;
	TAILQ_ENTRY(sink_entry) in_idle; /* only while no session has it */
};

struct sink_ledger;

/* For at most so many ids. NULL: out of memory. */
struct sink_ledger *sink_ledger_create(uint64_t ids_max);
void sink_ledger_destroy(struct sink_ledger *l);

/* The entry of @id for one more session. NULL: there is no memory, or sessions have all entries. */
struct sink_entry *sink_ledger_enter(struct sink_ledger *l, const char *id);

/* One session less. The entry stays until room is needed. */
void sink_ledger_leave(struct sink_ledger *l, struct sink_entry *e);

uint64_t sink_ledger_evicted(const struct sink_ledger *l);

/* A transaction gets its name. 0, or CSSL_E_RANGE: the number is not above all that were named or asked about. */
int sink_entry_begin(struct sink_entry *e, uint64_t number);

/* Its end is answered by @reply, without CRLF; what is longer than SINK_REPLY_MAX is cut. */
void sink_entry_decide(struct sink_entry *e, uint64_t number, struct smtp_span reply);

/* What became of it. The question is a fence: no number up to this one begins any more. @reply, for DECIDED, points
 * into @e. A transaction that is open is the caller's business: it is aborted, or waited for, before this is asked. */
enum smtp_fate sink_entry_ask(struct sink_entry *e, uint64_t number, struct smtp_span *reply);

#endif
