/* test_ownerships.c: facts of the ring of ownerships. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ragent/connection/ownerships.h"

static struct ownerships *o;
static struct ownership found[OWNERSHIPS_LISTED];

static void setup(void)
{
	o = ownerships_create();
	ck_assert_ptr_nonnull(o);
}

static void teardown(void)
{
	ownerships_destroy(o);
}

static struct connection_id id_of(uint32_t n)
{
	struct connection_id id = { { 0 } };

	memcpy(id.bytes, &n, sizeof n);
	return id;
}

static void note(uint32_t connection, uint16_t epoch)
{
	ownerships_note(
		o, &(struct ownership){ .connection = id_of(connection), .epoch = epoch, .cause = OWNERSHIP_MOVE });
}

static size_t look_up(uint32_t connection)
{
	const struct connection_id id = id_of(connection);

	return ownerships_of(o, &id, found);
}

START_TEST(a_connection_nobody_noted_has_none)
{
	note(1, 1);
	ck_assert_uint_eq(look_up(2), 0);
}
END_TEST

START_TEST(owners_come_back_oldest_first)
{
	note(1, 1);
	note(2, 1);
	note(1, 2);
	note(1, 3);
	ck_assert_uint_eq(look_up(1), 3);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(found[i].epoch, i + 1);
}
END_TEST

START_TEST(the_newest_are_listed_of_one_that_moved_often)
{
	for (uint16_t epoch = 1; epoch <= OWNERSHIPS_LISTED + 10; epoch++)
		note(1, epoch);
	ck_assert_uint_eq(look_up(1), OWNERSHIPS_LISTED);
	ck_assert_uint_eq(found[0].epoch, 11);
	ck_assert_uint_eq(found[OWNERSHIPS_LISTED - 1].epoch, OWNERSHIPS_LISTED + 10);
}
END_TEST

START_TEST(the_oldest_is_forgotten_when_the_ring_is_full)
{
	note(1, 1);
	for (uint32_t i = 0; i < OWNERSHIPS_KEPT - 1; i++)
		note(100 + i, 1);
	ck_assert_uint_eq(look_up(1), 1);
	note(2, 1);
	ck_assert_uint_eq(look_up(1), 0);
	ck_assert_uint_eq(look_up(2), 1);
}
END_TEST

START_TEST(destroying_nothing_is_legal)
{
	ownerships_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ownerships");
	TCase *t = tcase_create("ring");
	SRunner *r = srunner_create(s);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_connection_nobody_noted_has_none);
	tcase_add_test(t, owners_come_back_oldest_first);
	tcase_add_test(t, the_newest_are_listed_of_one_that_moved_often);
	tcase_add_test(t, the_oldest_is_forgotten_when_the_ring_is_full);
	tcase_add_test(t, destroying_nothing_is_legal);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	const int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
