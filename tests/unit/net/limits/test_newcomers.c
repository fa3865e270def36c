/* test_newcomers.c: facts of which connection gives way. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/limits/newcomers.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define COUNT  64u
#define SHARE  60u
#define STALL  250u
#define MANY   3u /* sources */
#define FEW    7u
#define NOBODY 9u

static struct newcomers n;
static struct newcomer at[COUNT];

/* Of two sources: the last @few are of one. */
static void fill(unsigned few)
{
	newcomers_init(&n, &(struct newcomers_limits){ .count = COUNT, .of_source = SHARE, .stalled_ms = STALL });
	for (unsigned i = 0; i < COUNT; i++)
		newcomers_add(&n, &at[i], i < COUNT - few ? MANY : FEW, i, 1);
}

START_TEST(nobody_gives_way_while_there_is_room)
{
	fill(10);
	ck_assert(newcomers_full(&n, NOBODY));
	newcomers_remove(&n, &at[5]);
	newcomers_remove(&n, &at[5]);
	ck_assert(!newcomers_full(&n, NOBODY));
	ck_assert_ptr_null(newcomers_victim(&n, NOBODY, 1000, 9));
	newcomers_add(&n, &at[5], MANY, 1000, 9);
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000, 9), &at[0]);
	newcomers_remove(&n, &at[0]);
	newcomers_add(&n, &at[0], MANY, 1000, 9);
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000, 9), &at[1]);
}
END_TEST

START_TEST(a_newcomer_that_could_not_be_read_yet_stays)
{
	fill(10);
	ck_assert_ptr_null(newcomers_victim(&n, NOBODY, 1000, 1));
	ck_assert_ptr_null(newcomers_victim(&n, NOBODY, 1000, 2));
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000, 3), &at[0]);
}
END_TEST

START_TEST(the_source_with_most_gives_way)
{
	fill(COUNT / 2 + 1); /* the older ones are fewer */
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000, 9), &at[COUNT / 2 - 1]);
	fill(10);
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000, 9), &at[0]);
}
END_TEST

START_TEST(a_source_with_its_share_gives_way_to_itself_and_to_nobody_else)
{
	fill(COUNT - SHARE);
	for (unsigned i = 0; i < 2; i++) /* room, but not for that source */
		newcomers_remove(&n, &at[COUNT - 1 - i]);
	ck_assert(newcomers_full(&n, MANY));
	ck_assert(!newcomers_full(&n, FEW));
	newcomer_proven(&at[0], 1000);
	ck_assert_ptr_eq(newcomers_victim(&n, MANY, 1000, 9), &at[1]);
	for (unsigned i = 0; i < SHARE; i++)
		newcomer_proven(&at[i], 1000);
	ck_assert_ptr_null(newcomers_victim(&n, MANY, 1000, 9));
}
END_TEST

START_TEST(a_newcomer_that_has_proven_itself_stays_until_it_stalls)
{
	fill(10);
	for (unsigned i = 0; i < COUNT; i++)
		if (i != 9)
			newcomer_proven(&at[i], 1000);
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000, 9), &at[9]);
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 9000, 9), &at[9]);
	newcomer_proven(&at[9], 1000);
	ck_assert_ptr_null(newcomers_victim(&n, NOBODY, 1000 + STALL - 1, 9));
	ck_assert_ptr_eq(newcomers_victim(&n, NOBODY, 1000 + STALL, 9), &at[0]);
	n.limits.stalled_ms = NEWCOMERS_NO_END;
	ck_assert_ptr_null(newcomers_victim(&n, NOBODY, UINT64_MAX / 2, 9));
}
END_TEST

START_TEST(a_source_is_a_user_or_an_address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = 1 },
			   same = { .sin_family = AF_INET, .sin_port = 2 };
	const struct sockaddr local = { .sa_family = AF_UNIX };
	unsigned others = 0;
	int pair[2];

	fill(0);
	inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
	inet_pton(AF_INET, "192.0.2.1", &same.sin_addr);
	const uint8_t source = newcomers_source(&n, -1, (struct sockaddr *)&v4);
	ck_assert_uint_eq(newcomers_source(&n, -1, (struct sockaddr *)&same), source);
	for (unsigned i = 0; i < 100; i++) {
		same.sin_addr.s_addr = htonl(0xc0000202 + i);
		others += newcomers_source(&n, -1, (struct sockaddr *)&same) != source;
	}
	ck_assert_uint_gt(others, 80);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_uint_eq(newcomers_source(&n, pair[0], &local), newcomers_source(&n, pair[1], &local));
	close(pair[0]);
	close(pair[1]);
}
END_TEST

UNIT(newcomers)
{
	const TTest *const facts[] = {
		nobody_gives_way_while_there_is_room,
		a_newcomer_that_could_not_be_read_yet_stays,
		the_source_with_most_gives_way,
		a_source_with_its_share_gives_way_to_itself_and_to_nobody_else,
		a_newcomer_that_has_proven_itself_stays_until_it_stalls,
		a_source_is_a_user_or_an_address,
	};

	return suite_run("newcomers", facts, SUITE_LEN(facts));
}
