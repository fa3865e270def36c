/* test_client_hello.c: facts of the ClientHello scan: on hellos of OpenSSL's client (hello_maker.h), then on broken
 * ones made from them or by hand. */
#include <string.h>

#include "proto/client_hello.h"
#include "proto/error.h"
#include "proto/tls_record.h"
#include "proto/wire.h"
#include "tests/unit/proto/hello_maker.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct hello_kind tls12 = { .version = TLS1_2_VERSION, .server_name = HELLO_SERVER_NAME };
static const struct hello_kind tls12_ids = { .version = TLS1_2_VERSION, .options = SSL_OP_NO_TICKET };
static const struct hello_kind tls13 = { .version = TLS1_3_VERSION, .server_name = HELLO_SERVER_NAME };

static uint8_t scratch[CLIENT_HELLO_MAX];

static int scan(const struct hello *h, struct client_hello *out)
{
	return client_hello_scan(h->bytes, h->len, scratch, sizeof(scratch), out);
}

START_TEST(a_fresh_tls13_hello_offers_no_resumption)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls13, &h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags & CLIENT_HELLO_OFFERS_TLS13, CLIENT_HELLO_OFFERS_TLS13);
	ck_assert_uint_eq(c.flags & (CLIENT_HELLO_HAS_PSK | CLIENT_HELLO_HAS_TICKET), 0);
	ck_assert_ptr_null(c.psk);
	/* ... although its legacy_session_id is random (RFC 8446 D.4). */
	ck_assert_uint_eq(c.session_id_len, 32);
}
END_TEST

START_TEST(a_fresh_tls12_hello_asks_for_a_ticket_and_has_none)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls12, &h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags, CLIENT_HELLO_HAS_TICKET_EXT);
	ck_assert_uint_eq(c.session_id_len, 0);
}
END_TEST

START_TEST(a_tls12_hello_without_tickets_says_so)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls12_ids, &h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags, 0);
}
END_TEST

START_TEST(a_tls12_session_id_is_found)
{
	struct hello h;
	struct client_hello c;
	SSL_SESSION *session;
	unsigned len;
	hello_resuming(&tls12_ids, &h, &session);
	const uint8_t *id = SSL_SESSION_get_id(session, &len);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.session_id_len, len);
	ck_assert_mem_eq(c.session_id, id, len);
	ck_assert_uint_eq(c.flags, 0);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(a_tls12_ticket_is_found)
{
	struct hello h;
	struct client_hello c;
	SSL_SESSION *session;
	hello_resuming(&tls12, &h, &session);
	ck_assert_int_eq(SSL_SESSION_has_ticket(session), 1);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags, CLIENT_HELLO_HAS_TICKET_EXT | CLIENT_HELLO_HAS_TICKET);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(a_tls13_psk_identity_is_the_ticket)
{
	struct hello h;
	struct client_hello c;
	SSL_SESSION *session;
	const uint8_t *ticket;
	size_t len;
	hello_resuming(&tls13, &h, &session);
	SSL_SESSION_get0_ticket(session, &ticket, &len);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags & CLIENT_HELLO_HAS_PSK, CLIENT_HELLO_HAS_PSK);
	ck_assert_uint_eq(c.psk_len, len);
	ck_assert_mem_eq(c.psk, ticket, len);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(a_stateful_tls13_psk_identity_is_32_bytes)
{
	const struct hello_kind stateful = { .version = TLS1_3_VERSION, .options = SSL_OP_NO_TICKET };
	struct hello h;
	struct client_hello c;
	SSL_SESSION *session;
	hello_resuming(&stateful, &h, &session);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.psk_len, 32);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(the_server_name_is_found)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls13, &h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.server_name_len, strlen(HELLO_SERVER_NAME));
	ck_assert_mem_eq(c.server_name, HELLO_SERVER_NAME, c.server_name_len);
}
END_TEST

START_TEST(without_a_server_name_there_is_none)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls12_ids, &h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_ptr_null(c.server_name);
	ck_assert_uint_eq(c.server_name_len, 0);
}
END_TEST

START_TEST(every_shorter_hello_is_incomplete)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls13, &h);
	for (size_t len = 0; len < h.len; len++)
		ck_assert_int_eq(
			client_hello_scan(h.bytes, len, scratch, sizeof(scratch), &c), CLIENT_HELLO_INCOMPLETE);
	ck_assert_int_eq(scan(&h, &c), 0);
}
END_TEST

