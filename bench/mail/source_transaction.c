/* source_transaction.c: a mail is a row of steps: MAIL, each RCPT, then DATA and the end, or each chunk. @said and
 * @answered count them. One by one, a step is said when the one before was answered; in a group, all up to DATA are
 * (RFC 2920). */
#include "bench/mail/source_transaction.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/socket/address.h"
#include "proto/proxy_header.h"

#define PENDING_MAX (64u * 1024u) /* of the content, in the stream's output */

enum step { STEP_MAIL, STEP_RCPT, STEP_DATA, STEP_END, STEP_CHUNK, STEP_NONE };

static bool uses_chunks(const struct source_session *s)
{
	return s->host->options->content == SOURCE_CHUNKS && (s->offers_mask & SOURCE_OFFER_CHUNKING);
}

static bool uses_groups(const struct source_session *s)
{
	return s->host->options->grouping == SOURCE_PIPELINING && (s->offers_mask & SOURCE_OFFER_PIPELINING);
}

/* The length of what follows the RCPTs: head and body, with stuffed dots and the end for DATA. */
static uint64_t source_content_len(const struct source_session *s)
{
	return s->head_len + (uses_chunks(s) ? s->host->mail->body_len : s->host->mail->wire_len);
}

static uint64_t chunk_len(const struct source_session *s)
{
	uint64_t wanted = s->host->options->chunk_len;
	return wanted > 0 ? wanted : source_content_len(s);
}

static uint64_t chunk_count(const struct source_session *s)
{
	return (source_content_len(s) + chunk_len(s) - 1) / chunk_len(s);
}

static uint64_t step_count(const struct source_session *s)
{
	return 1 + s->host->options->recipients + (uses_chunks(s) ? chunk_count(s) : 2);
}

static enum step step_at(const struct source_session *s, uint64_t at)
{
	uint64_t behind = 1 + s->host->options->recipients;
	if (at < behind)
		return at == 0 ? STEP_MAIL : STEP_RCPT;
	if (at >= step_count(s))
		return STEP_NONE;
	if (uses_chunks(s))
		return STEP_CHUNK;
	return at == behind ? STEP_DATA : STEP_END;
}

const char *source_transaction_place(const struct source_session *s)
{
	static const char *const names[] = { "MAIL", "RCPT", "DATA", "end of data", "BDAT", "mail" };
	return names[step_at(s, s->answered)];
}

bool source_transaction_is_undecided(const struct source_session *s)
{
	return s->state == SOURCE_IN_MAIL && !s->refused && s->said == step_count(s) && s->answered + 1 == s->said &&
	       s->content_at == source_content_len(s);
}

/* Saying */

static void say_mail(struct source_session *s)
{
	char line[SOURCE_COMMAND_MAX], size[40] = "";
	bool declares_8bit = s->host->mail->has_8bit && s->offers_mask & SOURCE_OFFER_8BITMIME; /* RFC 6152 2 */
	if (s->offers_mask & SOURCE_OFFER_SIZE) /* RFC 1870 6.1: without stuffed dots and the end */
		snprintf(size, sizeof size, " SIZE=%" PRIu64, (uint64_t)s->head_len + s->host->mail->body_len);
	int len = snprintf(line, sizeof line, "MAIL FROM:<%.300s>%s%s\r\n", s->host->mail->from, size,
		declares_8bit ? " BODY=8BITMIME" : "");
	source_session_say(s, line, (size_t)len);
}

static void say_rcpt(struct source_session *s)
{
	char line[SOURCE_COMMAND_MAX];
	size_t len = source_mail_rcpt(s->host->mail, s->host->options, s->mail_number, s->said - 1, line);
	source_session_say(s, line, len < sizeof line ? len : sizeof line - 1);
}

static void say_chunk(struct source_session *s)
{
	char line[64];
	uint64_t left = source_content_len(s) - s->content_at, len = left < chunk_len(s) ? left : chunk_len(s);
	int line_len = snprintf(line, sizeof line, "BDAT %" PRIu64 "%s\r\n", len, len == left ? " LAST" : "");
	source_session_say(s, line, (size_t)line_len);
}

static int source_content_write(struct source_session *s, const char *data, size_t len)
{
	if (smtp_wire_write(&s->wire, data, len) < 0) {
		source_session_fail(s, SOURCE_LOST, source_transaction_place(s), "cannot write");
		return -1;
	}
	s->content_at += len;
	return 0;
}

