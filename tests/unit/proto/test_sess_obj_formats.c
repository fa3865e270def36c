/* test_sess_obj_formats.c: fields of later formats, and the stored blobs of released formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/sess_obj.pb-c.h"
#include "tests/source_root.h"
#include "tests/unit/proto/sess_obj_bytes.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* Field 500, a string, at the end of the message. */
static size_t append_unknown(uint8_t *blob, size_t len)
{
	static const uint8_t unknown[] = { 0xa2, 0x1f, 5, 'l', 'a', 't', 'e', 'r' };

	memcpy(blob + len, unknown, sizeof(unknown));
	return len + sizeof(unknown);
}

START_TEST(this_format_has_no_unknown_fields_and_the_next_may)
{
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];

	sample(&s, TLS13_AES_128);
	size_t len = append_unknown(blob, encoded(&s.object, blob));
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), CSSL_E_TRAILING);
	ck_assert_uint_eq(blob[0], 8);
	blob[1] = SESS_OBJ_FORMAT_NEXT;
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), 0);
	ck_assert(sess_obj_equal(&s.object, &out));
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(a_format_has_no_unknown_fields_in_its_parts_either)
{
	static const uint8_t unknown[] = { 0xa2, 0x1f, 0 };
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];

	sample(&s, TLS13_AES_128);
	size_t len = encoded(&s.object, blob);
	/* a second piece of field 16 (live) is merged into the first */
	blob[len++] = 0x82;
	blob[len++] = 0x01;
	blob[len++] = sizeof(unknown);
	memcpy(blob + len, unknown, sizeof(unknown));
	len += sizeof(unknown);
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), CSSL_E_TRAILING);
}
END_TEST

/* Each unknown field would cost protobuf-c a dozen times its length. */
START_TEST(a_crowd_of_unknown_fields_gets_no_more_memory_than_its_length_is_worth)
{
	static uint8_t blob[SESS_OBJ_LEN_MAX];
	struct sess_obj_sample s;
	struct sess_obj out;

	sample(&s, TLS13_AES_128);
	size_t len = encoded(&s.object, blob);
	blob[1] = SESS_OBJ_FORMAT_NEXT;
	for (; len + 3 <= sizeof(blob); len += 3)
		memcpy(blob + len, (const uint8_t[]){ 0xa2, 0x1f, 0 }, 3);
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), CSSL_E_TOO_LONG);
}
END_TEST

static size_t read_blob(unsigned format, const char *name, uint8_t out[static BLOB_MAX])
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sess_obj_format%u_%s", SOURCE_ROOT "/tests/unit/proto/data", format, name);
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s", path);
	size_t len = fread(out, 1, BLOB_MAX, file);
	fclose(file);
	ck_assert_uint_gt(len, 0);
	return len;
}

START_TEST(stored_blobs_are_imported)
{
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		size_t len = read_blob(1, suites[i].name, blob);
		sess_obj_sample_fill(&s, &suites[i], SAMPLE_BOTH);
		ck_assert_int_eq(sess_obj_decode(blob, len, &out), 0);
		ck_assert(sess_obj_equal(&s.object, &out));
		sess_obj_destroy(&out);
	}
}
END_TEST

START_TEST(export_writes_the_stored_blobs)
{
	struct sess_obj_sample s;
	uint8_t stored[BLOB_MAX], written[BLOB_MAX];
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		size_t len = read_blob(1, suites[i].name, stored);
		sess_obj_sample_fill(&s, &suites[i], SAMPLE_BOTH);
		ck_assert_uint_eq(encoded(&s.object, written), len);
		ck_assert_mem_eq(written, stored, len);
	}
}
END_TEST

START_TEST(a_stored_blob_of_the_next_format_with_a_field_of_its_own_is_imported)
{
	struct sess_obj_sample s;
	struct sess_obj out;
	uint8_t blob[BLOB_MAX];
	size_t len = read_blob(2, "TLS_AES_128_GCM_SHA256", blob);

	sample(&s, TLS13_AES_128);
	ck_assert_int_eq(sess_obj_decode(blob, len, &out), 0);
	ck_assert(sess_obj_equal(&s.object, &out));
	sess_obj_destroy(&out);
}
END_TEST

UNIT(sess_obj_formats)
{
	const TTest *const facts[] = {
		this_format_has_no_unknown_fields_and_the_next_may,
		a_format_has_no_unknown_fields_in_its_parts_either,
		a_crowd_of_unknown_fields_gets_no_more_memory_than_its_length_is_worth,
		stored_blobs_are_imported,
		export_writes_the_stored_blobs,
		a_stored_blob_of_the_next_format_with_a_field_of_its_own_is_imported,
	};
	TCase *all = tcase_create("sess_obj_formats");

	return suite_run_case("sess_obj_formats", all, facts, SUITE_LEN(facts));
}
