/* test_backend_pool.c: facts of idle backend connections: which is used first, how many wait, what ends one. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sslagent/backend/backend_pool.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"
#include "tests/unit/unit.h"

static unsigned ends;

static size_t on_data(void *user, uint8_t *data, size_t len)
{
	return len;
}

static void on_written(void *user, size_t len)
{
}

static void on_end(void *user, enum stream_end end, int uv_error)
{
	ends++;
}

static const struct backend_user_ops user_ops = { .on_data = on_data, .on_written = on_written, .on_end = on_end };

static const struct conf_backend *conf_of(const char *name)
{
	return conf_backend_find(a1.worker.conf, name);
}

/* A connection to it; the other end is left in @backend. */
static struct backend *connected(const char *name)
{
	struct backend *b = backend_connect(&a1.worker.backend_home, conf_of(name), NULL, &user_ops, NULL);

	ck_assert_ptr_nonnull(b);
	wait_until(backend_waits());
	backend = -1; /* each test closes what it keeps */
	backend_take();
	ck_assert_int_eq(backend_write(b, (const uint8_t *)"x", 1), 0);
	backend_hear("x");
	return b;
}

static struct backend *get(const char *name)
{
	return backend_pool_get(a1.worker.backends, conf_of(name), CONF_HTTP);
}

static void put(struct backend *b)
{
	backend_pool_put(a1.worker.backends, b, CONF_HTTP);
}

START_TEST(what_had_conversations_of_one_service_is_for_no_other)
{
	struct backend *b = connected("main");

	put(b);
	for (int service = 0; service < CONF_SERVICE_COUNT; service++) {
		if (service != CONF_HTTP)
			ck_assert_ptr_null(backend_pool_get(a1.worker.backends, conf_of("main"), service));
	}
	ck_assert_ptr_eq(get("main"), b);
	backend_reset(b);
	backend_reset_now();
}
END_TEST

START_TEST(an_empty_pool_has_none)
{
	ck_assert_ptr_null(get("main"));
}
END_TEST

START_TEST(what_was_put_is_got_once_and_works)
{
	struct backend *b = connected("main");

	put(b);
	ck_assert_ptr_eq(get("main"), b);
	ck_assert_ptr_null(get("main"));
	backend_bind(b, &user_ops, NULL);
	ck_assert_int_eq(backend_write(b, (const uint8_t *)"again", 5), 0);
	backend_hear("again");
	backend_close(b);
	ck_assert_int_eq(read_to_end(backend), 0);
}
END_TEST

START_TEST(the_most_recently_used_goes_first)
{
	struct backend *first = connected("main");
	int fd = backend;
	struct backend *second = connected("main");

	put(first);
	put(second);
	ck_assert_ptr_eq(get("main"), second);
	ck_assert_ptr_eq(get("main"), first);
	backend_close(first);
	backend_close(second);
	close(fd);
}
END_TEST

START_TEST(each_backend_has_connections_of_its_own)
{
	struct backend *b = connected("main");

	put(b);
	ck_assert_ptr_null(get("pooled"));
	ck_assert_ptr_eq(get("main"), b);
	backend_close(b);
}
END_TEST

START_TEST(one_that_says_anything_is_reset)
{
	put(connected("main"));
	ck_assert_int_eq(write(backend, "unasked", 7), 7);
	ck_assert_int_eq(read_to_end(backend), -1);
	ck_assert_ptr_null(get("main"));
	ck_assert_uint_eq(ends, 0);
}
END_TEST

START_TEST(one_that_ends_is_closed_and_never_got)
{
	struct backend *other = connected("main");
	int fd = backend;

	put(connected("main"));
	put(other);
	if (_i)
		backend_reset_now();
	else
		backend_hang_up();
	turns(20);
	ck_assert_ptr_eq(get("main"), other);
	ck_assert_ptr_null(get("main"));
	backend_close(other);
	close(fd);
}
END_TEST

/* The loop has not turned since. */
START_TEST(one_that_is_not_quiet_is_never_got)
{
	struct backend *other = connected("main");
	int fd = backend;

	put(other);
	put(connected("main"));
	if (_i == 0)
		ck_assert_int_eq(write(backend, "unasked", 7), 7);
	else if (_i == 1)
		ck_assert_int_eq(shutdown(backend, SHUT_WR), 0);
	else
		backend_reset_now();
	ck_assert_ptr_eq(get("main"), other);
	ck_assert_uint_eq(counted(COUNT_BACKEND_NOT_QUIET), 1);
	if (_i < 2)
		ck_assert_int_eq(read_to_end(backend), -1);
	backend_close(other);
	close(fd);
}
END_TEST

/* The more a turn takes, the more it asks for at once. */
START_TEST(of_many_asked_at_once_only_the_quiet_ones_are_got)
{
	struct backend *all[7];
	int fds[7];

	for (int i = 0; i < 7; i++) {
		all[i] = connected("main");
		fds[i] = backend;
	}
	for (int i = 0; i < 7; i++)
		put(all[i]);
	ck_assert_int_eq(write(fds[_i], "unasked", 7), 7);
	for (int i = 6; i >= 0; i--)
		if (i != _i)
			ck_assert_ptr_eq(get("main"), all[i]);
	ck_assert_ptr_null(get("main"));
	ck_assert_uint_eq(counted(COUNT_BACKEND_NOT_QUIET), 1);
	for (int i = 0; i < 7; i++) {
		if (i != _i)
			backend_close(all[i]);
		close(fds[i]);
	}
}
END_TEST

/* The kernel's usual limit is for programs that use select(). */
static void allow_descriptors(rlim_t count)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= count)
		return;
	limit.rlim_cur = count;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(no_more_wait_than_are_allowed)
{
	int fds[BACKEND_POOL_IDLE_MAX + 1];

	allow_descriptors(2 * BACKEND_POOL_IDLE_MAX + 100);
	for (unsigned i = 0; i <= BACKEND_POOL_IDLE_MAX; i++) {
		put(connected("main"));
		fds[i] = backend;
	}
	ck_assert_int_eq(read_to_end(backend), 0); /* the last was one too many */
	unsigned count = 0;
	for (struct backend *b; (b = get("main")); count++)
		backend_close(b);
	ck_assert_uint_eq(count, BACKEND_POOL_IDLE_MAX);
	for (unsigned i = 0; i < BACKEND_POOL_IDLE_MAX; i++)
		close(fds[i]);
}
END_TEST

/* The fixture closes the pool, and asserts that every handle goes with it. */
START_TEST(a_pool_that_is_destroyed_closes_what_waits)
{
	put(connected("main"));
	backend_pool_destroy(a1.worker.backends);
	a1.worker.backends = NULL;
	ck_assert_int_eq(read_to_end(backend), 0);
}
END_TEST

UNIT(backend_pool)
{
	const struct connection_fact facts[] = {
		{ an_empty_pool_has_none, 0 },
		{ what_had_conversations_of_one_service_is_for_no_other, 0 },
		{ what_was_put_is_got_once_and_works, 0 },
		{ the_most_recently_used_goes_first, 0 },
		{ each_backend_has_connections_of_its_own, 0 },
		{ one_that_says_anything_is_reset, 0 },
		{ one_that_ends_is_closed_and_never_got, 2 },
		{ one_that_is_not_quiet_is_never_got, 3 },
		{ of_many_asked_at_once_only_the_quiet_ones_are_got, 7 },
		{ no_more_wait_than_are_allowed, 0 },
		{ a_pool_that_is_destroyed_closes_what_waits, 0 },
	};

	return connection_suite_run("backend_pool", facts, FACTS_LEN(facts));
}
