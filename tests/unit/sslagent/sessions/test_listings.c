/* test_listings.c: they take turns with each other and with the loop, and end when it does. */
#include <sodium.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/session_listing.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/tombstones.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/sslagent/sessions/session_maker.h"
#include "tests/unit/unit.h"

#define STORE_BYTES (64u * 1024u * 1024u)
#define LIFETIME_MS (3600 * 1000)
#define MANY        10000u /* several steps */

struct asked {
	struct session_listing *listing;
	enum { WAITING, DONE } state;
	int error;
	unsigned place; /* 1: done first */
};

static struct tombstones *tombstones;
static struct store *store;
static struct listings *listings;
static struct counter_array counters;
static unsigned places;

static void open_store(unsigned sessions)
{
	const struct store_limits limits = { STORE_BYTES, 100, LIFETIME_MS };
	static struct made_session made;
	static uint8_t encoded[SESS_OBJ_LEN_MAX];

	ck_assert_int_ge(sodium_init(), 0);
	counters_use(&counters);
	tombstones = tombstones_create(LIFETIME_MS, TOMBSTONES_MAX);
	store = store_create(&limits, tombstones);
	listings = listings_create(w);
	ck_assert(tombstones && store && listings);
	for (unsigned i = 0; i < sessions; i++) {
		session_make(&made, &(struct session_wish){ .server_name = "x.example" });
		const ptrdiff_t len = sess_obj_encode(&made.obj, encoded, sizeof(encoded));
		const struct offer offer = { &made.obj, encoded, (size_t)len, 0, 0, STORED_OWN, 0 };
		ck_assert_int_eq(store_put(store, &offer, 0), 0);
	}
}

static void close_store(void)
{
	listings_close(listings);
	listings_destroy(listings); /* nothing waits for a turn any more */
	store_destroy(store);
	tombstones_destroy(tombstones);
	counters_use(NULL);
}

static void on_done(struct session_listing *l, int error)
{
	struct asked *a = l->ctx;

	ck_assert_int_eq(a->state, WAITING);
	a->state = DONE;
	a->error = error;
	a->place = ++places;
}

/* @limit 0: all are counted. */
static void ask(struct asked *a, unsigned limit)
{
	const struct session_query q = { .limit = limit, .bytes_max = SIZE_MAX };

	*a = (struct asked){ .listing = session_listing_create(store, &q, 0) };
	a->listing->done = on_done;
	a->listing->ctx = a;
	listings_add(listings, a->listing);
}

static void forget(struct asked *a)
{
	session_listing_destroy(a->listing);
}

START_TEST(what_is_done_in_one_step_is_done_at_once)
{
	struct asked page;

	open_store(100);
	ask(&page, 10);
	ck_assert_int_eq(page.state, DONE);
	ck_assert_int_eq(page.error, 0);
	forget(&page);
	close_store();
}
END_TEST

START_TEST(a_long_one_leaves_turns_to_the_loop)
{
	struct asked count;
	unsigned others = 0;

	open_store(MANY);
	ask(&count, 0);
	while (count.state == WAITING) {
		turn();
		others++;
	}
	ck_assert_uint_eq(count.listing->count, MANY);
	ck_assert_uint_ge(others, 3);
	forget(&count);
	close_store();
}
END_TEST

START_TEST(a_page_does_not_wait_for_the_end_of_a_count)
{
	struct asked count, page, another;

	open_store(MANY);
	places = 0;
	ask(&count, 0);
	ask(&page, 10);
	ask(&another, 0);
	wait_until(count.state == DONE && page.state == DONE && another.state == DONE);
	ck_assert_uint_eq(page.place, 1);
	ck_assert_uint_eq(count.place, 2);
	ck_assert_uint_eq(another.listing->count, MANY);
	forget(&count);
	forget(&page);
	forget(&another);
	close_store();
}
END_TEST

START_TEST(what_is_under_way_ends_with_the_loop)
{
	struct asked first, second, late;

	open_store(MANY);
	ask(&first, 0);
	ask(&second, 0);
	listings_close(listings);
	ck_assert_int_eq(first.error, CSSL_E_STATE);
	ck_assert_int_eq(second.error, CSSL_E_STATE);
	ask(&late, 10);
	ck_assert_int_eq(late.error, CSSL_E_STATE);
	forget(&first);
	forget(&second);
	forget(&late);
	close_store();
}
END_TEST

UNIT(listings)
{
	const TTest *const facts[] = {
		what_is_done_in_one_step_is_done_at_once,
		a_long_one_leaves_turns_to_the_loop,
		a_page_does_not_wait_for_the_end_of_a_count,
		what_is_under_way_ends_with_the_loop,
	};
	return worker_suite_run("listings", facts, FACTS_LEN(facts));
}
