/* session_pace.h: how long a sender may keep what others wait for: its connection to the receiver, and the memory of
 * its message. It is a part of its own because only the deadline of a session asks it (session.c, within a lease).
 */
#pragma once

struct session;

/* The sender has sent something, which pays for its time so far. Sets the deadline for session_look_at_pace(). */
void session_expect_pace(struct session *s);
/* Ends a sender that was silent for too long, or that is too slow while others wait. */
void session_look_at_pace(struct session *s);
