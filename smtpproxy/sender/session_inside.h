/* session_inside.h: shared by the files of a session: session.c (the connection), session_commands.c (the sender's
 * commands), session_pace.c (its speed), session_lease.c (the receiver's side), session_filter.c
 * (hooks), session_probe.c (recipients), session_tx.c (XCSSLTX), session_record.c (the event log). */
#ifndef CSSL_SMTPPROXY_SESSION_INSIDE_H
#define CSSL_SMTPPROXY_SESSION_INSIDE_H

#include "net/address.h"
#include "proto/proxy_header.h"
#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/hooks/filter.h"
#include "smtpproxy/sender/session.h"

#define SESSION_EMPTY_MAX   100u   /* transactions without content, one after the other: then the session ends */
#define SESSION_PENDING_MAX 65536u /* bytes that one side has not taken; above this, the other side is not read */

/* session.c */

/* Changes the state as drawn in session.h, and checks that. */
void session_move(struct session *s, enum session_state to);
/* Write to the sender; does nothing when it is lost. */
void session_write(struct session *s, const char *text, size_t len);
/* Send a reply of our own in its turn. A 421 or 221 ends the session. */
void session_say_own(struct session *s, enum smtp_own own);
/* Send every reply of our own that is due. */
void session_say_due(struct session *s);
/* Send our last reply, outside of the order of replies; then LEAVES. In the middle of a reply: session_reset(). */
void session_end(struct session *s, enum smtp_own why);
/* The sender has a part of a reply, so none of ours can follow. It has no reply then, and comes again. */
void session_reset(struct session *s);
/* A command was answered: at a stop, a session without a transaction ends. */
void session_end_drained(struct session *s);
/* Send FIN, and wait for the sender's. */
void session_leave(struct session *s);
/* ALONE: the message is decided. */
void session_finish_alone(struct session *s);
/* The sender's bytes can be used again. */
void session_go_on(struct session *s);
/* The sender has to send something within a time limit. */
void session_expect_sender(struct session *s);

/* session_pace.c: within a lease */

/* The sender has sent something, which pays for its time so far. */
void session_settle_pace(struct session *s);
/* Sets the deadline for session_look_at_pace(). */
void session_expect_pace(struct session *s);
/* Ends a sender that was silent for too long, or that is too slow while others wait. */
void session_look_at_pace(struct session *s);

/* session_commands.c */

/* Takes one piece of the sender's bytes. Returns the bytes used; 0: they have to wait. */
size_t session_take(struct session *s, const char *in, size_t len);
/* Send the banner; commands may come. */
void session_greet(struct session *s);
/* Keep a command, as it was read. 0 or -1: out of memory. */
int session_hold(struct session *s, const struct smtp_client_event *e);
struct smtp_client_event session_held_event(const struct session *s);
void session_release_held(struct session *s);
/* TRIES: the kept MAIL waits for another connection, with the time that it had left. */
void session_wait_again(struct session *s);
/* A command of a transaction: recipients are judged, and hooks asked, before it goes on. */
void session_transact(struct session *s, const struct smtp_client_event *e);
/* A command that hooks have agreed to goes on. */
void session_resume(struct session *s, const struct smtp_client_event *e);
extern const struct want_ops session_want_ops;

/* session_offers.c */

/* Send the receiver's extensions, in place of its reply to EHLO. */
void session_say_offers(struct session *s);
/* The same, as the reply to the EHLO that was just passed, as if a server had sent it. */
void session_answer_offers(struct session *s);
/* Compares the extensions that @c uses with those of the leased connection, or of the queue. NONE: pass @c on. The
 * connection has them, or the sender uses one that we never offered, and the receiver may refuse it. Otherwise: our own
 * reply, which asks the sender to come again; also if the sender's TLS would end here, and the file forbids that. */
enum smtp_own session_lack(const struct session *s, const struct smtp_command *c);

/* Bytes of the largest message that is taken here; UINT64_MAX: the receiver judges alone. */
uint64_t session_size_max(const struct session *s);

/* A command was refused for good. 1: there were too many of them, and the session has ended. */
bool session_errs(struct session *s);
/* Answers a command in its turn; too many 5xx end the session. */
void session_answer_own(struct session *s, const struct smtp_client_event *e, enum smtp_own own);

/* session_lease.c */

