/* fuzz_smtp_transaction.c: a session of both sides. The input is lines; one that begins with '<' is the server's, any
 * other the client's. However their bytes are cut, the same goes through and the follower comes to the same state; and
 * the follower says checkpoint only when a plain count of commands and replies agrees. */
#include <string.h>

#include "smtp/transaction.h"
#include "tests/fuzz/smtp_cut.h"

struct run {
	struct smtp_tx t;
	char client_line[128], reply_line[128];
	struct smtp_ehlo ehlo;
	uint8_t waiting[8192];
	size_t waiting_len;
	uint64_t passed, given, sent, answered;
	int over;
};

static void pass(struct run *r, const struct smtp_client_event *e)
{
	int cannot = e->refusal == SMTP_OWN_LINE_TOO_LONG || (e->refusal && e->command.verb == SMTP_VERB_BDAT) ||
		     e->command.verb == SMTP_VERB_XCLIENT;
	if (cannot) {
		smtp_tx_answer(&r->t, e, e->refusal ? e->refusal : SMTP_OWN_NOT_TRUSTED);
		return;
	}
	smtp_tx_pass(&r->t, e);
	r->sent++;
}

static void client(struct run *r, const uint8_t *in, size_t len)
{
	struct smtp_client_event e = { .kind = SMTP_CLIENT_COMMAND };
	size_t at = 0, taken;
	if (r->over || len > sizeof r->waiting - r->waiting_len) {
		r->over = 1;
		return;
	}
	memcpy(r->waiting + r->waiting_len, in, len);
	r->waiting_len += len;
	while (e.kind != SMTP_CLIENT_MORE && e.kind != SMTP_CLIENT_WAIT) {
		smtp_tx_client(&r->t, (const char *)r->waiting + at, r->waiting_len - at, &taken, &e);
		MUST(taken <= r->waiting_len - at);
		at += taken;
		if (e.kind == SMTP_CLIENT_COMMAND)
			pass(r, &e);
		r->sent += e.kind == SMTP_CLIENT_AUTH_LINE;
		r->sent +=
			e.kind == SMTP_CLIENT_CONTENT_END && r->t.queue_len > 0 &&
			r->t.queue[(r->t.queue_from + r->t.queue_len - 1u) % SMTP_TX_QUEUE_MAX].turn == SMTP_TURN_DOT;
		r->passed = smtp_sum(r->passed, e.wire.at, e.wire.len);
	}
	r->waiting_len -= at;
	memmove(r->waiting, r->waiting + at, r->waiting_len);
}

static void server(struct run *r, const uint8_t *in, size_t len)
{
	struct smtp_server_event e = { .kind = SMTP_SERVER_LINE };
	for (size_t at = 0, taken; !r->over && e.kind != SMTP_SERVER_MORE; at += taken) {
		smtp_tx_server(&r->t, (const char *)in + at, len - at, &taken, &e);
		MUST(taken <= len - at);
		r->over = e.kind == SMTP_SERVER_BAD;
		if (e.kind == SMTP_SERVER_LINE)
			r->given = smtp_sum(r->given, e.line.wire.at, e.line.wire.len);
		r->answered += e.kind == SMTP_SERVER_LINE && e.line.is_last && e.turn != SMTP_TURN_NOTHING;
	}
	client(r, in, 0);
	if (!r->over && smtp_tx_is_checkpoint(&r->t))
		MUST(r->t.state == SMTP_TX_NONE && r->t.queue_len == 0);
}

static void say_line(struct run *r, const uint8_t *line, size_t len, size_t step)
{
	int from_server = line[0] == '<';
	line += from_server;
	len -= (size_t)from_server;
	for (size_t at = 0; at < len; at += step) {
		size_t piece = len - at < step ? len - at : step;
		if (from_server)
			server(r, line + at, piece);
		else
			client(r, line + at, piece);
	}
}

static uint64_t account(const uint8_t *in, size_t len, size_t step)
{
	static struct run r;
	struct smtp_tx_rules rules = { .client_max = 128, .reply_max = 128, .parse = SMTP_PARSE_LENIENT };
	memset(&r, 0, sizeof r);
	struct smtp_tx_memory memory = { r.client_line, r.reply_line, &r.ehlo };
	smtp_tx_begin(&r.t, &rules, &memory, SMTP_TX_BEHIND_BANNER);
	for (size_t at = 0; at < len && !r.over;) {
		const uint8_t *lf = memchr(in + at, '\n', len - at);
		size_t line = lf ? (size_t)(lf - in) + 1 - at : len - at;
		say_line(&r, in + at, line, step);
		at += line;
	}
	if (r.over)
		return 0;
	MUST(r.answered <= r.sent);
	uint64_t sum = smtp_sum(r.passed, &r.given, sizeof r.given);
	return smtp_sum(sum, r.t.classes, r.t.classes_len) + (uint64_t)r.t.state + r.t.number * 8 + r.t.done * 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	smtp_must_be_the_same(in, len, account);
	return 0;
}