static int write_head(struct source_session *s, uint64_t end)
{
	char head[SOURCE_HEAD_MAX];
	source_mail_head(s->host->mail, s->host->options, s->mail_number, s->made_us, head);
	return source_content_write(s, head + s->content_at, (end < s->head_len ? end : s->head_len) - s->content_at);
}

/* The step that is said now ends at this offset of the content. */
static uint64_t content_end(const struct source_session *s)
{
	uint64_t len = source_content_len(s), first = 1 + s->host->options->recipients;
	if (!uses_chunks(s))
		return len;
	uint64_t end = (s->said - first) * chunk_len(s);
	return end < len ? end : len;
}

/* As much as the output has room for. */
static void write_content(struct source_session *s)
{
	const char *body = uses_chunks(s) ? s->host->mail->body : s->host->mail->wire;
	uint64_t end = content_end(s);
	while (s->state == SOURCE_IN_MAIL && s->content_at < end && stream_pending(&s->wire.stream) < PENDING_MAX) {
		if (s->content_at < s->head_len) {
			if (write_head(s, end) < 0)
				return;
			continue;
		}
		uint64_t from = s->content_at - s->head_len, len = end - s->content_at;
		if (source_content_write(s, body + from, len < PENDING_MAX ? (size_t)len : PENDING_MAX) < 0)
			return;
	}
}

/* Content was promised and is not all written. */
static bool is_writing(const struct source_session *s)
{
	enum step step = s->said > 0 ? step_at(s, s->said - 1) : STEP_NONE;
	return (step == STEP_END || step == STEP_CHUNK) && s->content_at < content_end(s);
}

static void say_step(struct source_session *s)
{
	enum step step = step_at(s, s->said);
	s->said++;
	switch (step) {
	case STEP_MAIL: say_mail(s); break;
	case STEP_RCPT: say_rcpt(s); break;
	case STEP_DATA: source_session_say(s, "DATA\r\n", 6); break;
	case STEP_CHUNK:
		say_chunk(s);
		write_content(s);
		break;
	case STEP_END: write_content(s); break;
	case STEP_NONE: break;
	}
}

/* A group goes up to DATA, whose reply decides; behind a chunk that is not written out nothing can follow. */
static bool may_say(const struct source_session *s)
{
	enum step step = step_at(s, s->said);
	if (s->state != SOURCE_IN_MAIL || step == STEP_NONE)
		return false;
	if (s->said == s->answered)
		return true;
	return uses_groups(s) && step != STEP_END && !is_writing(s);
}

static void say_on(struct source_session *s)
{
	while (may_say(s))
		say_step(s);
}

void source_transaction_write_on(struct source_session *s)
{
	if (!is_writing(s))
		return;
	write_content(s);
	say_on(s);
}

void source_transaction_begin(struct source_session *s)
{
	char head[SOURCE_HEAD_MAX];
	struct timespec now;
	source_session_move(s, SOURCE_IN_MAIL);
	s->said = s->answered = s->accepted = s->refused = s->ends_due = 0;
	s->content_at = 0;
	clock_gettime(CLOCK_REALTIME, &now);
	s->made_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	s->head_len = (uint32_t)source_mail_head(s->host->mail, s->host->options, s->mail_number, s->made_us, head);
	s->step_ns = uv_hrtime();
	say_on(s);
}

/* Hearing */

static void end_taken(struct source_session *s)
{
	struct source_result *r = s->host->result;
	r->counts[SOURCE_SENT]++;
	r->counts[SOURCE_RECIPIENTS] += s->accepted;
	r->counts[SOURCE_BYTES] += s->head_len + s->host->mail->body_len;
	histogram_record(&r->phases[SOURCE_PHASE_MESSAGE], uv_hrtime() - s->intended_ns);
	s->has_mail = 0;
}

static void end_mail(struct source_session *s)
{
	bool taken = !s->refused;
	s->mails++;
	if (taken)
		end_taken(s);
	else
		source_session_fail_mail(s);
	if (s->state != SOURCE_IN_MAIL) /* given up */
		return;
	if (!taken) {
		source_session_reset(s);
		return;
	}
	source_session_rest(s);
}

