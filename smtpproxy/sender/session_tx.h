/* session_tx.h: a session's part in XCSSLTX (doc/xcssltx.md): names, decisions and questions. It is a part of its own
 * because a name outlives its session: all sessions of one id are in its entry's list.
 */
#pragma once

#include "proto/proxy_header.h"
#include "smtp/transaction.h"
#include "smtpproxy/ledger/tx_message.h"

struct session;
struct sender_home;

/*
 *   NONE --MAIL with a name--> OPEN --end of content--> UNDECIDED --reply--> NONE, or OPEN if it stays open
 *    |                           '--aborted--> NONE        |
 *    |                                                     '--asked--> FENCED --reply--> the session ends
 *    |--asks about one that is undecided--> ASKING --reply--> NONE
 *    '--asks about one of the process before--> ASKING_BEFORE --its answer--> NONE
 */
enum session_tx_state {
	SESSION_TX_NONE,
	SESSION_TX_OPEN,
	SESSION_TX_UNDECIDED,
	SESSION_TX_FENCED,
	SESSION_TX_ASKING,
	SESSION_TX_ASKING_BEFORE,
};

struct session_tx {
	struct tx_entry *entry; /* NULL: it came without an id */
	struct tx_member member;
	struct tx_waiter waiter; /* ASKING, ASKING_BEFORE */
	uint64_t number;         /* of the transaction, or of the one in its question */
	uint8_t state;           /* enum session_tx_state */
	uint8_t is_own;          /* the key in its question is that of @entry */
};

/* A PROXY header came. An id of at most 32 bytes gets its entry. */
void session_tx_enter(struct session *s, const struct proxy_header *h);
/* The session ends: sessions that wait for its decision learn that there will be none. */
void session_tx_leave(struct session *s);
/* The value of XCSSLTX in MAIL. NONE: the transaction has its name. */
enum smtp_own session_tx_name(struct session *s, struct smtp_span value);
/* The transaction ended before its content was complete. */
void session_tx_forget(struct session *s);
/* All of the message has come. */
void session_tx_wait(struct session *s);
/* The reply to the end left the transaction open. Negative: the session must end, because another session asked
 * about it. */
int session_tx_reopen(struct session *s);
/* The reply to the end; @text includes its code. Sessions that wait for it get it, once it is remembered. */
void session_tx_decide(struct session *s, struct smtp_span text);
/* The command XCSSLTX. */
void session_tx_question(struct session *s, const struct smtp_client_event *e);

/* --- for smtpproxy/process --- */

/* The way of the answers to the process that has replaced this one. */
struct remote_channel {
	void (*send)(void *ctx, const uint8_t *data, size_t len);
	void *ctx;
};

/* Its QUESTION about a transaction that was named here. It is answered now or later, or session_tx_forget_remote()
 * comes before. @c lives as long. */
void session_tx_ask_remote(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m);
/* The channel ends. */
void session_tx_forget_remote(struct sender_home *home);
