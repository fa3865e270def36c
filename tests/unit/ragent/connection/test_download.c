/* test_download.c: facts of the data that an owner left for a download. */
#include <string.h>

#include "proto/error.h"
#include "ragent/connection/download.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(it_is_kept_as_it_came)
{
	struct download *d = NULL;

	ck_assert_int_eq(download_make(&d, NULL, (const uint8_t *)"second", 6), 0);
	ck_assert_uint_eq(d->len, 6);
	ck_assert_mem_eq(d->data, "second", 6);
	download_drop(&d, NULL);
	ck_assert_ptr_null(d);
	download_drop(&d, NULL);
}
END_TEST

START_TEST(nothing_and_too_much_are_refused)
{
	static const uint8_t much[DOWNLOAD_MAX_LEN + 1];
	struct download *d = NULL;

	ck_assert_int_eq(download_make(&d, NULL, much, DOWNLOAD_MAX_LEN + 1), CSSL_E_TOO_LONG);
	ck_assert_int_eq(download_make(&d, NULL, much, 0), CSSL_E_TOO_LONG);
	ck_assert_ptr_null(d);
	ck_assert_int_eq(download_make(&d, NULL, much, DOWNLOAD_MAX_LEN), 0);
	ck_assert_uint_eq(d->len, DOWNLOAD_MAX_LEN);
	download_drop(&d, NULL);
}
END_TEST

UNIT(download)
{
	const TTest *const facts[] = { it_is_kept_as_it_came, nothing_and_too_much_are_refused };

	return suite_run("download", facts, SUITE_LEN(facts));
}
