/* test_streams.c: facts of the table of streams. */
#include <stdlib.h>
#include <string.h>

#include "net/stream/streams.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static char holders[20001];

START_TEST(an_added_stream_is_found_and_no_other)
{
	struct streams s = { 0 };

	ck_assert_ptr_null(streams_find(&s, 1));
	ck_assert_int_eq(streams_add(&s, 1, &holders[1]), 0);
	ck_assert_ptr_eq(streams_find(&s, 1), &holders[1]);
	ck_assert_ptr_null(streams_find(&s, 2));
	ck_assert_ptr_null(streams_find(&s, 0));
	streams_clear(&s);
}
END_TEST

/* Ids count up; the oldest, the newest and random ones go. */
START_TEST(removing_any_keeps_all_others)
{
	struct streams s = { 0 };
	uint32_t next = 1;

	srand(3);
	for (unsigned round = 0; round < 20000; round++) {
		streams_add(&s, next, &holders[next]);
		next++;
		if (rand() % 3)
			streams_remove(&s, (uint32_t)rand() % next);
		if (round % 1000)
			continue;
		unsigned count = 0;
		for (uint32_t id = 1; id < next; id++) {
			const char *found = streams_find(&s, id);
			if (found)
				ck_assert_ptr_eq(found, &holders[id]);
			count += found != NULL;
		}
		ck_assert_uint_eq(count, s.count);
	}
	streams_clear(&s);
}
END_TEST

static void count_one(void *ctx, uint32_t id, void *holder)
{
	unsigned char *seen = ctx;

	ck_assert_ptr_eq(holder, &holders[id]);
	seen[id]++;
}

START_TEST(each_visits_every_stream_once)
{
	static unsigned char seen[1001];
	struct streams s = { 0 };

	for (uint32_t id = 1; id <= 1000; id++)
		streams_add(&s, id, &holders[id]);
	for (uint32_t id = 1; id <= 1000; id += 3)
		streams_remove(&s, id);
	streams_each(&s, count_one, seen);
	for (uint32_t id = 1; id <= 1000; id++)
		ck_assert_uint_eq(seen[id], id % 3 != 1);
	streams_clear(&s);
}
END_TEST

START_TEST(removing_an_unknown_id_changes_nothing)
{
	struct streams s = { 0 };

	streams_remove(&s, 5);
	streams_add(&s, 1, &holders[1]);
	streams_remove(&s, 5);
	ck_assert_uint_eq(s.count, 1);
	streams_clear(&s);
}
END_TEST

UNIT(streams)
{
	const TTest *const facts[] = {
		an_added_stream_is_found_and_no_other,
		removing_any_keeps_all_others,
		each_visits_every_stream_once,
		removing_an_unknown_id_changes_nothing,
	};

	return suite_run("streams", facts, SUITE_LEN(facts));
}
