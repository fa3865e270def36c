/* test_hello.c: facts that a dispatcher reads from the first records. The hellos are OpenSSL's own. */
#include <string.h>

#include "proto/client_hello.h"
#include "proto/error.h"
#include "proto/tls_record.h"
#include "ragent/dispatch/dispatch.h"
#include "tests/unit/proto/hello_maker.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const uint8_t check_key[SESSION_ID_CHECK_KEY_LEN] = { 1, 2, 3 };
static uint8_t scratch[CLIENT_HELLO_MAX];

static int look(const uint8_t *bytes, size_t len, enum hello_offer *offer)
{
	return hello_look(bytes, len, check_key, scratch, offer);
}

static void fresh_offers_nothing(int version)
{
	const struct hello_kind kind = { .version = version, .server_name = HELLO_SERVER_NAME };
	enum hello_offer offer = HELLO_RESUMING;
	struct hello h;

	hello_fresh(&kind, &h);
	ck_assert_int_eq(look(h.bytes, h.len, &offer), 0);
	ck_assert_int_eq(offer, HELLO_FULL);
}

static void second_offers_a_resumption(int version)
{
	const struct hello_kind kind = { .version = version, .server_name = HELLO_SERVER_NAME };
	enum hello_offer offer = HELLO_FULL;
	struct hello h;
	SSL_SESSION *session;

	hello_resuming(&kind, &h, &session);
	ck_assert_int_eq(look(h.bytes, h.len, &offer), 0);
	ck_assert_int_eq(offer, HELLO_RESUMING);
	SSL_SESSION_free(session);
}

START_TEST(a_fresh_tls13_hello_offers_nothing_though_it_carries_a_session_id)
{
	fresh_offers_nothing(TLS1_3_VERSION);
}
END_TEST

START_TEST(a_fresh_tls12_hello_offers_nothing)
{
	fresh_offers_nothing(TLS1_2_VERSION);
}
END_TEST

START_TEST(a_psk_is_an_offer)
{
	second_offers_a_resumption(TLS1_3_VERSION);
}
END_TEST

START_TEST(a_ticket_is_an_offer)
{
	second_offers_a_resumption(TLS1_2_VERSION);
}
END_TEST

/* The 32 bytes of a TLS 1.3 hello's legacy_session_id stand behind record header, message header, version and random.
 */
START_TEST(one_of_our_session_ids_is_an_offer_and_no_other)
{
	const struct hello_kind kind = { .version = TLS1_3_VERSION, .server_name = HELLO_SERVER_NAME };
	const size_t at = TLS_RECORD_HEADER_LEN + 4 + 2 + 32;
	enum hello_offer offer;
	uint8_t random[22] = { 9 };
	struct hello h;

	hello_fresh(&kind, &h);
	ck_assert_uint_eq(h.bytes[at], SESSION_ID_LEN);
	session_id_make(h.bytes + at + 1, 3, 1000, random, check_key);
	ck_assert_int_eq(look(h.bytes, h.len, &offer), 0);
	ck_assert_int_eq(offer, HELLO_RESUMING);
	h.bytes[at + 8] ^= 1;
	ck_assert_int_eq(look(h.bytes, h.len, &offer), 0);
	ck_assert_int_eq(offer, HELLO_FULL);
}
END_TEST

START_TEST(every_shorter_hello_is_incomplete)
{
	const struct hello_kind kind = { .version = TLS1_3_VERSION, .fragment = 512, .alpn_names = 150 };
	enum hello_offer offer;
	struct hello h;

	hello_fresh(&kind, &h);
	for (size_t len = 0; len < h.len; len++)
		ck_assert_int_eq(look(h.bytes, len, &offer), HELLO_INCOMPLETE);
	ck_assert_int_eq(look(h.bytes, h.len, &offer), 0);
}
END_TEST

START_TEST(bytes_that_begin_with_no_handshake_record_are_not_tls)
{
	static const char *const firsts[] = { "GET / HTTP/1.1\r\n", "\x17\x03\x03\x00\x10", "\x15\x03\x03\x00\x02",
		"\x16\x04\x00\x00\x10", "\x16\x03\x01\xff\xff", "\x80\x2e\x01\x00\x02" };
	enum hello_offer offer;

	for (size_t i = 0; i < SUITE_LEN(firsts); i++)
		ck_assert_int_eq(look((const uint8_t *)firsts[i], 5, &offer), CSSL_E_TYPE);
	ck_assert_int_eq(look((const uint8_t *)"EHLO", 4, &offer), CSSL_E_TYPE);
	ck_assert_int_eq(look((const uint8_t *)"G", 1, &offer), HELLO_INCOMPLETE);
}
END_TEST

START_TEST(a_malformed_hello_is_the_agents_to_answer)
{
	uint8_t record[64] = { 0 };
	enum hello_offer offer = HELLO_RESUMING;

	tls_record_header_write(record, TLS_HANDSHAKE, 0x0301, sizeof record - TLS_RECORD_HEADER_LEN);
	ck_assert_int_eq(look(record, sizeof record, &offer), 0);
	ck_assert_int_eq(offer, HELLO_FULL);
}
END_TEST

START_TEST(a_hello_that_claims_too_much_is_refused)
{
	static const uint8_t claims[][12] = { { 22, 3, 1, 0, 4, 1, 2, 1, 0x44 }, { 22, 3, 1, 0, 4, 1, 0, 0x7f, 0xfd },
		{ 22, 3, 1, 0, 4, 1, 0, 0x7f, 0xfc } };
	enum hello_offer offer;

	ck_assert_int_eq(look(claims[0], 9, &offer), CSSL_E_TOO_LONG);
	ck_assert_int_eq(look(claims[1], 9, &offer), CSSL_E_TOO_LONG);
	ck_assert_int_eq(look(claims[2], 9, &offer), HELLO_INCOMPLETE);
}
END_TEST

UNIT(hello)
{
	const TTest *const facts[] = {
		a_fresh_tls13_hello_offers_nothing_though_it_carries_a_session_id,
		a_fresh_tls12_hello_offers_nothing,
		a_psk_is_an_offer,
		a_ticket_is_an_offer,
		one_of_our_session_ids_is_an_offer_and_no_other,
		every_shorter_hello_is_incomplete,
		bytes_that_begin_with_no_handshake_record_are_not_tls,
		a_malformed_hello_is_the_agents_to_answer,
		a_hello_that_claims_too_much_is_refused,
	};

	return suite_run("hello", facts, SUITE_LEN(facts));
}
