/* test_array.c: facts of an array that doubles. */
#include "net/memory/array.h"

#include <stdlib.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(items_stay_while_it_grows)
{
	unsigned *items = NULL;
	size_t cap = 0, times = 0;

	for (size_t count = 0; count < 1000; count++) {
		size_t before = cap;
		ck_assert_int_eq(array_make_room(&items, &cap, count, sizeof *items), 0);
		times += cap != before;
		items[count] = (unsigned)count;
	}
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(items[i], i);
	ck_assert_uint_eq(times, 7); /* 16, 32, ... 1024 */
	free(items);
}
END_TEST

UNIT(array)
{
	const TTest *facts[] = { items_stay_while_it_grows };
	return suite_run("array", facts, SUITE_LEN(facts));
}
