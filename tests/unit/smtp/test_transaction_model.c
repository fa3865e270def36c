/* test_transaction_model.c: random sessions between a client that says anything and a server that knows whether a
 * transaction is open. What the follower says must agree with it, above all: no checkpoint while a transaction is open.
 */
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/model_server.h"
#include "tests/unit/smtp/session.h"
#include "tests/unit/unit.h"

#define SESSIONS 3000u
#define STEPS    60u

static const struct smtp_tx_rules rules = { .client_max = 512, .reply_max = 512, .parse = SMTP_PARSE_LENIENT };

static const char *const sayings[] = { "MAIL FROM:<a@b>\r\n", "MAIL FROM:<a@b>\r\n", "RCPT TO:<c@d>\r\n",
	"RCPT TO:<c@d>\r\n", "RCPT TO:<c@d>\r\n", "DATA\r\n", "DATA\r\n", "text\r\n..\r\n", ".\r\n", ".\r\n",
	"BDAT 3\r\nab\r", "BDAT 6 LAST\r\nQUIT\r\n", "BDAT 0 LAST\r\n", "BDAT 0\r\n", "RSET\r\n", "EHLO x\r\n",
	"NOOP\r\n", "AUTH LOGIN\r\n", "MAIL FROM:nonsense <\r\n", "FOO\r\n", "BDAT x\r\n",
	"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n", "hello\r\n.\r\nMAIL FROM:<a@b>\r\n" };

static struct session s;
static struct model_server server;
static unsigned checkpoints;

/* A BDAT without a size cannot be passed: no server would know how many bytes follow. */
static enum smtp_own refuse_bad_chunks(const struct smtp_client_event *e)
{
	return e->command.verb == SMTP_VERB_BDAT ? e->refusal : SMTP_OWN_NONE;
}

static void compare(void)
{
	if (!smtp_tx_is_checkpoint(&s.t))
		return;
	checkpoints++;
	ck_assert_msg(!server.open, "a checkpoint inside a transaction: %s", s.trace);
	ck_assert_uint_eq(server.in_len + server.out_len + s.to_server_len, 0);
	ck_assert_int_eq(server.mode, MODEL_COMMANDS);
	ck_assert_uint_eq(s.t.accepted, server.messages);
}

static void client_says(void)
{
	const char *text = sayings[model_throw(&server, sizeof sayings / sizeof sayings[0])];
	size_t len = strlen(text), cut = model_throw(&server, (unsigned)len + 1);
	if (s.waiting_len > 2000)
		return;
	session_client(&s, text, cut);
	compare();
	session_client(&s, text + cut, len - cut);
}

static void server_works(void)
{
	size_t len = model_throw(&server, (unsigned)s.to_server_len + 1);
	model_feed(&server, s.to_server, len);
	s.to_server_len -= len;
	memmove(s.to_server, s.to_server + len, s.to_server_len);
}

static void replies_arrive(size_t len)
{
	ck_assert_msg(session_server(&s, server.out, len), "%s", s.trace);
	server.out_len -= len;
	memmove(server.out, server.out + len, server.out_len);
	s.to_client_len = 0;
}

/* Delivers all bytes that are on their way. */
static void settle(void)
{
	for (unsigned i = 0; i < 500 && (s.to_server_len || server.out_len); i++) {
		model_feed(&server, s.to_server, s.to_server_len);
		s.to_server_len = 0;
		replies_arrive(server.out_len);
	}
	session_server(&s, "", 0);
	compare();
}

static void run_session(uint64_t seed)
{
	session_begin(&s, &rules, SMTP_TX_BEHIND_BANNER);
	s.decide = refuse_bad_chunks;
	memset(&server, 0, sizeof server);
	server.dice = seed * 7919 + 1;
	for (unsigned step = 0; step < STEPS; step++) {
		switch (model_throw(&server, 3)) {
		case 0: client_says(); break;
		case 1: server_works(); break;
		default: replies_arrive(model_throw(&server, (unsigned)server.out_len + 1));
		}
		compare();
	}
	settle();
	ck_assert_msg(!s.t.opaque, "%s", s.trace);
	ck_assert_uint_eq(s.t.accepted, server.messages);
	/* With no byte under way, the follower and the server must agree. */
	int quiet = s.t.queue_len == 0 && s.t.mode == 0 && s.waiting_len == 0 && smtp_line_is_between(&s.t.client);
	if (quiet && server.in_len == 0 && s.t.state == SMTP_TX_NONE)
		ck_assert_int_eq(server.open, 0);
}

START_TEST(no_checkpoint_is_inside_a_transaction)
{
	for (uint64_t seed = 0; seed < SESSIONS; seed++)
		run_session(seed);
	ck_assert_uint_gt(checkpoints, SESSIONS);
}
END_TEST

UNIT(transaction_model)
{
	const TTest *facts[] = { no_checkpoint_is_inside_a_transaction };
	return suite_run_within(60, "transaction_model", facts, SUITE_LEN(facts));
}
