/* test_relay_refusals.c: facts of what a relay does not pass on. */
#include "tests/unit/smtp/relay_talk.h"
#include "tests/unit/unit.h"

/* Else a mail could be taken, and the client would hear of the end only. */
START_TEST(behind_a_command_that_ends_the_session_nothing_is_read)
{
	static const char mail[] = "\r\nMAIL FROM:<a@x.example>\r\n";

	opened();
	client_says("NOOP\r\n");
	for (unsigned i = 0; i < SMTP_RELAY_LINE_MAX; i++)
		client_says("x");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, mail, sizeof mail - 1), 0);
	server_heard("NOOP\r\n");
	client_heard("");
	server_says("250 n\r\n");
	client_heard("250 n\r\n500 5.5.2 Line is too long\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
	opened();
	client_says("NOOP\r\nGET / HTTP/1.1\r\n");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, mail, sizeof mail - 1), 0);
	server_says("250 n\r\n");
	client_heard("250 n\r\n421 4.7.0 This is a mail server\r\n");
	server_heard("NOOP\r\n");
}
END_TEST

START_TEST(a_client_names_no_transaction)
{
	opened();
	client_says("MAIL FROM:<a@x.example> SIZE=9 xcssltx=0a1b/7\r\n");
	client_heard("555 5.5.4 Parameter is not known\r\n");
	server_heard("");
}
END_TEST

START_TEST(a_parameter_of_an_extension_that_is_not_shown_is_not_known)
{
	static const struct {
		const char *command;
		enum smtp_cap cap; /* FOREIGN: is never shown */
	} rows[] = {
		{ "MAIL FROM:<a@x.example> PRDR\r\n", SMTP_CAP_FOREIGN },
		{ "MAIL FROM:<a@x.example> SIZE=1 prdr\r\n", SMTP_CAP_FOREIGN },
		{ "MAIL FROM:<a@x.example> SIZE=1\r\n", SMTP_CAP_SIZE },
		{ "MAIL FROM:<a@x.example> BODY=8BITMIME\r\n", SMTP_CAP_8BITMIME },
		{ "MAIL FROM:<a@x.example> BODY=binarymime\r\n", SMTP_CAP_BINARYMIME },
		{ "MAIL FROM:<a@x.example> BODY=BINARYMIME\r\n", SMTP_CAP_CHUNKING },
		{ "MAIL FROM:<a@x.example> SMTPUTF8\r\n", SMTP_CAP_SMTPUTF8 },
		{ "MAIL FROM:<a@x.example> RET=HDRS\r\n", SMTP_CAP_DSN },
		{ "MAIL FROM:<a@x.example> ENVID=1\r\n", SMTP_CAP_DSN },
		{ "RCPT TO:<a@x.example> NOTIFY=NEVER\r\n", SMTP_CAP_DSN },
		{ "RCPT TO:<a@x.example> ORCPT=rfc822;a@x.example\r\n", SMTP_CAP_DSN },
		{ "MAIL FROM:<a@x.example> AUTH=<>\r\n", SMTP_CAP_AUTH },
		{ "MAIL FROM:<a@x.example> REQUIRETLS\r\n", SMTP_CAP_REQUIRETLS },
		{ "MAIL FROM:<a@x.example> MT-PRIORITY=3\r\n", SMTP_CAP_PRIORITY },
		{ "MAIL FROM:<a@x.example> BY=120;R\r\n", SMTP_CAP_DELIVERBY },
		{ "RCPT TO:<a@x.example> RRVS=2014-04-03T23:01:00Z\r\n", SMTP_CAP_RRVS },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		opened();
		rules.hidden = SMTP_CAPS_HIDDEN | SMTP_CAP_BIT(rows[i].cap);
		client_says(rows[i].command);
		client_heard("555 5.5.4 Parameter is not known\r\n");
		server_heard("");
		opened();
		rules.hidden = SMTP_CAPS_HIDDEN;
		client_says(rows[i].command);
		ck_assert_msg((s.server_len == 0) == (rows[i].cap == SMTP_CAP_FOREIGN), "%s", rows[i].command);
	}
}
END_TEST

