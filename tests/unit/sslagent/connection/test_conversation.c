/* test_conversation.c: facts of the conversation with a backend: when it begins, what its PROXY header says, when
 * it serves another client, and what of it moves. */
#include <llhttp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/proxy_header.h"
#include "sslagent/connection/conversation.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

/* --- the pool --- */

static void ask_and_hear(void)
{
	say_text(GET);
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
}

START_TEST(a_pooled_connection_serves_request_after_request)
{
	keep("pooled", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_until(!fake_owner(&r)->backend); /* it waits in the pool */
	ask_and_hear();
	ck_assert(!backend_waits());
	ck_assert_uint_eq(counted(COUNT_BACKEND_CONNECTS), 1);
	ck_assert_uint_eq(counted(COUNT_BACKEND_REUSED), 1);
}
END_TEST

START_TEST(without_reuse_a_conversation_keeps_its_connection)
{
	keep("http", &a1, tls_version(_i));
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	ck_assert_ptr_nonnull(fake_owner(&r)->backend);
	ask_and_hear();
	ck_assert_uint_eq(counted(COUNT_BACKEND_REUSED), 0);
}
END_TEST

START_TEST(what_says_that_it_closes_is_not_pooled)
{
	keep("pooled", &a1, TLS13);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	carry_on();
	ck_assert_ptr_nonnull(fake_owner(&r)->backend);
	backend_hang_up();
	expect_end(END_DONE, CARRIER_ORDERLY);
	expect_close_notify();
}
END_TEST

static const char *const doubted[] = {
#if LLHTTP_VERSION_MAJOR < 9 /* later ones refuse a folded line, and such a connection is followed no more */
	"GET / HTTP/1.1\r\nHost: www.example.org\r\nX: y\r\n z\r\n\r\n",
#endif
	"GET / HTTP/1.0\r\nHost: www.example.org\r\nConnection: keep-alive\r\n\r\n",
};

/* Its later requests go on with that connection, other clients' with none of it. */
START_TEST(what_others_may_read_otherwise_is_not_pooled)
{
	keep("pooled", &a1, TLS13);
	say_text(doubted[_i]);
	backend_accept();
	backend_expect_text(doubted[_i]);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_on();
	ck_assert_ptr_nonnull(fake_owner(&r)->backend);
	ask_and_hear();
	ck_assert_ptr_nonnull(fake_owner(&r)->backend);
	ck_assert_uint_eq(counted(COUNT_BACKEND_NOT_SHARED), 2);
	memory_client_close(client);
	expect_end(END_DONE, CARRIER_ORDERLY);
	ck_assert_int_eq(backend_end(), 0);
}
END_TEST

START_TEST(a_client_that_ends_leaves_the_pool_its_connection)
{
	keep("pooled", &a1, TLS13);
	say_text(GET);
	backend_accept();
	backend_expect_text(GET);
	backend_say_text(ANSWER);
	client_expect_text(ANSWER);
	carry_until(!fake_owner(&r)->backend);
	memory_client_close(client);
	expect_end(END_DONE, CARRIER_ORDERLY);
	int kept = dup(backend);
	keep("pooled", &a1, TLS13); /* another client */
	backend = kept;
	ask_and_hear();
	ck_assert_uint_eq(counted(COUNT_BACKEND_REUSED), 1);
}
END_TEST

/* --- the PROXY header --- */

static void hear_header(struct proxy_header *h, uint8_t *bytes)
{
	size_t len = 0, taken;
	int result = PROXY_INCOMPLETE;

	while (result == PROXY_INCOMPLETE) {
		ck_assert_uint_lt(len, PROXY_V2_MAX);
		backend_expect_into(bytes + len, 1);
		result = proxy_header_parse(bytes, ++len, h, &taken);
	}
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(taken, len);
}

START_TEST(a_backend_hears_who_the_client_is)
{
	struct memory_client_config config = { .version = _i ? TLS1_3_VERSION : TLS1_2_VERSION,
		.server_name = "www.example.org" };
	uint8_t bytes[PROXY_V2_MAX];
	struct proxy_header h;

	keep("proxied", &a1, &config);
	say_text("hello");
	backend_accept();
	hear_header(&h, bytes);
	ck_assert_int_eq(h.command, PROXY_PROXIED);
	ck_assert_int_eq(h.family, PROXY_TCP4);
	ck_assert_mem_eq(h.source, ((uint8_t[]){ 192, 0, 2, 1 }), 4);
	ck_assert_mem_eq(h.destination, ((uint8_t[]){ 192, 0, 2, 2 }), 4);
	ck_assert_uint_eq(h.source_port, 40000);
	ck_assert_uint_eq(h.destination_port, 443);
	ck_assert_uint_eq(h.authority_len, strlen("www.example.org"));
	ck_assert_mem_eq(h.authority, "www.example.org", h.authority_len);
	ck_assert_mem_eq(h.ssl_version, _i ? "TLSv1.3" : "TLSv1.2", h.ssl_version_len);
	backend_expect_text("hello");
}
END_TEST

/* Its bytes are nobody's plaintext: they consume no record and are not said again. */
START_TEST(a_header_counts_for_nothing_and_is_said_once)
{
	uint8_t bytes[PROXY_V2_MAX];
	struct proxy_header h;

	keep("proxied", &a1, TLS13);
	backend_accept();
	hear_header(&h, bytes);
	ck_assert_uint_eq(fake_owner(&r)->written, 0);
	ck_assert_uint_eq(fake_owner(&r)->to_backend, 0);
	say_text("ping");
	backend_expect_text("ping");
	move_to(&a2);
	say_text("pong");
	backend_expect_text("pong");
	ck_assert_uint_eq(counted(COUNT_BACKEND_CONNECTS), 1);
}
END_TEST

/* --- moves --- */

START_TEST(a_frozen_owner_leaves_the_passed_connection_alone)
{
	converse(tls_version(_i));
	hand_off_to(&a2);
	ck_assert_int_eq(fake_ragent_adopt(&r, &a2.worker, CSSL__CAUSE__CAUSE_MOVE), 1);
	turns(10);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	say_text("still open");
	backend_expect_text("still open");
	backend_say_text("both ways");
	client_expect_text("both ways");
}
END_TEST

START_TEST(a_passed_connection_resets_if_its_new_owner_is_lost)
{
	converse(tls_version(_i));
	move_to(&a2);
	connection_forget(fake_owner(&r), END_AGENT_LOST);
	r.current->connection = NULL;
	ck_assert_int_eq(backend_end(), -1);
}
END_TEST

START_TEST(what_is_described_says_where_both_sides_are)
{
	converse(TLS13);
	struct passed_backend p;
	ck_assert_int_eq(conversation_describe(fake_owner(&r), &p), 0);
	ck_assert_str_eq(p.backend, "main");
	ck_assert_int_eq(p.to_state, BACKEND_WRITING);
	ck_assert_int_ge(p.fd, 0);
	passed_backend_destroy(&p);
	memory_client_close(client);
	ck_assert_int_eq(backend_end(), 0);
	ck_assert_int_eq(conversation_describe(fake_owner(&r), &p), 0);
	ck_assert_int_eq(p.to_state, BACKEND_SHUT);
	passed_backend_destroy(&p);
}
END_TEST

START_TEST(a_backend_that_the_cluster_file_does_not_know_is_not_restored)
{
	struct passed_backend p;

	converse(TLS13);
	ck_assert_int_eq(conversation_describe(fake_owner(&r), &p), 0);
	snprintf(p.backend, sizeof p.backend, "unknown");
	ck_assert_int_lt(conversation_restore(fake_owner(&r), &p), 0);
	passed_backend_destroy(&p);
	connection_forget(fake_owner(&r), END_CLIENT_RESET);
	r.current->connection = NULL;
}
END_TEST

UNIT(conversation)
{
	const struct connection_fact facts[] = {
		{ a_pooled_connection_serves_request_after_request, 2 },
		{ without_reuse_a_conversation_keeps_its_connection, 2 },
		{ what_says_that_it_closes_is_not_pooled, 0 },
		{ what_others_may_read_otherwise_is_not_pooled, sizeof doubted / sizeof doubted[0] },
		{ a_client_that_ends_leaves_the_pool_its_connection, 0 },
		{ a_backend_hears_who_the_client_is, 2 },
		{ a_header_counts_for_nothing_and_is_said_once, 0 },
		{ a_frozen_owner_leaves_the_passed_connection_alone, 2 },
		{ a_passed_connection_resets_if_its_new_owner_is_lost, 2 },
		{ what_is_described_says_where_both_sides_are, 0 },
		{ a_backend_that_the_cluster_file_does_not_know_is_not_restored, 0 },
	};

	return connection_suite_run("conversation", facts, FACTS_LEN(facts));
}
