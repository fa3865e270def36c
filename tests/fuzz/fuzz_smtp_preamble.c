/* fuzz_smtp_preamble.c: the dialogue before STARTTLS: replies, the end, and the count of bytes are the same however the
 * client's bytes are cut; every reply is one line or more of a reply, and no more than its bound. */
#include <string.h>

#include "smtp/preamble.h"
#include "tests/fuzz/smtp_cut.h"

static struct smtp_ehlo offers;
static struct smtp_preamble_rules rules = {
	.name = "mx.example", .offers = &offers, .errors_max = 20, .commands_max = 100
};

static int goes_on(enum smtp_preamble_event event)
{
	return event == SMTP_PREAMBLE_ON_MORE || event == SMTP_PREAMBLE_ON_REPLY;
}

static uint64_t sum_reply(uint64_t sum, const uint8_t *out, struct wire_writer *w)
{
	ptrdiff_t len = wire_writer_len(w);
	MUST(len >= 0);
	MUST(len == 0 || (len > 4 && memcmp(out + len - 2, "\r\n", 2) == 0));
	return smtp_sum(sum, out, (size_t)len);
}

static uint64_t account(const uint8_t *in, size_t len, size_t step)
{
	static struct smtp_preamble p;
	uint8_t out[SMTP_PREAMBLE_REPLY_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	enum smtp_preamble_event event = SMTP_PREAMBLE_ON_MORE;
	smtp_preamble_begin(&p, &rules, &w);
	uint64_t sum = sum_reply(0, out, &w);
	size_t at = 0, taken;
	for (; at < len && goes_on(event); at += taken) {
		size_t piece = len - at < step ? len - at : step;
		w = wire_writer(out, sizeof out);
		event = smtp_preamble_read(&p, (const char *)in + at, piece, &taken, &w);
		MUST(taken <= piece);
		sum = sum_reply(sum, out, &w);
	}
	MUST(p.consumed == at);
	sum = smtp_sum(sum, &at, sizeof at);
	if (event == SMTP_PREAMBLE_ON_MAIL)
		sum = smtp_sum(sum, p.held.at, p.held.len);
	return smtp_sum(sum, p.name, strlen(p.name)) + (uint64_t)p.state;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	if (offers.count == 0)
		smtp_ehlo_add(&offers, smtp_span_of("SMTPUTF8"));
	for (unsigned i = 0; i < 4; i++) {
		rules.tls = i & 1 ? SMTP_TLS_OFFER : SMTP_TLS_REQUIRE;
		rules.lenient = i & 2 ? SMTP_PARSE_LENIENT : 0;
		smtp_must_be_the_same(in, len, account);
	}
	return 0;
}