/* FOREIGN verbs do not pass whatever the server offers, nor do verbs for trusted peers. */
START_TEST(a_verb_of_an_extension_that_the_client_sees_is_the_servers)
{
	static const char *const others[] = { "FROB x\r\n", "X-EXPS x\r\n", "VERB\r\n", "\r\n", "XFOO\x01\r\n",
		"XCLIENTX\r\n", "DATA-\r\n", "XF!O\r\n" };

	opened();
	client_says("EHLO a\r\n");
	server_says("250-b\r\n250-xfoo 1 2\r\n250-X-EXPS LOGIN\r\n250-VERB\r\n250 XCLIENT NAME\r\n");
	client_heard("250-mx.example\r\n250 xfoo 1 2\r\n");
	s.server_len = 0;
	for (size_t i = 0; i < SUITE_LEN(others); i++) {
		client_says(others[i]);
		ck_assert_str_eq(s.server, "EHLO a\r\n");
		ck_assert_mem_eq(s.client, "500 5.5.", 8);
		s.client_len = 0;
	}
	client_says("XCLIENT NAME=x\r\n");
	client_heard("550 5.7.0 Not authorized\r\n");
	s.server_len = 0;
	client_says("Xfoo bar\r\n");
	server_heard("Xfoo bar\r\n");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, "NOOP\r\n", 6), 0); /* nobody knows what it decides */
	server_says("250 foo\r\n");
	client_heard("250 foo\r\n");
	ck_assert(smtp_tx_is_checkpoint(&s.relay.tx));
	client_says("XFOO\r\n");
	server_says("334 say more\r\n");
	client_heard("421 4.5.0 The mail server behind broke the protocol, try again later\r\n");
}
END_TEST

START_TEST(a_verb_of_an_extension_that_is_hidden_is_not_known)
{
	opened();
	rules.hidden |= SMTP_CAP_BIT(SMTP_CAP_OTHER);
	client_says("EHLO a\r\n");
	server_says("250-b\r\n250 XFOO\r\n");
	client_heard("250 mx.example\r\n");
	client_says("XFOO\r\n");
	client_heard("500 5.5.1 Command is not known\r\n");
}
END_TEST

/* As in clear, where it may carry a password. */
START_TEST(a_verb_that_nobody_knows_may_be_refused_whatever_the_server_offers)
{
	static const uint8_t unknown[SMTP_VERB_COUNT] = { [SMTP_VERB_UNKNOWN] = SMTP_OWN_UNKNOWN_COMMAND };

	opened();
	rules.refused = unknown;
	client_says("EHLO a\r\n");
	server_heard("EHLO a\r\n");
	server_says("250-b\r\n250 XAUTHX\r\n");
	client_heard("250-mx.example\r\n250 XAUTHX\r\n");
	client_says("XAUTHX user secret\r\n");
	client_heard("500 5.5.1 Command is not known\r\n");
	server_heard("");
}
END_TEST

/* What the server accepts decides. But no parameter may hide behind a path whose end can be read in two ways, and two
 * readers would not part bare line ends in the same way. */
START_TEST(the_server_judges_names_and_paths)
{
	static const char *const passed[] = { "EHLO my pc\r\n", "EHLO b\xc3\xbcro\r\n",
		"RCPT TO:<user@example.com.>\r\n", "RCPT TO:< a@b >\r\n", "RCPT TO:<a b@c> NOTIFY=NEVER\r\n",
		"RCPT TO:<>\r\n", "MAIL FROM:<@@>\r\n" };
	static const struct {
		const char *said, *heard;
	} kept[] = {
		{ "EHLO \r\n", "501 5.5.4" },
		{ "EHLO a\x01\r\n", "500 5.5.2" },
		{ "MAIL FROM:<a b@c> XCSSLTX=0a/1\r\n", "555 5.5.4" },
		{ "MAIL FROM:<\"a@b XCSSLTX=0a/1>\r\n", "555 5.5.4" },
		{ "MAIL <a@b>\r\n", "501 5.5.4" },
		{ "MAIL FROM:\r\n", "501 5.1.7" },
		{ "MAIL FROM:<a@b\r\n", "501 5.1.7" },
		{ "MAIL FROM:<a@b>SIZE=1\r\n", "501 5.1.7" },
		{ "RCPT TO:<b\xc3\xbc@c>\r\n", "500 5.5.2" },
		{ "NOOP\n", "500 5.5.2" },
		{ "NOOP\rRSET\r\n", "500 5.5.2" },
	};

	for (size_t i = 0; i < SUITE_LEN(passed); i++) {
		opened();
		s.relay.tx.rules.parse = smtp_relay_parse(SMTP_CAP_BIT(SMTP_CAP_SMTPUTF8));
		client_says(passed[i]);
		server_heard(passed[i]);
	}
	for (size_t i = 0; i < SUITE_LEN(kept); i++) {
		opened();
		s.relay.tx.rules.parse = smtp_relay_parse(SMTP_CAP_BIT(SMTP_CAP_SMTPUTF8));
		client_says(kept[i].said);
		ck_assert_msg(strncmp(s.client, kept[i].heard, 9) == 0, "%s: %s", kept[i].said, s.client);
		server_heard("");
	}
}
END_TEST