static void assert_several_records(const struct hello *h)
{
	struct tls_record_run run;
	struct tls_record_header bad;
	ck_assert_int_eq(tls_record_scan_run(h->bytes, h->len, SIZE_MAX, &run, &bad), 0);
	ck_assert_uint_gt(run.records, 1);
	ck_assert_uint_eq(run.len, h->len);
}

START_TEST(a_hello_over_several_records_is_read)
{
	const struct hello_kind split = {
		.version = TLS1_3_VERSION, .alpn_names = 150, .fragment = 512, .server_name = HELLO_SERVER_NAME
	};
	struct hello h;
	struct client_hello c;
	SSL_SESSION *session;
	hello_resuming(&split, &h, &session);
	assert_several_records(&h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags & CLIENT_HELLO_HAS_PSK, CLIENT_HELLO_HAS_PSK);
	ck_assert_mem_eq(c.server_name, HELLO_SERVER_NAME, c.server_name_len);
	for (size_t len = 0; len < h.len; len++)
		ck_assert_int_eq(
			client_hello_scan(h.bytes, len, scratch, sizeof(scratch), &c), CLIENT_HELLO_INCOMPLETE);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(a_hello_longer_than_the_scratch_is_refused)
{
	const struct hello_kind split = { .version = TLS1_3_VERSION, .alpn_names = 150, .fragment = 512 };
	struct hello h;
	struct client_hello c;
	hello_fresh(&split, &h);
	ck_assert_int_eq(client_hello_scan(h.bytes, h.len, scratch, 600, &c), CSSL_E_TOO_LONG);
	ck_assert_int_eq(client_hello_scan(h.bytes, h.len, NULL, 0, &c), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(bytes_behind_the_hello_are_not_looked_at_but_in_its_record_refused)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls13, &h);
	h.bytes[h.len++] = 0xff;
	ck_assert_int_eq(scan(&h, &c), 0);
	wire_store_u16(h.bytes + 3, wire_load_u16(h.bytes + 3) + 1);
	ck_assert_int_eq(scan(&h, &c), CSSL_E_TRAILING);
}
END_TEST

START_TEST(anything_but_a_hello_is_refused)
{
	struct hello h;
	struct client_hello c;
	hello_fresh(&tls13, &h);
	h.bytes[0] = TLS_ALERT;
	ck_assert_int_eq(scan(&h, &c), CSSL_E_TYPE);
	h.bytes[0] = TLS_HANDSHAKE;
	ck_assert_int_eq(scan(&h, &c), 0);
	h.bytes[5] = 2; /* ServerHello */
	ck_assert_int_eq(scan(&h, &c), CSSL_E_TYPE);
	ck_assert_int_eq(
		client_hello_scan((const uint8_t *)"GET / HTTP/1.1", 14, scratch, sizeof(scratch), &c), CSSL_E_TYPE);
}
END_TEST

START_TEST(a_hello_that_claims_more_than_32_KiB_is_refused_at_once)
{
	struct client_hello c;
	const uint8_t head[] = { TLS_HANDSHAKE, 3, 1, 0, 4, 1, 0, 0x7f, 0xfd };
	ck_assert_int_eq(client_hello_scan(head, sizeof(head), scratch, sizeof(scratch), &c), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(the_watch_ends_at_a_hello_that_claims_more_than_32_KiB)
{
	static const uint8_t most[] = { 1, 0, 0x7f, 0xfc }, more[] = { 1, 0, 0x7f, 0xfd },
			     other[] = { 16, 0, 0x7f, 0xfd };

	for (size_t part = 1; part <= sizeof(most); part++) {
		struct client_hello_watch w[3] = { 0 };
		for (size_t at = 0; at < sizeof(most); at += part) {
			const size_t n = sizeof(most) - at < part ? sizeof(most) - at : part;
			const int whole = at + n == sizeof(most);
			ck_assert_int_eq(client_hello_watch(&w[0], most + at, n), 0);
			ck_assert_int_eq(client_hello_watch(&w[1], more + at, n), whole ? CSSL_E_TOO_LONG : 0);
			ck_assert_int_eq(client_hello_watch(&w[2], other + at, n), 0);
		}
	}
}
END_TEST

START_TEST(the_watch_looks_at_a_second_hello_and_at_nothing_behind_another_message)
{
	static const uint8_t first[] = { 1, 0, 0, 2, 9, 9 }, most[] = { 1, 0, 0x7f, 0xfd },
			     other[] = { 16, 0, 0, 1, 7 };
	static const uint8_t both[] = { 1, 0, 0, 2, 9, 9, 1, 0xff, 0xff, 0xff };
	struct client_hello_watch w = { 0 }, ended = { 0 }, one = { 0 };

	ck_assert_int_eq(client_hello_watch(&w, first, sizeof(first)), 0);
	ck_assert_int_eq(client_hello_watch(&w, most, sizeof(most)), CSSL_E_TOO_LONG);
	ck_assert_int_eq(client_hello_watch(&ended, first, sizeof(first)), 0);
	ck_assert_int_eq(client_hello_watch(&ended, other, sizeof(other)), 0);
	ck_assert_int_eq(client_hello_watch(&ended, most, sizeof(most)), 0); /* maybe a ciphertext */
	ck_assert_int_eq(client_hello_watch(&one, both, sizeof(both)), CSSL_E_TOO_LONG);
	struct client_hello_watch told = { 0 };
	ck_assert_int_eq(client_hello_watch(&told, first, sizeof(first)), 0);
	client_hello_watch_end(&told);
	ck_assert_int_eq(client_hello_watch(&told, most, sizeof(most)), 0);
}
END_TEST

START_TEST(an_empty_handshake_record_is_refused)
{
	struct client_hello c;
	const uint8_t empty[] = { TLS_HANDSHAKE, 3, 1, 0, 0 };
	ck_assert_int_eq(client_hello_scan(empty, sizeof(empty), scratch, sizeof(scratch), &c), CSSL_E_RANGE);
}
END_TEST

/* Records of up to 2^14 bytes, filled with a hello of @whole bytes in an extension that is never read. */
static size_t long_hello(uint8_t *out, size_t cap, size_t whole, size_t part)
{
	static uint8_t message[2 * CLIENT_HELLO_MAX];
	struct wire_writer w = wire_writer(message, sizeof(message));
	wire_put_u8(&w, 1);
	wire_put_u24(&w, (uint32_t)whole - 4);
	wire_put_u16(&w, TLS12_VERSION_WIRE);
	wire_put_bytes(&w, scratch, 32);
	wire_put_bytes(&w, "\0\0\2\xc0\x2f\1\0", 7);
	wire_put_u16(&w, (uint16_t)(whole - 47));
	/* Two of them: one alone cannot fill it. */
	for (unsigned i = 0; i < 2; i++) {
		wire_put_u16(&w, 0xfafa);
		wire_put_u16(&w, (uint16_t)((whole - 55 + i) / 2));
		wire_put_bytes(&w, scratch, (whole - 55 + i) / 2);
	}
	ck_assert_int_eq(wire_writer_len(&w), (int)whole);

	w = wire_writer(out, cap);
	for (size_t at = 0; at < whole; at += part) {
		size_t here = whole - at < part ? whole - at : part;
		wire_put_u8(&w, TLS_HANDSHAKE);
		wire_put_u16(&w, 0x0301);
		wire_put_u16(&w, (uint16_t)here);
		wire_put_bytes(&w, message + at, here);
	}
	return (size_t)wire_writer_len(&w);
}

START_TEST(the_longest_hello_and_record_are_read_and_no_longer_ones)
{
	static uint8_t in[2 * CLIENT_HELLO_MAX];
	struct client_hello c;
	size_t len = long_hello(in, sizeof(in), CLIENT_HELLO_MAX, TLS_PLAINTEXT_MAX);
	ck_assert_int_eq(client_hello_scan(in, len, scratch, sizeof(scratch), &c), 0);
	len = long_hello(in, sizeof(in), CLIENT_HELLO_MAX + 1, TLS_PLAINTEXT_MAX);
	ck_assert_int_eq(client_hello_scan(in, len, scratch, sizeof(scratch), &c), CSSL_E_TOO_LONG);
	len = long_hello(in, sizeof(in), CLIENT_HELLO_MAX, TLS_PLAINTEXT_MAX + 1);
	ck_assert_int_eq(client_hello_scan(in, len, scratch, sizeof(scratch), &c), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(a_later_record_of_another_type_is_refused)
{
	static uint8_t in[2 * CLIENT_HELLO_MAX];
	struct client_hello c;
	size_t len = long_hello(in, sizeof(in), 300, 100);
	ck_assert_int_eq(client_hello_scan(in, len, scratch, sizeof(scratch), &c), 0);
	in[105] = TLS_APPLICATION_DATA;
	ck_assert_int_eq(client_hello_scan(in, len, scratch, sizeof(scratch), &c), CSSL_E_TYPE);
}
END_TEST

/* A hello by hand, of which everything fits together. */
static void hand_made(uint8_t session_id_len, const char *extensions, size_t len, struct hello *out)
{
	struct wire_writer w = wire_writer(out->bytes, sizeof(out->bytes));
	size_t body = 2 + 32 + 1 + session_id_len + 4 + 2 + 2 + len;
	wire_put_u8(&w, TLS_HANDSHAKE);
	wire_put_u16(&w, 0x0301);
	wire_put_u16(&w, (uint16_t)(4 + body));
	wire_put_u8(&w, 1);
	wire_put_u24(&w, (uint32_t)body);
	wire_put_u16(&w, TLS12_VERSION_WIRE);
	wire_put_bytes(&w, scratch, 32);
	wire_put_u8(&w, session_id_len);
	wire_put_bytes(&w, scratch, session_id_len);
	wire_put_bytes(&w, "\0\2\xc0\x2f", 4);
	wire_put_bytes(&w, "\1\0", 2);
	wire_put_u16(&w, (uint16_t)len);
	wire_put_bytes(&w, extensions, len);
	out->len = (size_t)wire_writer_len(&w);
}

static int scan_extensions(const char *extensions, size_t len, struct client_hello *out)
{
	static struct hello h; /* @out points into it */
	hand_made(0, extensions, len, &h);
	return scan(&h, out);
}
/* Of a literal, without its end. */
#define SCAN(extensions, out) scan_extensions(extensions, sizeof(extensions) - 1, out)

#define BINDER_32 "\0400123456789abcdef0123456789abcdef" /* length and value */
#define PSK       "\0\x29\0\x2c\0\7\0\1x\1\2\3\4\0\x21" BINDER_32

START_TEST(a_hand_made_hello_is_read)
{
	struct client_hello c;
	ck_assert_int_eq(SCAN("", &c), 0);
	ck_assert_int_eq(SCAN("\0\x2b\0\5\4\3\3\3\4\0\x23\0\2tt" PSK, &c), 0);
	ck_assert_uint_eq(c.flags, CLIENT_HELLO_OFFERS_TLS13 | CLIENT_HELLO_HAS_TICKET_EXT | CLIENT_HELLO_HAS_TICKET |
					   CLIENT_HELLO_HAS_PSK);
	ck_assert_uint_eq(c.psk_len, 1);
}
END_TEST

START_TEST(a_refused_hello_offers_nothing)
{
	struct client_hello c;
	ck_assert_int_lt(SCAN(PSK PSK, &c), 0);
	ck_assert_uint_eq(c.flags, 0);
	ck_assert_ptr_null(c.psk);
	ck_assert_ptr_null(c.session_id);
}
END_TEST

START_TEST(nothing_may_come_after_the_psk)
{
	struct client_hello c;
	ck_assert_int_eq(SCAN(PSK, &c), 0);
	ck_assert_int_eq(SCAN(PSK "\0\x17\0\0", &c), CSSL_E_RANGE);
}
END_TEST

START_TEST(psk_identities_and_binders_must_match)
{
	struct client_hello c;
	/* two identities, one binder */
	ck_assert_int_eq(SCAN("\0\x29\0\x33\0\x0e\0\1x\1\2\3\4\0\1y\1\2\3\4\0\x21" BINDER_32, &c), CSSL_E_RANGE);
	/* no identity at all */
	ck_assert_int_eq(SCAN("\0\x29\0\x25\0\0\0\x21" BINDER_32, &c), CSSL_E_RANGE);
	/* an empty identity */
	ck_assert_int_eq(SCAN("\0\x29\0\x2b\0\6\0\0\1\2\3\4\0\x21" BINDER_32, &c), CSSL_E_RANGE);
	/* a binder shorter than any hash */
	ck_assert_int_eq(SCAN("\0\x29\0\x0d\0\7\0\1x\1\2\3\4\0\2\1b", &c), CSSL_E_RANGE);
	/* an identity cut in its age */
	ck_assert_int_eq(SCAN("\0\x29\0\x2a\0\5\0\1x\1\2\0\x21" BINDER_32, &c), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(an_extension_that_we_read_comes_only_once)
{
	struct client_hello c;
	ck_assert_int_eq(SCAN("\0\x23\0\0\0\x23\0\1t", &c), CSSL_E_RANGE);
	ck_assert_int_eq(SCAN("\0\x2b\0\3\2\3\4\0\x2b\0\3\2\3\3", &c), CSSL_E_RANGE);
}
END_TEST

START_TEST(lengths_that_do_not_fit_are_refused)
{
	struct client_hello c;
	/* the extension is longer than the list */
	ck_assert_int_eq(SCAN("\0\x23\0\2t", &c), CSSL_E_TRUNCATED);
	/* half an extension header */
	ck_assert_int_eq(SCAN("\0\x23\0", &c), CSSL_E_TRUNCATED);
	/* supported_versions: an odd list, an empty one, bytes behind it */
	ck_assert_int_eq(SCAN("\0\x2b\0\4\3\3\4\3", &c), CSSL_E_TRUNCATED);
	ck_assert_int_eq(SCAN("\0\x2b\0\1\0", &c), CSSL_E_TRUNCATED);
	ck_assert_int_eq(SCAN("\0\x2b\0\4\2\3\4\3", &c), CSSL_E_TRAILING);
}
END_TEST

START_TEST(a_server_name_must_be_a_name)
{
	struct client_hello c;
	ck_assert_int_eq(SCAN("\0\0\0\6\0\4\0\0\1a", &c), 0);
	ck_assert_uint_eq(c.server_name_len, 1);
	/* empty list, empty name, a zero byte in it, a name longer than its list */
	ck_assert_int_eq(SCAN("\0\0\0\2\0\0", &c), CSSL_E_TRUNCATED);
	ck_assert_int_eq(SCAN("\0\0\0\5\0\3\0\0\0", &c), CSSL_E_RANGE);
	ck_assert_int_eq(SCAN("\0\0\0\x08\0\6\0\0\3a\0b", &c), CSSL_E_RANGE);
	ck_assert_int_eq(SCAN("\0\0\0\6\0\4\0\0\2a", &c), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(the_first_host_name_counts)
{
	struct client_hello c;
	/* a name of another type before it, a second host name behind it */
	ck_assert_int_eq(SCAN("\0\0\0\x0e\0\x0c\7\0\1z\0\0\1a\0\0\1b", &c), 0);
	ck_assert_uint_eq(c.server_name_len, 1);
	ck_assert_int_eq(c.server_name[0], 'a');
}
END_TEST

START_TEST(a_tls12_hello_may_end_before_extensions)
{
	struct hello h;
	struct client_hello c;
	hand_made(0, "", 0, &h);
	h.len -= 2;
	wire_store_u16(h.bytes + 3, (uint16_t)(h.len - 5));
	wire_store_u16(h.bytes + 7, (uint16_t)(h.len - 9));
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.flags, 0);
}
END_TEST

START_TEST(bytes_behind_the_message_are_not_taken_for_extensions)
{
	struct hello h;
	struct client_hello c;
	hand_made(0, "", 0, &h);
	wire_store_u16(h.bytes + 7, (uint16_t)(h.len - 9 - 2));
	ck_assert_int_eq(scan(&h, &c), CSSL_E_TRAILING);
}
END_TEST

START_TEST(a_session_id_has_at_most_32_bytes)
{
	struct hello h;
	struct client_hello c;
	hand_made(32, "", 0, &h);
	ck_assert_int_eq(scan(&h, &c), 0);
	ck_assert_uint_eq(c.session_id_len, 32);
	hand_made(33, "", 0, &h);
	ck_assert_int_eq(scan(&h, &c), CSSL_E_RANGE);
}
END_TEST

/* Everything up to the extensions, as one whole record and message. */
static int scan_body(const char *body, size_t len)
{
	struct hello h;
	struct client_hello c;
	struct wire_writer w = wire_writer(h.bytes, sizeof(h.bytes));
	wire_put_u8(&w, TLS_HANDSHAKE);
	wire_put_u16(&w, 0x0301);
	wire_put_u16(&w, (uint16_t)(4 + len));
	wire_put_u8(&w, 1);
	wire_put_u24(&w, (uint32_t)len);
	wire_put_bytes(&w, body, len);
	h.len = (size_t)wire_writer_len(&w);
	return scan(&h, &c);
}
#define SCAN_BODY(body) scan_body(body, sizeof(body) - 1)
#define RANDOM          "0123456789abcdef0123456789abcdef"

START_TEST(every_part_before_the_extensions_is_checked)
{
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\2\xc0\x2f\1\0"), 0);
	/* another major version */
	ck_assert_int_eq(SCAN_BODY("\2\0" RANDOM "\0\0\2\xc0\x2f\1\0"), CSSL_E_VERSION);
	/* no suite, half a suite */
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\0\1\0"), CSSL_E_RANGE);
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\3\xc0\x2f\xc0\1\0"), CSSL_E_RANGE);
	/* no compression method */
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\2\xc0\x2f\0"), CSSL_E_RANGE);
	/* cut within the random, the suites, the compression methods */
	ck_assert_int_eq(SCAN_BODY("\3\3"
				   "0123"),
		CSSL_E_TRUNCATED);
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\4\xc0\x2f"), CSSL_E_TRUNCATED);
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\2\xc0\x2f\2\0"), CSSL_E_TRUNCATED);
	/* bytes behind the extensions, and extensions that are longer than the message */
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\2\xc0\x2f\1\0\0\0x"), CSSL_E_TRAILING);
	ck_assert_int_eq(SCAN_BODY("\3\3" RANDOM "\0\0\2\xc0\x2f\1\0\0\4\0\x17\0"), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(a_host_name_has_at_most_255_bytes)
{
	char extension[4 + 5 + 256] = "\0\0\1\4\1\2\0\0\xff";
	struct client_hello c;
	memset(extension + 9, 'a', 256);
	ck_assert_int_eq(scan_extensions(extension, 4 + 5 + 255, &c), 0);
	ck_assert_uint_eq(c.server_name_len, 255);
	memcpy(extension, "\0\0\1\5\1\3\0\1\0", 9);
	ck_assert_int_eq(scan_extensions(extension, 4 + 5 + 256, &c), CSSL_E_RANGE);
}
END_TEST

UNIT(client_hello)
{
	const TTest *facts[] = {
		a_fresh_tls13_hello_offers_no_resumption,
		a_fresh_tls12_hello_asks_for_a_ticket_and_has_none,
		a_tls12_hello_without_tickets_says_so,
		a_tls12_session_id_is_found,
		a_tls12_ticket_is_found,
		a_tls13_psk_identity_is_the_ticket,
		a_stateful_tls13_psk_identity_is_32_bytes,
		the_server_name_is_found,
		without_a_server_name_there_is_none,
		every_shorter_hello_is_incomplete,
		a_hello_over_several_records_is_read,
		a_hello_longer_than_the_scratch_is_refused,
		bytes_behind_the_hello_are_not_looked_at_but_in_its_record_refused,
		anything_but_a_hello_is_refused,
		a_hello_that_claims_more_than_32_KiB_is_refused_at_once,
		the_watch_ends_at_a_hello_that_claims_more_than_32_KiB,
		the_watch_looks_at_a_second_hello_and_at_nothing_behind_another_message,
		an_empty_handshake_record_is_refused,
		the_longest_hello_and_record_are_read_and_no_longer_ones,
		a_later_record_of_another_type_is_refused,
		a_hand_made_hello_is_read,
		a_refused_hello_offers_nothing,
		nothing_may_come_after_the_psk,
		psk_identities_and_binders_must_match,
		an_extension_that_we_read_comes_only_once,
		lengths_that_do_not_fit_are_refused,
		a_server_name_must_be_a_name,
		the_first_host_name_counts,
		a_tls12_hello_may_end_before_extensions,
		bytes_behind_the_message_are_not_taken_for_extensions,
		a_session_id_has_at_most_32_bytes,
		every_part_before_the_extensions_is_checked,
		a_host_name_has_at_most_255_bytes,
	};
	return suite_run("client_hello", facts, SUITE_LEN(facts));
}
