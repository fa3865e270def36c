/* session_life.h: what every part may do to a session, and only session.c does: change its state, speak in its name,
 * end it. It is a part of its own because the drawing of the states (session.h) is kept in one place.
 */
#pragma once

#include "smtpproxy/sender/session.h"

#define SESSION_PENDING_MAX 65536u /* bytes that one side has not taken; above this, the other side is not read */

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
/* The sender is gone. */
void session_lose_sender(struct session *s);
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
