/* sink_commands.h: the commands in a session of smtp-sink, and the functions that they share with the connection's
 * part (sink_session.c).
 */
#pragma once

#include "bench/mail/sink_session.h"
#include "smtp/reply_write.h"

/* A command came. */
void sink_session_on_line(struct sink_session *s, const struct smtp_line *line);

/* The last byte of DATA, or of a chunk, came. */
void sink_session_end_mail(struct sink_session *s);
void sink_session_end_chunk(struct sink_session *s);

/* The complete mail is taken or refused. */
void sink_session_decide(struct sink_session *s);

/* Of sink_session.c. */
void sink_session_move(struct sink_session *s, enum sink_state to);
void sink_session_count(struct sink_session *s, enum sink_count what);
void sink_session_expect_something(struct sink_session *s);

/* Read input again, if nothing else holds it back. */
void sink_session_go_on(struct sink_session *s);

/* Sends the usual reply of a step, or another one if the rules say so; then does @then, unless that reply is a
 * refusal. Returns the first digit of the reply; 0: the connection was dropped. */
unsigned sink_session_say(
	struct sink_session *s, enum sink_step step, const char *text, size_t len, enum sink_then then);
unsigned sink_session_say_own(struct sink_session *s, enum sink_step step, enum smtp_own own, enum sink_then then);
void sink_session_refuse(struct sink_session *s, enum sink_step step, enum smtp_own own);
