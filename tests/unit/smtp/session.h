/* session.h: a session for the follower as one text: "C: " and "S: " steps, said in pieces of a given size. What was
 * passed each way and the follower's judgement after each step are collected.
 */
#pragma once

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "smtp/transaction.h"

static inline const char *verb_name(enum smtp_verb verb)
{
	static const char *const names[SMTP_VERB_COUNT] = { [SMTP_VERB_UNKNOWN] = "?",
#define X(name, argument, grouping) [SMTP_VERB_##name] = #name,
		SMTP_VERBS(X)
#undef X
	};

	return names[verb];
}

struct session {
	struct smtp_tx t;
	char client_line[512], reply_line[512];
	struct smtp_ehlo ehlo;
	char trace[8192]; /* one word per event */
	size_t trace_len;
	char to_server[4096], to_client[4096];
	size_t to_server_len, to_client_len;
	enum smtp_own (*decide)(const struct smtp_client_event *event); /* NULL: every command is passed on */
	char waiting[4096]; /* client bytes that the follower did not take yet */
	size_t waiting_len;
};

static inline void session_begin(struct session *s, const struct smtp_tx_rules *rules, enum smtp_tx_start start)
{
	struct smtp_tx_memory memory = { s->client_line, s->reply_line, &s->ehlo };
	memset(s, 0, sizeof *s);
	smtp_ehlo_clear(&s->ehlo);
	smtp_tx_begin(&s->t, rules, &memory, start);
}

static inline void session_note(struct session *s, const char *word, const char *what)
{
	s->trace_len += (size_t)snprintf(
		s->trace + s->trace_len, sizeof s->trace - s->trace_len, "%s%s%s ", word, *what ? ":" : "", what);
}

static inline void session_decide(struct session *s, const struct smtp_client_event *e)
{
	enum smtp_own own = s->decide ? s->decide(e) : SMTP_OWN_NONE;
	session_note(s, own ? "refused" : "passed", verb_name(e->command.verb));
	if (own) {
		smtp_tx_answer(&s->t, e, own);
		return;
	}
	memcpy(s->to_server + s->to_server_len, e->wire.at, e->wire.len);
	s->to_server_len += e->wire.len;
	smtp_tx_pass(&s->t, e);
}

static inline void session_client_event(struct session *s, const struct smtp_client_event *e)
{
	static const char *const names[] = { "", "", "", "auth-line", "", "content-end", "flaw" };
	if (e->kind == SMTP_CLIENT_COMMAND) {
		session_decide(s, e);
		return;
	}
	if (*names[e->kind])
		session_note(s, names[e->kind], e->discard ? "discarded" : "");
	if (e->discard)
		return;
	memcpy(s->to_server + s->to_server_len, e->wire.at, e->wire.len);
	s->to_server_len += e->wire.len;
}

/* Gives client bytes. session_server() offers those again that have to wait. */
static inline void session_client(struct session *s, const char *in, size_t len)
{
	struct smtp_client_event e;
	memcpy(s->waiting + s->waiting_len, in, len);
	s->waiting_len += len;
	size_t at = 0, taken;
	do {
		smtp_tx_client(&s->t, s->waiting + at, s->waiting_len - at, &taken, &e);
		at += taken;
		session_client_event(s, &e);
	} while (e.kind != SMTP_CLIENT_MORE && e.kind != SMTP_CLIENT_WAIT);
	s->waiting_len -= at;
	memmove(s->waiting, s->waiting + at, s->waiting_len);
}

static inline const char *turn_name(unsigned turn)
{
	static const char *const names[] = {
		[SMTP_TURN_BANNER - SMTP_VERB_COUNT] = "banner",
		[SMTP_TURN_DOT - SMTP_VERB_COUNT] = "end of data",
		[SMTP_TURN_BDAT_LAST - SMTP_VERB_COUNT] = "BDAT LAST",
		[SMTP_TURN_AUTH_LINE - SMTP_VERB_COUNT] = "AUTH line",
		[SMTP_TURN_NOTHING - SMTP_VERB_COUNT] = "nothing",
	};

	if (turn < SMTP_VERB_COUNT)
		return verb_name((enum smtp_verb)turn);
	return turn < SMTP_TURN_COUNT ? names[turn - SMTP_VERB_COUNT] : "?";
}

/* Gives server bytes. Returns 0 when they broke the protocol. */
static inline int session_server(struct session *s, const char *in, size_t len)
{
	struct smtp_server_event e;
	size_t taken;
	for (size_t at = 0;; at += taken) {
		smtp_tx_server(&s->t, in + at, len - at, &taken, &e);
		if (e.kind == SMTP_SERVER_MORE)
			break;
		if (e.kind == SMTP_SERVER_BAD) {
			session_note(s, "bad", "");
			return 0;
		}
		if (e.kind == SMTP_SERVER_OWN) {
			session_note(s, "own", smtp_own_reply(e.own)->name);
			continue;
		}
		memcpy(s->to_client + s->to_client_len, e.line.wire.at, e.line.wire.len);
		s->to_client_len += e.line.wire.len;
		if (e.line.is_last)
			session_note(s, "answered", turn_name(e.turn));
	}
	session_client(s, "", 0);
	return 1;
}

/* Lines of @script that begin with "C: " or "S: " go to their side with CRLF, in pieces of @step bytes; "?" notes the
 * checkpoint and the state. */
static inline void session_say(struct session *s, const char *script, size_t step)
{
	static const char *const states[] = { "none", "mail", "data", "content", "dot" };
	char line[512];
	while (*script) {
		size_t len = strcspn(script, "\n");
		memcpy(line, script, len);
		memcpy(line + len, "\r\n", 2);
		if (line[0] == '?')
			session_note(s, smtp_tx_is_checkpoint(&s->t) ? "checkpoint" : "busy", states[s->t.state]);
		for (size_t at = 3; line[0] != '?' && at < len + 2; at += step) {
			size_t piece = len + 2 - at < step ? len + 2 - at : step;
			if (line[0] == 'C')
				session_client(s, line + at, piece);
			else
				session_server(s, line + at, piece);
		}
		script += len + (script[len] == '\n');
	}
}
