/* session_store.h: deliver: queue: what a receiver would do is done here. It is a part of its own because only then a
 * session has a struct store.
 */
#pragma once

#include "smtp/transaction.h"
#include "smtpproxy/envelope/envelope.h"

struct session;
struct message;

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
