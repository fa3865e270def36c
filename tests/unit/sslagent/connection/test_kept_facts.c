/* test_kept_facts.c: facts of the facts of a session that a connection keeps. */
#include <stdlib.h>
#include <string.h>

#include "proto/cipher_suite.h"
#include "proto/sealed_copy.h"
#include "sslagent/connection/kept_facts.h"
#include "tests/unit/proto/sess_obj_samples.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static struct slabs blocks;
static struct kept_facts kept;
static struct sess_obj_sample sample;

static void setup(void)
{
	slabs_init(&blocks, KEPT_FACTS_BLOCK);
	kept = (struct kept_facts){ 0 };
	sess_obj_sample_fill(&sample, cipher_suite_find(0x1302), SAMPLE_LIVE);
}

static void teardown(void)
{
	kept_facts_drop(&kept, &blocks);
	slabs_clear(&blocks);
}

START_TEST(facts_come_back_without_keys)
{
	struct sess_obj out;

	ck_assert_int_eq(kept_facts_keep(&kept, &blocks, &sample.object), 0);
	ck_assert_ptr_nonnull(sample.object.live); /* the caller's object still has its own */
	ck_assert_int_eq(kept_facts_read(&kept, &out), 0);
	ck_assert_ptr_null(out.live);
	ck_assert_str_eq(out.facts.listener, sample.object.facts.listener);
	ck_assert_str_eq(out.facts.alpn, sample.object.facts.alpn);
	ck_assert_uint_eq(out.certificate_len, sample.object.certificate_len);
	ck_assert_int_eq(memcmp(out.certificate, sample.certificate, out.certificate_len), 0);
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(short_facts_are_in_a_block)
{
	sample.object.certificate = NULL;
	sample.object.certificate_len = 0;
	sample.object.facts.server_name[0] = sample.object.facts.alpn[0] = '\0';
	ck_assert_int_eq(kept_facts_keep(&kept, &blocks, &sample.object), 0);
	ck_assert_uint_le(kept.len, KEPT_FACTS_BLOCK);
	kept_facts_drop(&kept, &blocks);
	ck_assert_ptr_null(kept.encoded);
}
END_TEST

START_TEST(a_certificate_that_is_too_long_for_a_copy_is_left_out)
{
	static uint8_t der[SEALED_COPY_FACTS_MAX];
	struct sess_obj out;

	sample.object.certificate = der;
	sample.object.certificate_len = sizeof der;
	ck_assert_int_eq(kept_facts_keep(&kept, &blocks, &sample.object), 0);
	ck_assert_ptr_null(sample.object.certificate);
	ck_assert_uint_le(kept.len, SEALED_COPY_FACTS_MAX);
	ck_assert_int_eq(kept_facts_read(&kept, &out), 0);
	ck_assert_ptr_null(out.certificate);
	sess_obj_destroy(&out);
}
END_TEST

static void add_facts(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, facts_come_back_without_keys);
	tcase_add_test(t, short_facts_are_in_a_block);
	tcase_add_test(t, a_certificate_that_is_too_long_for_a_copy_is_left_out);
}

UNIT(kept_facts)
{
	return run_suite("kept_facts", add_facts);
}
