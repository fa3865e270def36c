/* source_transaction.h: the mail's part of a session of smtp-source; and what it shares with the connection's part
 * (source_session.c).
 */
#pragma once

#include "bench/mail/source_session.h"

enum source_offer {
	SOURCE_OFFER_PIPELINING = 1,
	SOURCE_OFFER_CHUNKING = 2,
	SOURCE_OFFER_STARTTLS = 4,
	SOURCE_OFFER_SIZE = 8,
	SOURCE_OFFER_8BITMIME = 16,
};

/* READY, with a mail: it begins. */
void source_transaction_begin(struct source_session *s);

/* A reply to one of its commands. */
void source_transaction_on_reply(struct source_session *s, unsigned code, const char *text);

/* The kernel took bytes: there is room for more of the content. */
void source_transaction_write_on(struct source_session *s);

/* True when all of the mail was sent and its reply has not come: the server may have taken it (RFC 1047). */
bool source_transaction_is_undecided(const struct source_session *s);

/* The command whose reply comes next. */
const char *source_transaction_place(const struct source_session *s);

/* Writes the header that the options want, right behind the connect. */
void source_session_write_proxy_header(struct source_session *s);

/* Of source_session.c. */
void source_session_move(struct source_session *s, enum source_state to);
void source_session_count(struct source_session *s, enum source_count what);
void source_session_end_step(struct source_session *s, enum source_phase phase);
void source_session_say(struct source_session *s, const char *line, size_t len);
void source_session_reset(struct source_session *s);
void source_session_rest(struct source_session *s);
void source_session_fail(struct source_session *s, enum source_count what, const char *where, const char *why);
void source_session_fail_mail(struct source_session *s);