START_TEST(a_malformed_parameter_hides_no_other)
{
	static const char *const malformed[] = { "ENVID=a=b", "=", "SIZE=", "a_b" };

	for (unsigned i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
		char mail[100];
		opened();
		rules.hidden |= SMTP_CAP_BIT(SMTP_CAP_REQUIRETLS);
		snprintf(mail, sizeof mail, "MAIL FROM:<a@x.example> %s REQUIRETLS\r\n", malformed[i]);
		client_says(mail);
		client_heard("555 5.5.4 Parameter is not known\r\n");
		snprintf(mail, sizeof mail, "MAIL FROM:<a@x.example> %s XCSSLTX=0a1b/7\r\n", malformed[i]);
		client_says(mail);
		client_heard("555 5.5.4 Parameter is not known\r\n");
		server_heard("");
	}
}
END_TEST

/* With the rules of a listener that hides @hidden. */
static void opened_hiding(uint32_t hidden)
{
	begin(SMTP_BANNER_SWALLOWED, NULL);
	rules.hidden = hidden;
	rules.parse = smtp_relay_parse(hidden);
	smtp_relay_begin(&s.relay, &rules, &ops, &s, NULL);
	server_says("220 b\r\n");
}

START_TEST(addresses_beyond_ascii_pass_unless_smtputf8_is_hidden)
{
	static const char mail[] = "MAIL FROM:<j\xc3\xbcrgen@x.example>\r\n";

	opened_hiding(SMTP_CAPS_HIDDEN);
	client_says(mail);
	server_heard(mail);
	opened_hiding(SMTP_CAPS_HIDDEN | SMTP_CAP_BIT(SMTP_CAP_SMTPUTF8));
	client_says(mail);
	client_heard("500 5.5.2 Command has bytes that are not allowed\r\n");
	server_heard("");
}
END_TEST

/* The dialogue up to the server's question for a password. */
static void asked_for_a_password(void)
{
	opened();
	rules.hidden = SMTP_CAPS_HIDDEN;
	client_says("AUTH PLAIN\r\n");
	server_says("334 \r\n");
	server_heard("AUTH PLAIN\r\n");
	client_heard("334 \r\n");
}

START_TEST(a_line_of_auth_without_end_ends_the_session)
{
	asked_for_a_password();
	for (unsigned i = 0; i + 1 < SMTP_RELAY_LINE_MAX; i++)
		client_says("x");
	client_heard("");
	client_says("x");
	client_heard("500 5.5.6 Authentication line is too long\r\n");
	server_heard("");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
}
END_TEST

/* Else a server that ends lines by one byte could read a command that nobody has judged. */
START_TEST(a_line_of_auth_has_one_end)
{
	static const char cr[] = "eA==\rXCLIENT NAME=x\r\n", lf[] = "eA==\n", nul[] = "eA\0==\r\n";

	asked_for_a_password();
	smtp_relay_client(&s.relay, cr, sizeof cr - 1);
	client_heard("500 5.5.2 Lines must end with <CR><LF>\r\n");
	server_heard("");
	asked_for_a_password();
	smtp_relay_client(&s.relay, lf, sizeof lf - 1);
	client_heard("500 5.5.2 Lines must end with <CR><LF>\r\n");
	server_heard("");
	asked_for_a_password();
	smtp_relay_client(&s.relay, nul, sizeof nul - 1);
	client_heard("500 5.5.2 Command has bytes that are not allowed\r\n");
	server_heard("");
	asked_for_a_password();
	client_says("eA==\r\n");
	server_heard("eA==\r\n");
}
END_TEST

UNIT(relay_refusals)
{
	const TTest *const facts[] = {
		behind_a_command_that_ends_the_session_nothing_is_read,
		a_client_names_no_transaction,
		a_parameter_of_an_extension_that_is_not_shown_is_not_known,
		a_verb_of_an_extension_that_the_client_sees_is_the_servers,
		a_verb_of_an_extension_that_is_hidden_is_not_known,
		a_verb_that_nobody_knows_may_be_refused_whatever_the_server_offers,
		the_server_judges_names_and_paths,
		a_malformed_parameter_hides_no_other,
		addresses_beyond_ascii_pass_unless_smtputf8_is_hidden,
		a_line_of_auth_without_end_ends_the_session,
		a_line_of_auth_has_one_end,
	};

	return suite_run("relay_refusals", facts, SUITE_LEN(facts));
}
