/* test_virtual_wire.c: facts of virtual time and of the network in it. */
#include <math.h>
#include <stdlib.h>

#include "bench/simulation/virtual_wire.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define SENT 20000u

struct thing {
	struct wire_event event;
	unsigned number;
};

static struct happened {
	unsigned count, last;
	int64_t first_ms, last_ms;
} happened;

static struct virtual_wire *wire;

static void on_thing(void *ctx, struct wire_event *e)
{
	int64_t now_ms = virtual_wire_now_ms(wire);

	ck_assert_ptr_eq(ctx, &happened);
	ck_assert_int_eq(e->due_ms, now_ms);
	if (happened.count++ == 0)
		happened.first_ms = now_ms;
	happened.last = ((struct thing *)e)->number;
	happened.last_ms = now_ms;
	free(e);
}

static void drop(struct wire_event *e)
{
	free(e);
}

static struct wire_event *thing(unsigned number)
{
	struct thing *t = calloc(1, sizeof(*t));

	ck_assert_ptr_nonnull(t);
	t->event.fn = on_thing;
	t->number = number;
	return &t->event;
}

static void start(struct virtual_wire_conf conf)
{
	happened = (struct happened){ 0 };
	wire = virtual_wire_create(&conf, &happened);
	ck_assert_ptr_nonnull(wire);
}

static void run(unsigned ms)
{
	while (ms-- > 0)
		virtual_wire_step(wire);
}

START_TEST(an_event_happens_when_it_is_due_and_not_before)
{
	start((struct virtual_wire_conf){ 0 });
	virtual_wire_after(wire, thing(1), 7);
	run(6);
	ck_assert_uint_eq(happened.count, 0);
	run(1);
	ck_assert_uint_eq(happened.count, 1);
	virtual_wire_destroy(wire, drop);
}
END_TEST

START_TEST(an_event_that_is_due_much_later_happens_then_too)
{
	start((struct virtual_wire_conf){ 0 });
	virtual_wire_after(wire, thing(1), 100000);
	run(99999);
	ck_assert_uint_eq(happened.count, 0);
	run(1);
	ck_assert_uint_eq(happened.count, 1);
	virtual_wire_destroy(wire, drop);
}
END_TEST

START_TEST(things_of_one_moment_happen_in_their_order)
{
	start((struct virtual_wire_conf){ 0 });
	for (unsigned i = 1; i <= 5; i++)
		virtual_wire_after(wire, thing(i), 3);
	run(3);
	ck_assert_uint_eq(happened.count, 5);
	ck_assert_uint_eq(happened.last, 5);
	virtual_wire_destroy(wire, drop);
}
END_TEST

static unsigned arrived(double loss)
{
	start((struct virtual_wire_conf){ .seed = 3, .loss = loss, .delay_ms = 10, .jitter_ms = 5 });
	for (unsigned i = 0; i < SENT; i++) {
		struct wire_event *e = thing(i);

		if (virtual_wire_send(wire, e) == WIRE_LOST)
			free(e);
	}
	run(100);
	virtual_wire_destroy(wire, drop);
	return happened.count;
}

START_TEST(without_loss_everything_arrives_within_delay_and_jitter)
{
	ck_assert_uint_eq(arrived(0), SENT);
	ck_assert_int_eq(happened.first_ms, 10);
	ck_assert_int_eq(happened.last_ms, 15);
}
END_TEST

START_TEST(so_much_is_lost_as_should_be)
{
	ck_assert_double_le(fabs(arrived(0.2) - 0.8 * SENT), 5 * sqrt(SENT * 0.2 * 0.8));
}
END_TEST

START_TEST(the_same_seed_loses_the_same)
{
	ck_assert_uint_eq(arrived(0.1), arrived(0.1));
}
END_TEST

START_TEST(poisson_has_its_mean_and_variance)
{
	double sum = 0, squares = 0, mean;

	start((struct virtual_wire_conf){ .seed = 5 });
	for (unsigned i = 0; i < SENT; i++) {
		unsigned n = virtual_wire_poisson(wire, 4);

		sum += n;
		squares += (double)n * n;
	}
	mean = sum / SENT;
	ck_assert_double_le(fabs(mean - 4), 5 * sqrt(4.0 / SENT));
	ck_assert_double_le(fabs(squares / SENT - mean * mean - 4), 0.3);
	virtual_wire_destroy(wire, drop);
}
END_TEST

START_TEST(events_that_never_came_are_dropped)
{
	start((struct virtual_wire_conf){ 0 });
	virtual_wire_after(wire, thing(1), 50);
	virtual_wire_destroy(wire, drop); /* LeakSanitizer would tell */
	ck_assert_uint_eq(happened.count, 0);
}
END_TEST

UNIT(virtual_wire)
{
	const TTest *const facts[] = {
		an_event_happens_when_it_is_due_and_not_before,
		an_event_that_is_due_much_later_happens_then_too,
		things_of_one_moment_happen_in_their_order,
		without_loss_everything_arrives_within_delay_and_jitter,
		so_much_is_lost_as_should_be,
		the_same_seed_loses_the_same,
		poisson_has_its_mean_and_variance,
		events_that_never_came_are_dropped,
	};

	return suite_run("virtual_wire", facts, SUITE_LEN(facts));
}
