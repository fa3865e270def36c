/* test_queue_clock.c: facts of the queue's clock; both of its clocks are arguments. */
#include "smtpproxy/queue/queue_clock.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define DAY INT64_C(86400000)

START_TEST(clock_begins_as_the_wall_clock)
{
	struct queue_clock c;

	queue_clock_begin(&c, 100 * DAY, 5000);
	ck_assert_int_eq(queue_clock_ms(&c, 5000), 100 * DAY);
	ck_assert_int_eq(queue_clock_ms(&c, 6000), 100 * DAY + 1000);
}
END_TEST

START_TEST(clock_that_is_set_moves_it_by_a_tenth_of_the_time_that_passes)
{
	static const int64_t steps[] = { DAY, -DAY };

	for (unsigned n = 0; n < 2; n++) {
		struct queue_clock c;

		queue_clock_begin(&c, 100 * DAY, 0);
		for (int64_t ms = 100; ms <= 60000; ms += 100)
			queue_clock_follow(&c, 100 * DAY + ms + steps[n], ms);
		ck_assert_int_eq(queue_clock_ms(&c, 60000), 100 * DAY + 60000 + (n ? -6000 : 6000));
	}
}
END_TEST

START_TEST(clock_reaches_the_wall_clock_and_stays_there)
{
	struct queue_clock c;

	queue_clock_begin(&c, DAY, 0);
	for (int64_t ms = 100; ms <= 30000; ms += 100)
		queue_clock_follow(&c, DAY + ms + 1234, ms);
	ck_assert_int_eq(queue_clock_ms(&c, 30000), DAY + 31234);
}
END_TEST

/* A process that was stopped, or a machine that slept, has both clocks ahead by the same. */
START_TEST(pause_counts_as_time)
{
	struct queue_clock c;

	queue_clock_begin(&c, DAY, 0);
	queue_clock_follow(&c, 2 * DAY, DAY);
	ck_assert_int_eq(queue_clock_ms(&c, DAY), 2 * DAY);
}
END_TEST

START_TEST(short_turns_do_not_round_its_steps_away)
{
	struct queue_clock c;

	queue_clock_begin(&c, DAY, 0);
	for (int64_t ms = 1; ms <= 1000; ms++)
		queue_clock_follow(&c, DAY + ms + 60000, ms);
	ck_assert_int_eq(queue_clock_ms(&c, 1000), DAY + 1000 + 100);
}
END_TEST

UNIT(queue_clock)
{
	const TTest *facts[] = {
		clock_begins_as_the_wall_clock,
		clock_that_is_set_moves_it_by_a_tenth_of_the_time_that_passes,
		clock_reaches_the_wall_clock_and_stays_there,
		pause_counts_as_time,
		short_turns_do_not_round_its_steps_away,
	};
	return suite_run("queue_clock", facts, SUITE_LEN(facts));
}
