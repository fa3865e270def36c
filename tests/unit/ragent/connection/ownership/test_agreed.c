/* test_agreed.c: facts of the values that a handshake agreed on. */
#include <string.h>

#include "proto/error.h"
#include "proto/sess_obj.h"
#include "ragent/connection/ownership/agreed.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static uint8_t bytes[SESSION_ID_LEN + FAMILY_ID_LEN + 1];

static Cssl__Handshake handshake(void)
{
	Cssl__Handshake h = CSSL__HANDSHAKE__INIT;

	memset(bytes, 7, sizeof bytes);
	h.protocol_version = 0x0304;
	h.cipher_suite = 0x1301;
	h.resumed = 1;
	h.alpn = (char *)"h2";
	h.server_name = (char *)"www.example";
	h.session_id = (ProtobufCBinaryData){ SESSION_ID_LEN, bytes };
	h.family_id = (ProtobufCBinaryData){ FAMILY_ID_LEN, bytes };
	return h;
}

START_TEST(the_values_of_an_owner_are_kept)
{
	const Cssl__Handshake h = handshake();
	struct agreed *a;

	ck_assert_int_eq(agreed_read(NULL, &h, &a), 0);
	ck_assert_str_eq(agreed_alpn(a), "h2");
	ck_assert_str_eq(agreed_server_name(a), "www.example");
	ck_assert_uint_eq(a->protocol_version, 0x0304);
	ck_assert_uint_eq(a->cipher_suite, 0x1301);
	ck_assert_uint_eq(a->resumed, 1);
	ck_assert_uint_eq(a->session_id_len, SESSION_ID_LEN);
	ck_assert_mem_eq(a->session_id, bytes, SESSION_ID_LEN);
	ck_assert_mem_eq(a->family_id, bytes, FAMILY_ID_LEN);
	agreed_destroy(NULL, a);
}
END_TEST

START_TEST(ids_of_another_length_are_refused)
{
	Cssl__Handshake h = handshake();
	struct agreed *a;

	h.session_id.len = SESSION_ID_LEN + 1;
	ck_assert_int_eq(agreed_read(NULL, &h, &a), CSSL_E_RANGE);
	h = handshake();
	h.family_id.len = FAMILY_ID_LEN - 1;
	ck_assert_int_eq(agreed_read(NULL, &h, &a), CSSL_E_RANGE);
	h = handshake();
	h.ja4 = (ProtobufCBinaryData){ sizeof(struct ja4) - 1, bytes };
	ck_assert_int_eq(agreed_read(NULL, &h, &a), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_name_that_is_too_long_is_refused)
{
	static char name[NAME_MAX_LEN + 1];
	struct agreed *a;

	memset(name, 'x', sizeof name);
	ck_assert_int_eq(agreed_create(NULL, name, sizeof name, "", 0, &a), CSSL_E_TOO_LONG);
	ck_assert_int_eq(agreed_create(NULL, "", 0, name, sizeof name, &a), CSSL_E_TOO_LONG);
	ck_assert_int_eq(agreed_create(NULL, name, NAME_MAX_LEN, "", 0, &a), 0);
	ck_assert_uint_eq(strlen(agreed_server_name(a)), NAME_MAX_LEN);
	agreed_destroy(NULL, a);
}
END_TEST

START_TEST(no_names_are_empty_ones)
{
	struct agreed *a;

	ck_assert_int_eq(agreed_create(NULL, NULL, 0, NULL, 0, &a), 0);
	ck_assert_str_eq(agreed_alpn(a), "");
	ck_assert_str_eq(agreed_server_name(a), "");
	agreed_destroy(NULL, a);
	agreed_destroy(NULL, NULL);
}
END_TEST

UNIT(agreed)
{
	const TTest *const facts[] = {
		the_values_of_an_owner_are_kept,
		ids_of_another_length_are_refused,
		a_name_that_is_too_long_is_refused,
		no_names_are_empty_ones,
	};

	return suite_run("agreed", facts, SUITE_LEN(facts));
}
