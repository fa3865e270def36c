/* relay_talk.h: a client and a server on both sides of a relay, played by a test: what each of them says and hears. */
#pragma once

#include "smtp/relay.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"

static const uint8_t refused[SMTP_VERB_COUNT] = {
	[SMTP_VERB_XCLIENT] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_GET] = SMTP_OWN_FOREIGN_PROTOCOL,
};
static struct smtp_relay_rules rules;

static struct session {
	struct smtp_relay relay;
	char client[8192], server[8192]; /* all bytes that each of them got */
	size_t client_len, server_len;
	enum smtp_relay_words last;
} s;

static void to_client(void *ctx, const char *words, size_t len, enum smtp_relay_words what)
{
	ck_assert_uint_lt(s.client_len + len, sizeof s.client);
	memcpy(s.client + s.client_len, words, len);
	s.client_len += len;
	s.client[s.client_len] = '\0';
	s.last = what;
}

static void to_server(void *ctx, const char *words, size_t len)
{
	ck_assert_uint_lt(s.server_len + len, sizeof s.server);
	memcpy(s.server + s.server_len, words, len);
	s.server_len += len;
	s.server[s.server_len] = '\0';
}

static const struct smtp_relay_ops ops = { .to_client = to_client, .to_server = to_server };

static inline void begin(enum smtp_relay_banner banner, const char *greeting)
{
	memset(&s, 0, sizeof s);
	rules = (struct smtp_relay_rules){ .name = "mx.example",
		.refused = refused,
		.hidden = SMTP_CAPS_HIDDEN | SMTP_CAP_BIT(SMTP_CAP_AUTH),
		.data_refuse = SMTP_DATA_SMUGGLING,
		.banner = banner };
	smtp_relay_begin(&s.relay, &rules, &ops, &s, greeting);
}

static inline void server_says(const char *words)
{
	for (; *words; words++)
		smtp_relay_server(&s.relay, words, 1);
}

/* The relay has to use all of it. */
static inline void client_says(const char *words)
{
	for (; *words; words++)
		ck_assert_uint_eq(smtp_relay_client(&s.relay, words, 1), 1);
}

static inline void client_heard(const char *words)
{
	ck_assert_str_eq(s.client, words);
	s.client[0] = '\0';
	s.client_len = 0;
}

static inline void server_heard(const char *words)
{
	ck_assert_str_eq(s.server, words);
	s.server[0] = '\0';
	s.server_len = 0;
}

static inline void opened(void)
{
	begin(SMTP_BANNER_SWALLOWED, NULL);
	server_says("220 backend ESMTP\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OPEN);
}
