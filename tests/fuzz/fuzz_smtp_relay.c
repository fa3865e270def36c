/* fuzz_smtp_relay.c: a session of both sides through a relay. The input is lines; one that begins with '<' is the
 * server's, any other the client's. However their bytes are cut, each side hears the same, except the server in front
 * of an end of a mail that is refused: how much of that mail it has is by chance, and it is never what a careless
 * server takes for an end. And the server never hears a line that begins with what it must not hear outside of a
 * message. */
#include <string.h>

#include "smtp/relay.h"
#include "tests/fuzz/smtp_cut.h"

static const uint8_t refused[SMTP_VERB_COUNT] = {
	[SMTP_VERB_XCLIENT] = SMTP_OWN_NOT_TRUSTED, [SMTP_VERB_AUTH] = SMTP_OWN_TLS_REQUIRED_FOR_AUTH
};
static const struct smtp_relay_rules rules = { .name = "mx.example",
	.refused = refused,
	.hidden = SMTP_CAPS_HIDDEN,
	.data_refuse = SMTP_DATA_SMUGGLING,
	.banner = SMTP_BANNER_RENAMED };

struct run {
	struct smtp_relay relay;
	uint8_t waiting[8192];
	size_t waiting_len;
	uint64_t client, server;
	char last[3]; /* that the server heard */
	int over;
};

static void to_client(void *ctx, const char *words, size_t len, enum smtp_relay_words what)
{
	struct run *r = ctx;
	r->client = smtp_sum(r->client, words, len);
}

static void to_server(void *ctx, const char *words, size_t len)
{
	struct run *r = ctx;
	int in_message = r->relay.tx.state != SMTP_TX_NONE || r->relay.tx.opaque ||
			 smtp_ehlo_has(&r->relay.offers, SMTP_CAP_CHUNKING);
	MUST(in_message || len < 7 || strncasecmp(words, "XCLIENT", 7) != 0);
	r->server = smtp_sum(r->server, words, len);
	for (size_t i = 0; i < len; i++) {
		memmove(r->last, r->last + 1, sizeof r->last - 1);
		r->last[sizeof r->last - 1] = words[i];
	}
}

static int ends_line(char c)
{
	return c == '\r' || c == '\n';
}

static int has_heard_an_end(const struct run *r)
{
	const char *at = r->last;
	return (ends_line(at[0]) && at[1] == '.' && ends_line(at[2])) || (ends_line(at[1]) && at[2] == '.');
}

static const struct smtp_relay_ops ops = { .to_client = to_client, .to_server = to_server };

static void client(struct run *r, const uint8_t *in, size_t len)
{
	if (r->over || len > sizeof r->waiting - r->waiting_len) {
		r->over = 1;
		return;
	}
	memcpy(r->waiting + r->waiting_len, in, len);
	r->waiting_len += len;
	size_t used = smtp_relay_client(&r->relay, (const char *)r->waiting, r->waiting_len);
	MUST(used <= r->waiting_len);
	r->waiting_len -= used;
	memmove(r->waiting, r->waiting + used, r->waiting_len);
}

static void say_line(struct run *r, const uint8_t *line, size_t len, size_t step)
{
	int from_server = line[0] == '<';
	line += from_server;
	len -= (size_t)from_server;
	for (size_t at = 0; at < len; at += step) {
		size_t piece = len - at < step ? len - at : step;
		if (from_server)
			smtp_relay_server(&r->relay, (const char *)line + at, piece);
		client(r, line + at, from_server ? 0 : piece);
	}
}

static uint64_t account(const uint8_t *in, size_t len, size_t step)
{
	static struct run r;
	r.waiting_len = 0;
	r.client = r.server = 0;
	r.over = 0;
	smtp_relay_begin(&r.relay, &rules, &ops, &r, NULL);
	for (size_t at = 0; at < len && !r.over;) {
		const uint8_t *end = memchr(in + at, '\n', len - at);
		size_t line = end ? (size_t)(end - (in + at)) + 1 : len - at;
		say_line(&r, in + at, line, step);
		at += line;
	}
	const int is_refused = (r.relay.tx.data.flaws & SMTP_DATA_SMUGGLING) != 0;
	const uint64_t server = is_refused ? 0 : r.server;
	MUST(!is_refused || !has_heard_an_end(&r));
	return r.over ? 0 : r.client * 31 + server + r.relay.state;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	smtp_must_be_the_same(in, len, account);
	return 0;
}
