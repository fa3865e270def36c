/* test_privileges.c: facts of what RAgent may read. The ones about root need root; others skip them by name. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/report/log.h"
#include "proto/error.h"
#include "ragent/process/privileges.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static char key[128], error[256];

static void make_key(mode_t mode)
{
	snprintf(key, sizeof key, "%s/agents.key", temp_dir());
	FILE *f = fopen(key, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert_int_eq(chmod(key, mode), 0);
}

START_TEST(root_becomes_another_user_for_good)
{
	enum privileges p;

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(privileges_drop(NULL, &p, error, sizeof error), 0);
	ck_assert_int_eq(p, PRIVILEGES_DROPPED);
	ck_assert_int_ne(geteuid(), 0);
	ck_assert_int_ne(getegid(), 0);
	ck_assert_int_lt(setuid(0), 0);
	ck_assert_int_lt(seteuid(0), 0);
}
END_TEST

START_TEST(a_key_of_another_user_is_out_of_reach_after_the_drop)
{
	enum privileges p;

	if (geteuid() != 0)
		return;
	make_key(0600);
	ck_assert_int_eq(privileges_drop(NULL, &p, error, sizeof error), 0);
	ck_assert_int_eq(privileges_check_key(key, p, error, sizeof error), 0);
}
END_TEST

START_TEST(a_key_that_can_still_be_read_after_the_drop_is_an_error_that_names_it)
{
	enum privileges p;

	if (geteuid() != 0)
		return;
	make_key(0644);
	ck_assert_int_eq(privileges_drop(NULL, &p, error, sizeof error), 0);
	ck_assert_int_eq(privileges_check_key(key, p, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_ptr_nonnull(strstr(error, key));
}
END_TEST

START_TEST(an_ordinary_user_is_only_warned)
{
	make_key(0600);
	ck_assert_int_eq(privileges_check_key(key, PRIVILEGES_ORDINARY, error, sizeof error), 0);
}
END_TEST

START_TEST(an_unknown_user_or_root_is_refused)
{
	enum privileges p;

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(privileges_drop("no-such-user", &p, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_ptr_nonnull(strstr(error, "no-such-user"));
	ck_assert_int_eq(privileges_drop("root", &p, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_int_eq(geteuid(), 0);
}
END_TEST

/* Made and removed outside of the facts' own processes: these cannot remove anything any more. */
static void make_folder(void)
{
	ck_assert_int_eq(chmod(temp_dir(), 0755), 0);
}

UNIT(privileges)
{
	const TTest *const facts[] = {
		root_becomes_another_user_for_good,
		a_key_of_another_user_is_out_of_reach_after_the_drop,
		a_key_that_can_still_be_read_after_the_drop_is_an_error_that_names_it,
		an_ordinary_user_is_only_warned,
		an_unknown_user_or_root_is_refused,
	};
	Suite *suite = suite_create("privileges");
	TCase *all = tcase_create("privileges");

	if (geteuid() != 0)
		puts("skipped, needs root: all but an_ordinary_user_is_only_warned");
	log_set_level(LOG_ERROR + 1);
	suite_add_tcase(suite, all);
	tcase_add_unchecked_fixture(all, make_folder, temp_dir_remove);
	for (size_t i = 0; i < SUITE_LEN(facts); i++)
		tcase_add_test(all, facts[i]);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
