/* test_body_room.c: facts of the memory that all messages share until they are stored. */
#include "proto/error.h"
#include "smtpproxy/sender/body_room.h"
#include "tests/unit/proto/suite.h"

static void on_change(void *ctx)
{
	unsigned *changes = ctx;
	++*changes;
}

START_TEST(what_does_not_fit_takes_nothing_and_makes_it_full)
{
	unsigned changes = 0;
	struct body_room r = { .most = 100, .on_change = on_change, .ctx = &changes };
	ck_assert_int_eq(body_room_take(&r, 100), 0);
	ck_assert_int_eq(r.state, BODY_ROOM_FREE);
	ck_assert_int_eq(body_room_take(&r, 1), CSSL_E_FULL);
	ck_assert_int_eq(body_room_take(&r, 1), CSSL_E_FULL);
	ck_assert_uint_eq(r.used, 100);
	ck_assert_int_eq(r.state, BODY_ROOM_FULL);
	ck_assert_uint_eq(changes, 1);
}
END_TEST

START_TEST(it_is_free_again_when_half_of_it_is)
{
	unsigned changes = 0;
	struct body_room r = { .most = 100, .on_change = on_change, .ctx = &changes };
	body_room_take(&r, 90);
	body_room_take(&r, 20);
	body_room_give(&r, 39);
	ck_assert_int_eq(r.state, BODY_ROOM_FULL);
	body_room_give(&r, 1);
	ck_assert_int_eq(r.state, BODY_ROOM_FREE);
	ck_assert_uint_eq(changes, 2);
	ck_assert_int_eq(body_room_take(&r, 50), 0);
}
END_TEST

START_TEST(a_message_larger_than_all_of_it_never_fits)
{
	struct body_room r = { .most = 100 };
	ck_assert_int_eq(body_room_take(&r, 101), CSSL_E_FULL);
	body_room_give(&r, 0);
	ck_assert_int_eq(r.state, BODY_ROOM_FREE);
}
END_TEST

int main(void)
{
	const TTest *facts[] = {
		what_does_not_fit_takes_nothing_and_makes_it_full,
		it_is_free_again_when_half_of_it_is,
		a_message_larger_than_all_of_it_never_fits,
	};
	return suite_run("body_room", facts, SUITE_LEN(facts));
}