void session_lease(struct session *s, struct onward *o);
/* The kept MAIL goes to the receiver. */
void session_begin_lease(struct session *s);
/* No byte was passed on: the connection goes to the next session. */
void session_return_lease(struct session *s);
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

/* session_filter.c: the hooks' judgement of commands */

/* 1: hooks judge the mail of its listener. */
bool session_is_filtered(const struct session *s);
/* MAIL, RCPT and DATA: the hooks judge it first. 0: there is nothing to ask, or they have agreed: it goes on. */
bool session_filter(struct session *s, const struct smtp_client_event *e);
/* The receiver took the recipient that was passed last. */
void session_filter_note_recipient(struct session *s);
/* The transaction is over, or comes to nothing. */
void session_filter_drop(struct session *s);

/* session_filter.c: a message that is kept for hooks. With deliver: queue it is stored when they have agreed. */

/* DATA, behind their judgement. 1: it was answered here; 0: it goes on to the receiver. */
bool session_held_begin(struct session *s, const struct smtp_client_event *e);
bool session_is_held(const struct session *s);
/* The reply to a message that cannot be kept, as of body_share_add(). */
const char *session_flaw_of(int r);
/* They have all of it, and it waits for their verdict. */
bool session_is_judged(const struct session *s);
/* Bytes that it has of the room for kept messages. */
uint64_t session_held_taken(const struct session *s);
void session_held_take(struct session *s, const struct smtp_client_event *e);
/* The receiver took output. */
void session_held_go_on(struct session *s);
/* The receiver sent something. Returns how much of it was read here. */
size_t session_held_read(struct session *s, const char *in, size_t len);
/* Nothing of it, or not all, has gone to the receiver. */
bool session_is_unsent(const struct session *s);

/* session_store.c: deliver: queue */

void session_store_offers(const struct session *s, struct smtp_ehlo *set);
void session_store_mail(struct session *s, const struct smtp_client_event *e);
/* A recipient as the queue takes it. */
struct store_recipient {
	struct smtp_span mailbox; /* in the command, or in @own */
	char line[LINE_NAME_MAX + 1], own[SMTP_DOMAIN_MAX + sizeof "postmaster@"];
};
/* RCPT: NONE, or why it is none. */
enum smtp_own session_store_recipient(
	const struct session *s, const struct smtp_command *c, struct store_recipient *to);
/* RCPT, DATA, BDAT and RSET of its transaction. */
void session_store_command(struct session *s, const struct smtp_client_event *e);
void session_store_content(struct session *s, const struct smtp_client_event *e);
/* DECIDES or ALONE: hooks have judged the message, and may have changed it. It is stored as it is now, and copied. */
void session_store_judged(struct session *s, const struct message *judged);
/* The reply to the end of the message, which decides it. */
void session_store_decide(struct session *s, struct smtp_span reply);
/* The message comes to nothing; nothing if there is none. */
void session_store_drop(struct session *s);
/* Bytes that the message has of the room for messages that come in. */
uint64_t session_store_taken(const struct session *s);
/* The backups have not answered in time: the message is taken back, and the sender is asked to come again. */
void session_store_expire(struct session *s);

/* session_probe.c: recipients of strangers, with deliver: queue */

/* RCPT of a stranger. 1: it was refused, or waits for the answer of its receiver, and comes to session_transact() again
 * then. 0: it goes on. */
int session_judge_recipient(struct session *s, const struct smtp_client_event *e);

/* session_tx.c */

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

/* The client's address, or the peer's. */
struct sockaddr_storage session_client(const struct session *s);
void session_client_text(const struct session *s, char out[static ADDRESS_TEXT_MAX]);

/* session_record.c */

/* A PROXY header came; it tells of the sender's TLS. */
void session_record_header(struct session *s, const struct proxy_header *h);

/* Each of these does nothing without an open record, but the first two. */

/* A failure before MAIL: a record without a sender. */
void session_record_greeting(struct session *s);
void session_record_begin(struct session *s, struct smtp_span from);
void session_record_turn(struct session *s);
void session_record_recipient(struct session *s, const struct smtp_command *c);
/* The last line of a receiver's reply. */
void session_record_reply(struct session *s, const struct smtp_server_event *e);
void session_record_end(struct session *s, enum record_outcome outcome);
/* No receiver had the mail; @why is what the sender was told. */
void session_record_not_served(struct session *s, enum smtp_own why);

#endif
