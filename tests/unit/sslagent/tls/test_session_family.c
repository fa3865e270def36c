/* test_session_family.c */
#include <check.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/handshake_internal.h"
#include "tests/unit/unit.h"

static const struct client_address clients[] = { { .len = 0 }, { { 192, 0, 2, 1 }, 4 },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 16 } };

START_TEST(a_family_is_read_as_it_was_written)
{
	SSL_SESSION *session = SSL_SESSION_new();
	struct session_family written, read;

	session_family_begin(&written, 1234567890123);
	written.client = clients[_i];
	ck_assert_int_eq(session_family_write(session, &written), 0);
	ck_assert_int_eq(session_family_read(session, &read), 0);
	ck_assert_mem_eq(read.id, written.id, FAMILY_ID_LEN);
	ck_assert_uint_eq(read.since_s, 1234567890123);
	ck_assert_uint_eq(read.client.len, clients[_i].len);
	ck_assert_mem_eq(read.client.bytes, clients[_i].bytes, clients[_i].len);
	ck_assert_int_eq(read.state, FAMILY_KNOWN);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(a_session_without_a_family_has_none)
{
	SSL_SESSION *session = SSL_SESSION_new();
	struct session_family read;

	ck_assert_int_eq(session_family_read(session, &read), CSSL_E_NOT_FOUND);
	SSL_SESSION_free(session);
}
END_TEST

/* version | id | time, and what is wrong with it */
static const size_t wrong_lens[] = { 1, 24, 26 };

START_TEST(appdata_of_another_length_is_not_ours)
{
	static const uint8_t data[32] = { 1 };
	SSL_SESSION *session = SSL_SESSION_new();
	struct session_family read;

	SSL_SESSION_set1_ticket_appdata(session, data, wrong_lens[_i]);
	ck_assert_int_eq(session_family_read(session, &read), CSSL_E_NOT_FOUND);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(appdata_of_another_version_is_not_ours)
{
	static const uint8_t data[25] = { 2 };
	SSL_SESSION *session = SSL_SESSION_new();
	struct session_family read;

	SSL_SESSION_set1_ticket_appdata(session, data, sizeof(data));
	ck_assert_int_eq(session_family_read(session, &read), CSSL_E_NOT_FOUND);
	SSL_SESSION_free(session);
}
END_TEST

START_TEST(ages_are_never_negative)
{
	struct session_family f = { .since_s = 1000 };
	struct session_facts facts = { .family_age_s = 600 };

	ck_assert_uint_eq(session_family_age_s(&f, 1500), 500);
	ck_assert_uint_eq(session_family_age_s(&f, 900), 0);
	ck_assert_uint_eq(session_family_age_s(&f, UINT64_MAX), UINT32_MAX);
	session_family_from_facts(&f, &facts, 1000);
	ck_assert_uint_eq(f.since_s, 400);
	session_family_from_facts(&f, &facts, 100);
	ck_assert_uint_eq(f.since_s, 0);
}
END_TEST

START_TEST(two_families_differ)
{
	struct session_family a, b;

	session_family_begin(&a, 1);
	session_family_begin(&b, 1);
	ck_assert_mem_ne(a.id, b.id, FAMILY_ID_LEN);
}
END_TEST

UNIT(session_family)
{
	Suite *s = suite_create("session_family");
	TCase *t = tcase_create("families");
	SRunner *r = srunner_create(s);

	tcase_add_loop_test(t, a_family_is_read_as_it_was_written, 0, 3);
	tcase_add_test(t, a_session_without_a_family_has_none);
	tcase_add_loop_test(t, appdata_of_another_length_is_not_ours, 0, 3);
	tcase_add_test(t, appdata_of_another_version_is_not_ours);
	tcase_add_test(t, ages_are_never_negative);
	tcase_add_test(t, two_families_differ);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
