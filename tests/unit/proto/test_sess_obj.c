/* test_sess_obj.c: export and import of every suite, and bytes that are no object. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/sess_obj_bytes.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(an_exported_object_is_imported)
{
	static const enum sample_parts parts[] = { SAMPLE_FACTS, SAMPLE_LIVE, SAMPLE_RESUMPTION, SAMPLE_BOTH };
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count * SUITE_LEN(parts); i++) {
		sess_obj_sample_fill(&s, &suites[i / SUITE_LEN(parts)], parts[i % SUITE_LEN(parts)]);
		size_t len = encoded(&s.object, blob);
		ck_assert_int_eq(sess_obj_decode(blob, len, &out), 0);
		ck_assert(sess_obj_equal(&s.object, &out));
		sess_obj_destroy(&out);
	}
}
END_TEST

START_TEST(an_object_with_nothing_optional_is_imported)
{
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];

	sess_obj_sample_fill(&s, cipher_suite_find(0xcca8), SAMPLE_LIVE);
	s.object.certificate = NULL;
	s.object.certificate_len = 0;
	s.object.facts.session_id_len = s.object.facts.client.len = s.object.facts.context_len = 0;
	s.object.facts.server_name[0] = s.object.facts.alpn[0] = '\0';
	s.object.facts.verify_result = 0;
	s.live.randoms.len = s.live.randoms.secret_len = 0;
	s.live.max_fragment = 0;
	s.live.read_sequence = s.live.write_sequence = 0;
	size_t len = encoded(&s.object, blob);
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), 0);
	ck_assert(sess_obj_equal(&s.object, &out));
	ck_assert_ptr_null(out.certificate);
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(the_largest_values_are_imported)
{
	static uint8_t der[SESSION_DER_MAX], blob[SESS_OBJ_LEN_MAX];
	struct sess_obj_sample s;
	struct sess_obj out;

	sample(&s, 0x1302);
	s.object.session = s.object.certificate = der;
	s.object.session_len = s.object.certificate_len = sizeof(der);
	s.object.session_remaining_s = SESSION_LIFETIME_MAX_S;
	memset(s.object.facts.server_name, 'n', NAME_MAX_LEN);
	memset(s.object.facts.alpn, 'a', NAME_MAX_LEN);
	memset(s.object.facts.origin, 'o', sizeof(s.object.facts.origin) - 1);
	s.object.facts.verify_result = INT32_MIN;
	s.live.epoch = UINT16_MAX;
	s.live.max_fragment = 16384;
	s.live.read_generation = s.live.write_generation = s.live.remaining_s = UINT32_MAX;
	s.live.read_sequence = s.live.write_sequence = UINT64_MAX - 1;
	ptrdiff_t len = sess_obj_encode(&s.object, blob, sizeof(blob));
	ck_assert_int_gt(len, 2 * SESSION_DER_MAX);
	ck_assert_int_eq(sess_obj_decode(blob, (size_t)len, &out), 0);
	ck_assert(sess_obj_equal(&s.object, &out));
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(the_length_is_told_before)
{
	struct sess_obj_sample s;
	uint8_t blob[BLOB_MAX];

	sample(&s, 0x1301);
	ptrdiff_t len = sess_obj_encoded_len(&s.object);
	ck_assert_int_eq(sess_obj_encode(&s.object, blob, (size_t)len), len);
	ck_assert_int_eq(sess_obj_encode(&s.object, blob, (size_t)len - 1), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(an_imported_object_owns_what_it_points_to)
{
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];

	sample(&s, 0x1301);
	size_t len = encoded(&s.object, blob);
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), 0);
	memset(blob, 0, sizeof(blob));
	ck_assert(sess_obj_equal(&s.object, &out));
	sess_obj_destroy(&out);
	ck_assert_ptr_null(out.live);
	sess_obj_destroy(&out);
	sess_obj_destroy(NULL);
}
END_TEST

/* A cut between two fields leaves a message without the later ones; sealing protects against that. */
START_TEST(a_cut_object_is_refused_or_lacks_something)
{
	struct sess_obj_sample s;
	uint8_t blob[BLOB_MAX];

	sample(&s, TLS13_AES_128);
	size_t whole = encoded(&s.object, blob);
	for (size_t len = 0; len < whole; len++) {
		uint8_t *exact = malloc(len + 1); /* so that a memory checker sees a read behind it */
		struct sess_obj out;
		memcpy(exact + 1, blob, len);
		if (sess_obj_decode(exact + 1, len, &out) == 0) {
			ck_assert(!sess_obj_equal(&s.object, &out));
			sess_obj_destroy(&out);
		}
		free(exact);
	}
}
END_TEST

START_TEST(bytes_that_are_no_message_are_refused)
{
	static const uint8_t no_tag[] = { 0 }, open_varint[] = { 8, 0xff }, long_field[] = { 0x22, 200, 1 };
	struct sess_obj out;

	ck_assert_int_eq(sess_obj_decode(no_tag, sizeof(no_tag), &out), CSSL_E_TRUNCATED);
	ck_assert_int_eq(sess_obj_decode(open_varint, sizeof(open_varint), &out), CSSL_E_TRUNCATED);
	ck_assert_int_eq(sess_obj_decode(long_field, sizeof(long_field), &out), CSSL_E_TRUNCATED);
	ck_assert_int_eq(sess_obj_decode(no_tag, 0, &out), CSSL_E_VERSION);
}
END_TEST

START_TEST(an_object_longer_than_any_is_refused_unread)
{
	static const uint8_t long_one[SESS_OBJ_LEN_MAX + 1];
	struct sess_obj out;

	ck_assert_int_eq(sess_obj_decode(long_one, sizeof(long_one), &out), CSSL_E_TOO_LONG);
}
END_TEST

UNIT(sess_obj)
{
	const TTest *const facts[] = {
		an_exported_object_is_imported,
		an_object_with_nothing_optional_is_imported,
		the_largest_values_are_imported,
		the_length_is_told_before,
		an_imported_object_owns_what_it_points_to,
		a_cut_object_is_refused_or_lacks_something,
		bytes_that_are_no_message_are_refused,
		an_object_longer_than_any_is_refused_unread,
	};

	return suite_run("sess_obj", facts, SUITE_LEN(facts));
}
