/* model_server.h: a mail server of the simplest kind, to compare a follower with: it knows for certain whether a
 * transaction is open. What it refuses is thrown with dice. Takes bytes, gives replies.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "smtp/command.h"

enum model_mode { MODEL_COMMANDS, MODEL_DATA, MODEL_CHUNK, MODEL_AUTH };

struct model_server {
	enum model_mode mode;
	uint64_t dice;
	char in[8192], out[8192]; /* bytes that it has not read yet; bytes that it has not sent yet */
	size_t in_len, out_len;
	int open;                 /* 1: a transaction is open */
	int chunked;              /* 1: it has taken or refused a chunk, so DATA comes too late (RFC 3030 2) */
	unsigned rcpts, messages; /* @messages: those with a 250 */
	uint64_t chunk_left;
	int chunk_is_last;
};

static inline unsigned model_throw(struct model_server *m, unsigned sides)
{
	m->dice = m->dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(m->dice >> 33) % sides;
}

static inline void model_say(struct model_server *m, const char *reply)
{
	m->out_len += (size_t)sprintf(m->out + m->out_len, "%s\r\n", reply);
}

/* Accepts three times of four. */
static inline int model_decide(struct model_server *m, const char *yes, const char *no)
{
	int accepts = model_throw(m, 4) > 0;
	model_say(m, accepts ? yes : no);
	return accepts;
}

static inline void model_end_message(struct model_server *m)
{
	m->mode = MODEL_COMMANDS;
	m->open = 0;
	m->messages += (unsigned)model_decide(m, "250 taken", "554 not taken");
}

static inline void model_end_chunk(struct model_server *m)
{
	m->mode = MODEL_COMMANDS;
	if (!m->open || m->rcpts == 0)
		model_say(m, "503 no transaction");
	else if (m->chunk_is_last)
		model_end_message(m);
	else
		m->chunked = 1 + model_decide(m, "250 ok", "452 later");
}

static inline void model_begin_mail(struct model_server *m)
{
	if (m->open && model_throw(m, 3) > 0) {
		model_say(m, "503 nested");
		return;
	}
	int accepted = model_decide(m, "250 sender", "451 later");
	m->rcpts = accepted ? 0 : m->rcpts;
	m->open |= accepted;
	m->chunked = accepted ? 0 : m->chunked;
}

static inline void model_on_command(struct model_server *m, const struct smtp_command *c)
{
	switch (c->verb) {
	case SMTP_VERB_MAIL: model_begin_mail(m); break;
	case SMTP_VERB_RCPT:
		if (m->open)
			m->rcpts += (unsigned)model_decide(m, "250 recipient", "550 nobody");
		else
			model_say(m, "503 no transaction");
		break;
	case SMTP_VERB_DATA:
		if (m->open && m->chunked)
			model_say(m, "503 chunks were sent");
		else if (m->open && m->rcpts > 0 && model_decide(m, "354 go", "451 later"))
			m->mode = MODEL_DATA;
		else if (!m->open || m->rcpts == 0)
			model_say(m, "554 no valid recipients");
		break;
	case SMTP_VERB_BDAT:
		m->mode = MODEL_CHUNK;
		m->chunk_left = c->chunk_len;
		m->chunk_is_last = c->chunk_is_last;
		break;
	case SMTP_VERB_RSET:
	case SMTP_VERB_EHLO:
		if (model_decide(m, "250-ok\r\n250 DSN", "501 no"))
			m->open = 0;
		break;
	case SMTP_VERB_AUTH:
		if (model_decide(m, "334 go", "535 no"))
			m->mode = MODEL_AUTH;
		break;
	case SMTP_VERB_NOOP: model_say(m, "250 ok"); break;
	default: model_say(m, "500 what");
	}
}

static inline void model_drop(struct model_server *m, size_t len)
{
	m->in_len -= len;
	memmove(m->in, m->in + len, m->in_len);
}

/* Makes one step. Returns 0 when it needs more bytes. */
static inline int model_step(struct model_server *m)
{
	struct smtp_command c;
	if (m->mode == MODEL_CHUNK) {
		size_t taken = m->in_len < m->chunk_left ? m->in_len : (size_t)m->chunk_left;
		m->chunk_left -= taken;
		model_drop(m, taken);
		if (m->chunk_left > 0)
			return 0;
		model_end_chunk(m);
		return 1;
	}
	const char *end = memmem(m->in, m->in_len, "\r\n", 2);
	if (!end)
		return 0;
	struct smtp_span line = { m->in, (size_t)(end - m->in) };
	int is_dot = line.len == 1 && line.at[0] == '.';
	enum smtp_own refusal = smtp_command_parse(line, SMTP_PARSE_LENIENT, &c);
	if (m->mode == MODEL_DATA && is_dot) {
		model_end_message(m);
	} else if (m->mode == MODEL_AUTH) {
		m->mode = MODEL_COMMANDS;
		if (model_decide(m, "334 more", "535 no"))
			m->mode = MODEL_AUTH;
	} else if (m->mode == MODEL_COMMANDS && refusal) {
		model_say(m, "501 syntax");
	} else if (m->mode == MODEL_COMMANDS) {
		model_on_command(m, &c);
	}
	model_drop(m, line.len + 2);
	return 1;
}

static inline void model_feed(struct model_server *m, const char *in, size_t len)
{
	memcpy(m->in + m->in_len, in, len);
	m->in_len += len;
	while (model_step(m))
		;
}
