/* session_filter.h: hooks judge the commands of a transaction, and then its message. It is a part of its own because
 * only a listener with hooks has a struct filtered.
 */
#pragma once

#include "smtp/transaction.h"

struct session;

/* Hooks judge the mail of its listener. */
bool session_is_filtered(const struct session *s);
/* MAIL, RCPT and DATA: the hooks judge it first. False: there is nothing to ask, or they have agreed: it goes on. */
bool session_filter(struct session *s, const struct smtp_client_event *e);
/* The receiver took the recipient that was passed last. */
void session_filter_note_recipient(struct session *s);
/* The transaction is over, or comes to nothing. */
void session_filter_drop(struct session *s);

/* --- a message that is kept for hooks. With deliver: queue it is stored when they have agreed --- */

/* DATA, behind their judgement. True: it was answered here; false: it goes on to the receiver. */
bool session_held_begin(struct session *s, const struct smtp_client_event *e);
/* The reply to a message that cannot be kept, as of body_share_add(). */
const char *session_flaw_of(int r);
/* They have all of it, and it waits for their verdict. */
bool session_is_judged(const struct session *s);
/* Bytes that it has of the room for kept messages. */
uint64_t session_held_taken(const struct session *s);
/* Content. False: it is not kept. */
bool session_held_take(struct session *s, const struct smtp_client_event *e);
/* The receiver took output. */
void session_held_go_on(struct session *s);
/* The receiver sent something. Returns how much of it was read here. */
size_t session_held_read(struct session *s, const char *in, size_t len);
/* Nothing of it, or not all, has gone to the receiver. */
bool session_is_unsent(const struct session *s);
