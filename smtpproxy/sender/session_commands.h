/* session_commands.h: the sender's commands. It is a part of its own because which command may come when is one table.
 * session.c gives it the sender's bytes; parts that let a command wait bring it back here.
 */
#pragma once

#include "smtp/transaction.h"

struct session;

/* Takes one piece of the sender's bytes. Returns the bytes used; 0: they have to wait. */
size_t session_take(struct session *s, const char *in, size_t len);
/* Send the banner; commands may come. */
void session_greet(struct session *s);
/* TRIES: the kept MAIL waits for another connection, with the time that it had left. */
void session_wait_again(struct session *s);
/* A command of a transaction: recipients are judged, and hooks asked, before it goes on. */
void session_transact(struct session *s, const struct smtp_client_event *e);
/* A command that hooks have agreed to goes on. */
void session_resume(struct session *s, const struct smtp_client_event *e);
extern const struct want_ops session_want_ops;

/* A command was refused for good. True: there were too many of them, and the session has ended. */
bool session_errs(struct session *s);
/* Answers a command in its turn; too many 5xx end the session. */
void session_answer_own(struct session *s, const struct smtp_client_event *e, enum smtp_own own);
