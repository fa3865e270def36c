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
static struct body_share enter(uint8_t host)
{
	const struct client_address source = { .bytes = { 192, 0, 2, host }, .len = 4 };
	struct body_share share;
	ck_assert_int_eq(body_share_begin(&room, &share, &source), 0);
	return share;
}

/* A message of a host in a /64. */
static struct body_share enter_ipv6(uint8_t net, uint8_t host)
{
	const struct client_address source = { .bytes = { [0] = 0x20, [7] = net, [15] = host }, .len = 16 };
	struct body_share share;
	ck_assert_int_eq(body_share_begin(&room, &share, &source), 0);
	return share;
}

static int take(struct body_share *s, size_t bytes)
{
	return body_share_resize(s, s->taken + bytes);
}

static void begin(void)
{
	changes = 0;
	body_room_begin(&room, 100, on_change, &changes);
}

static void end(void)
{
	ck_assert_uint_eq(room.used, 0);
	ck_assert_uint_eq(room.sources.count, 0);
}

START_TEST(a_message_that_does_not_fit_takes_nothing_and_makes_the_room_full)
{
	struct body_share a = enter(1);
	ck_assert_int_eq(take(&a, 100), 0);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
	ck_assert_int_eq(take(&a, 1), CSSL_E_FULL);
	ck_assert_int_eq(take(&a, 1), CSSL_E_FULL);
	ck_assert_uint_eq(room.used, 100);
	ck_assert_int_eq(room.state, BODY_ROOM_FULL);
	ck_assert_uint_eq(changes, 1);
	body_share_end(&a);
}
END_TEST

START_TEST(the_room_is_free_again_when_half_of_it_is)
{
	struct body_share a = enter(1);
	take(&a, 90);
	take(&a, 20);
	body_share_resize(&a, a.taken - 39);
	ck_assert_int_eq(room.state, BODY_ROOM_FULL);
	body_share_resize(&a, a.taken - 1);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
	ck_assert_uint_eq(changes, 2);
	ck_assert_int_eq(take(&a, 50), 0);
	body_share_end(&a);
}
END_TEST

START_TEST(a_message_larger_than_all_of_it_never_fits)
{
	struct body_share a = enter(1);
	ck_assert_int_eq(take(&a, 101), CSSL_E_FULL);
	body_share_end(&a);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
}
END_TEST

START_TEST(a_source_with_several_messages_leaves_half_of_it)
{
	struct body_share a = enter(1), c = enter(1), b;
	ck_assert_ptr_eq(c.source, a.source);
	ck_assert_int_eq(take(&a, 50), 0);
	ck_assert_int_eq(take(&a, 1), CSSL_E_FULL);
	ck_assert_int_eq(room.state, BODY_ROOM_FREE);
	b = enter(2);
	ck_assert_int_eq(take(&b, 50), 0);
	body_share_end(&b);
	body_share_end(&c);
	body_share_end(&a);
}
END_TEST

START_TEST(above_half_each_source_has_a_quarter)
{
	struct body_share a = enter(1), b = enter(2), c = enter(2);
	ck_assert_ptr_eq(b.source, c.source);
	take(&a, 60);
	ck_assert_int_eq(take(&b, 25), 0);
	ck_assert_int_eq(take(&b, 1), CSSL_E_FULL);
	ck_assert_uint_eq(changes, 0);
	body_share_end(&c);
	ck_assert_int_eq(take(&b, 15), 0); /* its only message now */
	body_share_end(&a);
	body_share_end(&b);
}
END_TEST

START_TEST(the_room_is_short_while_more_than_half_of_it_is_used)
{
	struct body_share a = enter(1);
	ck_assert_int_eq(take(&a, 50), 0);
	ck_assert(!body_room_is_short(&room));
	ck_assert_int_eq(take(&a, 1), 0);
	ck_assert(body_room_is_short(&room));
	body_share_end(&a);
}
END_TEST

START_TEST(a_share_takes_and_gives_what_it_is_resized_by)
{
	const struct client_address source = { .bytes = { 192, 0, 2, 1 }, .len = 4 };
	struct body_share share = { 0 };
	body_share_end(&share);
	ck_assert_int_eq(body_share_begin(&room, &share, &source), 0);
	ck_assert_int_eq(body_share_resize(&share, 80), 0);
	ck_assert_int_eq(body_share_resize(&share, 101), CSSL_E_FULL);
	ck_assert_uint_eq(room.used, 80);
	ck_assert_int_eq(body_share_resize(&share, 30), 0);
	ck_assert_uint_eq(room.used, 30);
	body_share_end(&share);
}
END_TEST

START_TEST(bytes_that_a_message_gets_take_its_room_or_nothing)
{
	const struct client_address source = { .bytes = { 192, 0, 2, 1 }, .len = 4 };
	struct body_share share;
	struct message m = { 0 };
	static const char zeros[80];
	ck_assert_int_eq(body_share_begin(&room, &share, &source), 0);
	ck_assert_int_eq(body_share_resize(&share, 30), 0); /* something else of that message */
	ck_assert_int_eq(body_share_add(&share, &m, "four", 4, 60), 0);
	ck_assert_uint_eq(share.taken, 90);
	ck_assert_int_eq(body_share_add(&share, &m, zeros, 57, 60), CSSL_E_TOO_LONG);
	ck_assert_int_eq(body_share_add(&share, &m, zeros, 70, 80), CSSL_E_FULL);
	ck_assert_uint_eq(m.len, 4);
	ck_assert_uint_eq(share.taken, 90);
	message_free(&m);
	body_share_end(&share);
}
END_TEST

START_TEST(hosts_of_one_ipv6_net_are_one_source)
{
	struct body_share a = enter_ipv6(1, 1), b = enter_ipv6(1, 2), c = enter_ipv6(2, 1);
	ck_assert_ptr_eq(a.source, b.source);
	ck_assert_ptr_ne(a.source, c.source);
	body_share_end(&a);
	body_share_end(&b);
	body_share_end(&c);
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
		bytes_that_a_message_gets_take_its_room_or_nothing,
		hosts_of_one_ipv6_net_are_one_source,
	};
	TCase *all = tcase_create("body_room");
	tcase_add_checked_fixture(all, begin, end);
	return suite_run_case("body_room", all, facts, SUITE_LEN(facts));
}
