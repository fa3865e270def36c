/* test_stream_hold.c: facts of output that waits for company. */
#include <unistd.h>

#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

static struct owner o;

static int open_holding(const char *text)
{
	owner_init(&o);
	int peer = owner_open(&o, OVER_TCP4);
	turns(3); /* it reads */
	stream_write(&o.s, text, 4);
	stream_hold(&o.s);
	turns(5);
	return peer;
}

static void finish(int peer)
{
	close(peer);
	owner_finish(&o);
}

START_TEST(held_output_stays)
{
	int peer = open_holding("held");
	char got[4];

	ck_assert_uint_eq(stream_pending(&o.s), 4);
	ck_assert_int_lt(recv(peer, got, 4, MSG_DONTWAIT), 0);
	finish(peer);
}
END_TEST

START_TEST(held_output_goes_with_what_comes_next)
{
	int peer = open_holding("held");
	char got[8];

	stream_write(&o.s, "next", 4);
	wait_until(stream_pending(&o.s) == 0);
	ck_assert_int_eq(recv(peer, got, 8, MSG_DONTWAIT), 8);
	ck_assert_mem_eq(got, "heldnext", 8);
	finish(peer);
}
END_TEST

START_TEST(held_output_goes_when_it_is_told_to)
{
	int peer = open_holding("held");

	stream_flush_soon(&o.s);
	wait_until(o.written == 4);
	finish(peer);
}
END_TEST

START_TEST(held_output_goes_before_the_fin)
{
	int peer = open_holding("held");
	char got[4];

	stream_shutdown(&o.s);
	read_exactly(peer, got, 4);
	ck_assert_mem_eq(got, "held", 4);
	ck_assert_int_eq(read_to_end(peer), 0);
	finish(peer);
}
END_TEST

UNIT(stream_hold)
{
	const TTest *facts[] = {
		held_output_stays,
		held_output_goes_with_what_comes_next,
		held_output_goes_when_it_is_told_to,
		held_output_goes_before_the_fin,
	};
	return worker_suite_run("stream_hold", facts, FACTS_LEN(facts));
}
