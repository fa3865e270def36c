/* test_body_room.c: facts of the memory that all messages share until they are stored. */
#include "proto/error.h"
#include "smtpproxy/sender/body_room.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct body_room room;
static unsigned changes;

static void on_change(void *ctx)
{
	unsigned *n = ctx;
	++*n;
}

/* A message of 192.0.2.@host. */
static struct body_source *enter(uint8_t host)
{
	const struct client_address source = { .bytes = { 192, 0, 2, host }, .len = 4 };
	return body_room_enter(&room, &source);
}

/* A message of a host in a /64. */
static struct body_source *enter_ipv6(uint8_t net, uint8_t host)
{
	const struct client_address source = { .bytes = { [0] = 0x20, [7] = net, [15] = host }, .len = 16 };
	return body_room_enter(&room, &source);
}

static void leave(struct body_source *s, size_t bytes)
{
	body_room_give(&room, s, bytes);
	body_room_leave(&room, s);
}

static void begin(void)
{
	changes = 0;
	body_room_begin(&room, 100, on_change, &changes);
}

static void end(void)
{
	ck_assert_uint_eq(room.used, 0);
	for (unsigned i = 0; i < BODY_ROOM_BUCKETS; i++)
		ck_assert_ptr_null(room.sources[i]);
}

START_TEST(a_message_that_does_not_fit_takes_nothing_and_makes_the_room_full)
{
	struct body_source *a = enter(1);
	ck_assert_int_eq(body_room_take(&room, a, 100), 0);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
	ck_assert_int_eq(body_room_take(&room, a, 1), CSSL_E_FULL);
	ck_assert_int_eq(body_room_take(&room, a, 1), CSSL_E_FULL);
	ck_assert_uint_eq(room.used, 100);
	ck_assert_int_eq(room.state, BODY_ROOM_FULL);
	ck_assert_uint_eq(changes, 1);
	leave(a, 100);
}
END_TEST

START_TEST(the_room_is_free_again_when_half_of_it_is)
{
	struct body_source *a = enter(1);
	body_room_take(&room, a, 90);
	body_room_take(&room, a, 20);
	body_room_give(&room, a, 39);
	ck_assert_int_eq(room.state, BODY_ROOM_FULL);
	body_room_give(&room, a, 1);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
	ck_assert_uint_eq(changes, 2);
	ck_assert_int_eq(body_room_take(&room, a, 50), 0);
	leave(a, 100);
}
END_TEST

START_TEST(a_message_larger_than_all_of_it_never_fits)
{
	struct body_source *a = enter(1);
	ck_assert_int_eq(body_room_take(&room, a, 101), CSSL_E_FULL);
	leave(a, 0);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
}
END_TEST

START_TEST(a_source_with_several_messages_leaves_half_of_it)
{
	struct body_source *a = enter(1), *b;
	ck_assert_ptr_eq(enter(1), a);
	ck_assert_int_eq(body_room_take(&room, a, 50), 0);
	ck_assert_int_eq(body_room_take(&room, a, 1), CSSL_E_FULL);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
	b = enter(2);
	ck_assert_int_eq(body_room_take(&room, b, 50), 0);
	leave(b, 50);
	body_room_leave(&room, a);
	leave(a, 50);
}
END_TEST

START_TEST(above_half_each_source_has_a_quarter)
{
	struct body_source *a = enter(1), *b = enter(2), *c = enter(2);
	ck_assert_ptr_eq(b, c);
	body_room_take(&room, a, 60);
	ck_assert_int_eq(body_room_take(&room, b, 25), 0);
	ck_assert_int_eq(body_room_take(&room, b, 1), CSSL_E_FULL);
	ck_assert_uint_eq(changes, 0);
	body_room_leave(&room, c);
	ck_assert_int_eq(body_room_take(&room, b, 15), 0); /* its only message now */
	leave(a, 60);
	leave(b, 40);
}
END_TEST

START_TEST(the_room_is_short_while_more_than_half_of_it_is_used)
{
	struct body_source *a = enter(1);
	ck_assert_int_eq(body_room_take(&room, a, 50), 0);
	ck_assert(!body_room_is_short(&room));
	ck_assert_int_eq(body_room_take(&room, a, 1), 0);
	ck_assert(body_room_is_short(&room));
	leave(a, 51);
}
END_TEST

START_TEST(a_share_takes_and_gives_what_it_is_resized_by)
{
	const struct client_address source = { .bytes = { 192, 0, 2, 1 }, .len = 4 };
	struct body_share share = { 0 };
	body_share_end(&room, &share);
	ck_assert_int_eq(body_share_begin(&room, &share, &source), 0);
	ck_assert_int_eq(body_share_resize(&room, &share, 80), 0);
	ck_assert_int_eq(body_share_resize(&room, &share, 101), CSSL_E_FULL);
	ck_assert_uint_eq(room.used, 80);
	ck_assert_int_eq(body_share_resize(&room, &share, 30), 0);
	ck_assert_uint_eq(room.used, 30);
	body_share_end(&room, &share);
}
END_TEST

START_TEST(hosts_of_one_ipv6_net_are_one_source)
{
	struct body_source *a = enter_ipv6(1, 1), *b = enter_ipv6(1, 2), *c = enter_ipv6(2, 1);
	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, c);
	leave(a, 0);
	leave(b, 0);
	leave(c, 0);
}
END_TEST

UNIT(body_room)
{
	const TTest *facts[] = {
		a_message_that_does_not_fit_takes_nothing_and_makes_the_room_full,
		the_room_is_free_again_when_half_of_it_is,
		a_message_larger_than_all_of_it_never_fits,
		a_source_with_several_messages_leaves_half_of_it,
		above_half_each_source_has_a_quarter,
		the_room_is_short_while_more_than_half_of_it_is_used,
		a_share_takes_and_gives_what_it_is_resized_by,
		hosts_of_one_ipv6_net_are_one_source,
	};
	TCase *all = tcase_create("body_room");
	tcase_add_checked_fixture(all, begin, end);
	return suite_run_case("body_room", all, facts, SUITE_LEN(facts));
}
