/* test_dormant.c: facts of descriptors that no stream reads. */
#include <unistd.h>

#include "net/loop/dormant.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define HOLDERS 100 /* more than are looked at in one turn */

static struct dormant *all;
static struct holder {
	int fd, other;
	unsigned told;
} holders[HOLDERS];
static void (*react)(struct holder *h);

static void on_input(void *holder)
{
	struct holder *h = holder;

	h->told++;
	if (react)
		react(h);
}

static void begin(unsigned count)
{
	react = NULL;
	all = dormant_create(w, on_input);
	ck_assert_ptr_nonnull(all);
	for (unsigned i = 0; i < count; i++) {
		int fds[2];
		socket_pair(OVER_TCP4, fds);
		holders[i] = (struct holder){ .fd = fds[0], .other = fds[1] };
		ck_assert_int_eq(dormant_add(all, fds[0], &holders[i]), 0);
	}
}

static void end(unsigned count)
{
	dormant_destroy(all);
	for (unsigned i = 0; i < count; i++) {
		close(holders[i].fd);
		close(holders[i].other);
	}
}

START_TEST(bytes_an_end_and_a_reset_are_told)
{
	begin(4);
	turns(4);
	write_all(holders[0].other, "x", 1);
	shutdown(holders[1].other, SHUT_WR);
	reset(OVER_TCP4, holders[2].other);
	holders[2].other = -1;
	wait_until(holders[0].told && holders[1].told && holders[2].told);
	ck_assert_uint_eq(holders[3].told, 0);
	end(4);
}
END_TEST

static void remove_self(struct holder *h)
{
	dormant_remove(all, h->fd, h);
}

START_TEST(a_removed_one_is_not_told_and_its_bytes_are_still_there)
{
	char byte;

	begin(1);
	react = remove_self;
	write_all(holders[0].other, "x", 1);
	wait_until(holders[0].told);
	turns(4);
	ck_assert_uint_eq(holders[0].told, 1);
	ck_assert_int_eq(read(holders[0].fd, &byte, 1), 1);
	end(1);
}
END_TEST

static void remove_everybody(struct holder *h)
{
	(void)h;
	for (unsigned i = 0; i < 8; i++)
		dormant_remove(all, holders[i].fd, &holders[i]);
}

START_TEST(one_that_is_told_may_remove_others_of_the_same_turn)
{
	unsigned told = 0;

	begin(8);
	react = remove_everybody;
	for (unsigned i = 0; i < 8; i++)
		write_all(holders[i].other, "x", 1);
	turns(8);
	for (unsigned i = 0; i < 8; i++)
		told += holders[i].told;
	ck_assert_uint_eq(told, 1);
	end(8);
}
END_TEST

START_TEST(however_many_there_are_each_is_told)
{
	unsigned told;

	begin(HOLDERS);
	react = remove_self;
	for (unsigned i = 0; i < HOLDERS; i++)
		write_all(holders[i].other, "x", 1);
	do {
		turn();
		told = 0;
		for (unsigned i = 0; i < HOLDERS; i++)
			told += holders[i].told;
	} while (told < HOLDERS);
	ck_assert_uint_eq(told, HOLDERS);
	end(HOLDERS);
}
END_TEST

START_TEST(a_descriptor_that_cannot_be_watched_is_refused)
{
	begin(1);
	ck_assert_int_lt(dormant_add(all, holders[0].fd, &holders[0]), 0); /* twice */
	ck_assert_int_lt(dormant_add(all, -1, &holders[0]), 0);
	end(1);
	dormant_destroy(NULL);
}
END_TEST

UNIT(dormant)
{
	const TTest *const facts[] = {
		bytes_an_end_and_a_reset_are_told,
		a_removed_one_is_not_told_and_its_bytes_are_still_there,
		one_that_is_told_may_remove_others_of_the_same_turn,
		however_many_there_are_each_is_told,
		a_descriptor_that_cannot_be_watched_is_refused,
	};

	return worker_suite_run("dormant", facts, FACTS_LEN(facts));
}