/* RFC 2033 4.2: the reply that is read now is that of one recipient. */
static bool ends_each(const struct source_session *s)
{
	return s->host->options->greeting == SOURCE_LHLO && s->answered + 1 == step_count(s);
}

/* Reads one of these replies; 1: more are due. */
static bool more_ends(struct source_session *s)
{
	if (!ends_each(s))
		return false;
	if (s->ends_due == 0)
		s->ends_due = s->accepted;
	return s->ends_due > 0 && --s->ends_due > 0;
}

static void note_refusal(struct source_session *s, enum step step, unsigned code, const char *text)
{
	static const char *const names[] = { "MAIL", "RCPT", "DATA", "end of data", "BDAT", "mail" };
	source_session_count(s, code / 100 == 4 ? SOURCE_REFUSED_4 : SOURCE_REFUSED_5);
	tally_note(s->host->result->errors, SOURCE_ERRORS_MAX, names[step], text);
	if (ends_each(s) && s->accepted > 0)
		s->accepted--;
	s->refused |= ends_each(s) ? s->accepted == 0 : step != STEP_RCPT;
}

static void note_answer(struct source_session *s, enum step step, unsigned code, const char *text)
{
	static const enum source_phase phases[] = { SOURCE_PHASE_MAIL, SOURCE_PHASE_RCPT, SOURCE_PHASE_DATA,
		SOURCE_PHASE_END, SOURCE_PHASE_END };
	bool good = step == STEP_DATA ? code == 354 : code / 100 == 2;
	source_session_end_step(s, phases[step]);
	if (!good)
		note_refusal(s, step, code, text);
	else if (step == STEP_RCPT)
		s->accepted++;
}

/* True when the sink cannot take the mail any more, and has answered all commands, so the source says no more of them.
 * After a 354 the source still has to send the end of the content. */
static bool is_lost_cause(const struct source_session *s, enum step step)
{
	bool none_accepted = s->answered > s->host->options->recipients && s->accepted == 0;
	return s->answered == s->said && (s->refused || none_accepted) && step != STEP_END;
}

static void source_transaction_abandon(struct source_session *s, enum step step, unsigned code)
{
	s->refused = 1;
	if (step == STEP_DATA && code == 354) { /* in a group: no recipient, and content is expected all the same */
		s->said = s->answered + 1;
		s->content_at = source_content_len(s);
		source_session_say(s, ".\r\n", 3);
	} else {
		end_mail(s);
	}
}

void source_transaction_on_reply(struct source_session *s, unsigned code, const char *text)
{
	enum step step = step_at(s, s->answered);
	if (s->answered == s->said) {
		source_session_fail(s, SOURCE_MALFORMED, "mail", "a reply that nobody asked for");
		return;
	}
	const bool more = more_ends(s);
	note_answer(s, step, code, text);
	if (more)
		return;
	s->answered++;
	if (s->answered == step_count(s))
		end_mail(s);
	else if (is_lost_cause(s, step))
		source_transaction_abandon(s, step, code);
	else
		say_on(s);
}

/* The PROXY header in front of a connection */

static void fill_address(const struct sockaddr *a, uint8_t out[static 16], uint16_t *port)
{
	address_bytes(a, out);
	*port = address_port(a);
}

void source_session_write_proxy_header(struct source_session *s)
{
	const struct source_options *o = s->host->options;
	struct sockaddr_storage from, to;
	struct proxy_header h = { .version = (uint8_t)o->proxy_version, .command = PROXY_PROXIED };
	uint8_t out[PROXY_V1_MAX + 64];
	if (stream_local(&s->wire.stream, &from) < 0 || stream_peer(&s->wire.stream, &to) < 0)
		return;
	uint16_t port = address_port((struct sockaddr *)&from);
	if (source_ranges_get(&o->claimed, s->connections + s->number, &from))
		address_set_port((struct sockaddr *)&from, port);
	h.family = from.ss_family == AF_INET6 ? PROXY_TCP6 : PROXY_TCP4;
	fill_address((struct sockaddr *)&from, h.source, &h.source_port);
	if (to.ss_family == from.ss_family)
		fill_address((struct sockaddr *)&to, h.destination, &h.destination_port);
	ptrdiff_t len = proxy_header_write(&h, out, sizeof out);
	if (len > 0)
		stream_write(&s->wire.stream, out, (size_t)len);
}
