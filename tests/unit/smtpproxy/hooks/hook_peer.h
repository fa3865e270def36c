/* hook_peer.h: the hooks of transactions, and the test as the programs that judge them: each listens on a socket of its
 * own. */
#pragma once

#include <stdbool.h>

#include "smtpproxy/hooks/filter.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"

#define PEERS 2u

/* Check's: a worker, and hooks "a" and "b", which are milters, have all the time that they want and defer mail when
 * they fail. */
void hooks_setup(void);
void hooks_teardown(void);

extern struct hooks hooks;
extern struct smtpproxy_counters counters;
extern struct smtpproxy_hook hook_confs[PEERS]; /* may be changed before filter_begin() */
extern struct filter_facts filter_facts;        /* the same */
extern struct filter *filter;

/* The next transaction, with the hooks of these names: "ab", "b". The one before ends, and its connections close. */
void filter_begin(const char *names);
void filter_end(void);

/* Ask, and turn the loop until the verdict: its reply is in `reply`. */
extern char reply[FILTER_REPLY_MAX + 1];
extern unsigned verdicts;
void asks(enum filter_step step, const char *address, const char *params);
enum filter_verdict verdict(void);

/* The message of asks(FILTER_MESSAGE): as DATA carries it. Freed by the next one, and at the end. */
extern struct message message;
void message_is(const char *text, size_t len);
/* All of its pieces, one behind the other. */
const char *message_text(void);

/* When the time of a hook of this transaction is over, by the clock of the loop; 0: it has no limit. */
uint64_t limit_ms(unsigned call);
/* It is due now. */
void is_late(unsigned call);

/* Hook "a" is peer 0. */
void peer_accept(unsigned n);
bool peer_is_connected(unsigned n); /* somebody waits to be accepted, or is */
int peer_fd(unsigned n);
void peer_close(unsigned n);
