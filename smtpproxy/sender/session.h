/* session.h: one sender's connection. It answers everything but transactions itself; for each transaction it gets a
 * connection to the receiver in its turn, and passes bytes between the two.
 *
 *   HEADER -> TALKS --MAIL, or the first EHLO--> WAITS --> TALKS      (offers came, or the wait failed)
 *               ^                                  |
 *               |                                  v
 *               '------------ over ------------- LEASES --end of content--> DECIDES --reply--> LEASES
 *                                                                             |
 *                                                     the sender is lost      v
 *                                                                           ALONE
 *   WAITS --MAIL, over a connection that others have used--> TRIES --reply--> LEASES
 *     '<----------- 421, or the connection is lost -----------'
 *   TALKS, LEASES --a command that hooks judge--> FILTERS --verdict--> TALKS, LEASES
 *   LEASES --RCPT for which the receiver is asked--> PROBES --its answer--> LEASES
 *   TALKS --XCSSLTX about a message that is not decided--> ASKS --decided--> TALKS
 *   LEAVES: our last words are said, the sender's FIN is to come. OVER: the connection is closing.
 */
#pragma once

#include <sys/queue.h>

#include "smtp/transaction.h"
#include "smtpproxy/delivery/probe.h"
#include "smtpproxy/hooks/hooks.h"
#include "smtpproxy/outward/outward.h"
#include "smtpproxy/policy/hops.h"
#include "smtpproxy/sender/body_room.h"
#include "smtpproxy/sender/held_command.h"
#include "smtpproxy/sender/pace.h"
#include "smtpproxy/sender/session_record.h"
#include "smtpproxy/sender/session_tx.h"

struct admission;
struct destination_rules;
struct event_log;

#define SESSION_LINE_MAX  1024u /* a command with the parameters of all extensions */
#define SESSION_REPLY_MAX 1024u /* a line of a receiver's reply; RFC 5321 4.5.3.1.5 has 512 */

/* Shared by all sessions. */
struct sender_home {
	struct worker *worker;
	const struct conf_smtpproxy *conf;
	struct smtpproxy_counters *counters;
	struct outward *outward;
	struct queue *queue;   /* NULL: deliver is relay */
	struct probes *probes; /* the same */
	struct body_room room; /* of messages that the queue has not stored yet */
	struct body_room held; /* of messages that are kept for hooks */
	struct destination_rules *rules;
	struct admission *admission;
	struct tx_ledger *ledger;
	struct tx_before *before;         /* of the process that this one has replaced */
	LIST_HEAD(, remote_asker) askers; /* of the process that has replaced this one */
	struct hooks hooks;
	struct event_log *events;
	LIST_HEAD(, session) sessions;
	unsigned count;
	uint64_t numbered; /* sessions so far */
	struct {
		uint64_t second;
		uint32_t told; /* in it: transactions without content */
	} empty;
	void (*on_gone)(struct sender_home *home); /* a session was freed */
};

enum session_state {
	SESSION_HEADER,
	SESSION_TALKS,
	SESSION_WAITS,
	SESSION_TRIES,
	SESSION_LEASES,
	SESSION_DECIDES,
	SESSION_ASKS,
	SESSION_FILTERS,
	SESSION_PROBES,
	SESSION_ALONE,
	SESSION_LEAVES,
	SESSION_OVER,
	SESSION_STATES
};

struct session {
	struct stream stream; /* first: callbacks compute the session's address from it */
	struct sender_home *home;
	const struct smtpproxy_listener *listener;
	LIST_ENTRY(session) next;
	struct deadline deadline; /* for the sender, or for its turn */
	struct turn_end again;    /* after the sender's FIN: bytes that it had left can be used */
	struct want want;
	struct destination *destination;
	struct onward *onward;     /* leased, or NULL */
	uint32_t told;             /* SMTP_CAP_BIT()s that EHLO's reply offered */
	struct store *store;       /* deliver: queue: the message that comes, or NULL */
	struct filtered *filtered; /* a transaction that hooks judge, or NULL */
	struct probe_wait probe;   /* PROBES */
	struct held_command held;  /* WAITS, TRIES, FILTERS, PROBES */
	struct sockaddr_storage peer;
	struct client_address counted; /* as admission counted it */
	struct client_address source;
	uint16_t source_port, errors;
	uint8_t state;    /* enum session_state */
	uint8_t drains;   /* whether it ends between transactions */
	uint8_t sends_as; /* enum recipient_sender */
	uint8_t ended;    /* whether the sender has sent FIN; Exim does that, and still wants its replies */
	struct session_tx named;
	struct pace pace; /* LEASES: of the transaction, toward others who wait */
	const char *said; /* what a reply of ours quotes: of the destination; "": nothing */
	uint64_t waits_till_ms;
	uint64_t heard_ms; /* since then it is the sender that is expected to speak */
	struct hops hops;  /* of the message */
	struct session_record record;
	uint64_t number; /* of the session */
	struct smtp_tx tx;
	char client_line[SESSION_LINE_MAX], reply_line[SESSION_REPLY_MAX];
};

/* Takes over @fd of @peer, which came to @listener. The session closes itself, and is freed. */
void session_open(struct sender_home *home, const struct smtpproxy_listener *listener, int fd,
	const struct sockaddr_storage *peer);

/* The process stops: send 421 as soon as no transaction is open. */
void session_drain(struct session *s);

/* The process cannot wait longer: the sender gets 421, unless all of its message is with the receiver. */
void session_cut_open(struct session *s);
/* Nor for the receiver's reply: the sender gets 421, and the message may come twice. */
void session_cut_decided(struct session *s);

/* End it at once, as if the sender were lost. */
void session_cut(struct session *s);

const char *session_state_name(enum session_state state);
