/* session_record.h: the facts about a transaction for the event log. It is a part of its own because mail goes on
 * without it: no function here decides anything.
 */
#pragma once

#include "net/socket/address.h"
#include "proto/proxy_header.h"
#include "smtp/transaction.h"
#include "smtpproxy/events/record.h"

struct session;

/* Embedded. Others read @sender_tls and @empty. */
struct session_record {
	struct record open; /* of the transaction */
	uint16_t empty;     /* transactions whose content had no end, since the last one that had */
	struct {
		char version[12], cipher[48]; /* empty: in clear, or not told */
	} sender_tls;
};

/* The client's address, or the peer's. */
struct sockaddr_storage session_client(const struct session *s);
void session_client_text(const struct session *s, char out[static ADDRESS_TEXT_MAX]);

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
