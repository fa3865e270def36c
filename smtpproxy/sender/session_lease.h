/* session_lease.h: a transaction on a connection to the receiver: bytes, replies, and its end. It is a part of its own
 * because only here a reply of the receiver becomes one to the sender.
 */
#pragma once

#include "smtp/transaction.h"

struct session;
struct onward;

/* Its turn came: the kept MAIL goes to the receiver. Otherwise the connection has gone to the next session, and the
 * kept command is to be answered with what is returned. */
enum smtp_own session_lease(struct session *s, struct onward *o);
void session_pass(struct session *s, struct smtp_span wire);
/* Sets the time limit for the receiver's next step. */
void session_expect_receiver(struct session *s);
/* The sender is gone, or has broken the protocol: the transaction is aborted. */
void session_abort(struct session *s);
/* A reply may have ended the transaction. */
void session_check_end(struct session *s);
/* Is this the last line of a reply that ends the transaction? */
bool session_is_decision(const struct session *s, const struct smtp_server_event *e);
/* Bytes that answer the first commands in the queue: the receiver's, or ours in their place. */
void session_answer(struct session *s, const char *in, size_t len);

/* A reply of ours decides a message of which nothing has gone to the receiver. */
void session_decide(struct session *s, struct smtp_span reply);

/* The lease is over, because the receiver broke the protocol, or gave up. */
void session_lose_receiver(struct session *s, enum smtp_own why);
