/* fuzz_http_judge.c: the answer of a hook that judges by HTTP, and the envelope that it was asked about: the first byte
 * of the input says where one ends and the other begins. The question is one request, whatever senders said. There is
 * one verdict, the same however the answer is cut, and its reply is one SMTP reply of the right class. This file has
 * the functions of filter.c and of the stream, so neither is here.
 */
#include <jansson.h>
#include <string.h>

#include "smtpproxy/hooks/call.h"
#include "tests/fuzz/must.h"

enum outcome { NO_OUTCOME, ACCEPTED, REFUSED, DEFERRED, FAILED };

const struct smtp_span call_reply_rejects = { "550 no\r\n", 8 }, call_reply_defers = { "451 no\r\n", 8 };

static enum outcome outcome;
static char said[FILTER_REPLY_MAX];
static size_t said_len;

static void end(struct call *c, enum outcome now, enum call_state state)
{
	MUST(c->state == CALL_ASKED && outcome == NO_OUTCOME);
	outcome = now;
	c->state = state;
}

void call_accepts(struct call *c)
{
	end(c, ACCEPTED, CALL_OVER);
}

void call_fails(struct call *c, const char *cause)
{
	end(c, FAILED, CALL_LOST);
}

/* Lines "550-text" and a last one "550 text", each with CRLF, and no CR or LF within. */
static void must_be_one_reply(struct smtp_span reply)
{
	const char *line = reply.at, *behind = reply.at + reply.len;
	int is_last = 0;

	MUST(reply.len > 0 && reply.len <= FILTER_REPLY_MAX);
	while (line < behind) {
		const char *end_of_line = memchr(line, '\r', (size_t)(behind - line));
		MUST(!is_last && end_of_line && end_of_line + 1 < behind && end_of_line[1] == '\n');
		MUST(end_of_line - line >= 3 && memcmp(line, reply.at, 3) == 0);
		MUST(!memchr(line, '\n', (size_t)(end_of_line - line)));
		is_last = end_of_line - line == 3 || line[3] != '-';
		line = end_of_line + 2;
	}
	MUST(is_last);
}

void call_refuses(struct call *c, struct smtp_span reply)
{
	must_be_one_reply(reply);
	MUST(reply.at[0] == '4' || reply.at[0] == '5');
	end(c, reply.at[0] == '5' ? REFUSED : DEFERRED, CALL_RESTS);
	memcpy(said, reply.at, reply.len);
	said_len = reply.len;
}

/* The question */
int stream_write(struct stream *s, const void *data, size_t len)
{
	static const char head[] =
		"POST /judge HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ";
	const char *request = data, *length = request + sizeof head - 1, *content = memmem(data, len, "\r\n\r\n", 4);

	MUST(len > sizeof head && memcmp(request, head, sizeof head - 1) == 0 && content);
	content += 4;
	MUST(strtoul(length, NULL, 10) == len - (size_t)(content - request));
	json_t *envelope = json_loadb(content, len - (size_t)(content - request), 0, NULL);
	MUST(json_object_size(envelope) == 6);
	json_decref(envelope);
	return 0;
}

static enum outcome judge(struct call *c, const uint8_t *answer, size_t len, size_t piece)
{
	outcome = NO_OUTCOME;
	c->state = CALL_ASKED;
	c->u.http.len = 0;
	http_judge_kind.ask(c);
	for (size_t at = 0; at < len; at += piece) {
		const size_t n = len - at < piece ? len - at : piece;
		MUST(http_judge_kind.take(c, answer + at, n) == n);
	}
	if (c->state == CALL_ASKED)
		http_judge_kind.ended(c);
	MUST(outcome != NO_OUTCOME);
	return outcome;
}

static void both_ways(struct filter *f, const uint8_t *answer, size_t len)
{
	char whole[FILTER_REPLY_MAX];
	struct call *c = &f->calls[0];

	said_len = 0;
	const enum outcome at_once = judge(c, answer, len, len + 1);
	const size_t whole_len = said_len;
	memcpy(whole, said, said_len);
	said_len = 0;
	MUST(judge(c, answer, len, 1) == at_once && said_len == whole_len && memcmp(whole, said, said_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static char name[] = "a", path[] = "/judge", destination[] = "192.0.2.25:25";
	const struct smtpproxy_hook conf = { .name = name, .path = path };
	struct hook hook = { .conf = &conf };
	const size_t cut = len > 0 ? 1 + in[0] * (len - 1) / 255 : 0;
	char *sender = calloc(1, cut + 1);
	struct filter *f = calloc(1, sizeof *f + sizeof f->calls[0]);

	MUST(f && sender);
	if (cut > 1)
		memcpy(sender, in + 1, cut - 1);
	f->sender = sender;
	snprintf(f->hello, sizeof f->hello, "%s", sender);
	f->destination = destination;
	f->recipients = json_array();
	f->calls[0] = (struct call){ .filter = f, .hook = &hook, .kind = &http_judge_kind };
	both_ways(f, in + cut, len - cut);
	json_decref(f->recipients);
	free(f);
	free(sender);
	return 0;
}
