/* test_result.c: facts of results that are added up, saved and read again. */
#include "bench/measure/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

struct counted {
	struct result_times times;
	uint64_t n;
};

static void add(void *sum, const void *result)
{
	((struct counted *)sum)->n += ((const struct counted *)result)->n;
}

static const struct result_kind kind = { "load", sizeof(struct counted), add };
static const struct result_kind of_another_load = { "loaf", sizeof(struct counted), add };
static const struct result_kind of_another_size = { "load", sizeof(struct counted) + 8, add };

static char path[] = "/tmp/result.XXXXXX";
static struct counted sum, a, b;

static void add_both(void)
{
	result_add(&kind, &sum, &a);
	result_add(&kind, &sum, &b);
}

static void write_file(const void *data, size_t len)
{
	FILE *file = fopen(path, "w");
	ck_assert(file && fwrite(data, 1, len, file) == len && fclose(file) == 0);
}

static size_t read_file(char *out, size_t cap)
{
	FILE *file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	size_t len = fread(out, 1, cap, file);
	fclose(file);
	return len;
}

START_TEST(the_time_is_from_the_first_begin_to_the_last_end)
{
	a = (struct counted){ { 100, 500 }, 3 };
	b = (struct counted){ { 90, 400 }, 4 };
	add_both();
	ck_assert_uint_eq(sum.times.begin_ns, 90);
	ck_assert_uint_eq(sum.times.end_ns, 500);
	ck_assert_uint_eq(sum.n, 7);
}
END_TEST

START_TEST(one_that_never_began_has_no_part_in_the_time)
{
	a = (struct counted){ { 100, 500 }, 3 };
	add_both();
	ck_assert_uint_eq(sum.times.begin_ns, 100);
}
END_TEST

START_TEST(what_was_saved_is_read_as_it_was_and_has_the_wall_clock)
{
	a = (struct counted){ { 100, 500 }, UINT64_MAX };
	ck_assert_int_eq(result_save(fopen(path, "w"), &kind, &a), 0);
	ck_assert_uint_gt(a.times.begin_ns, UINT64_C(1700000000000000000));
	ck_assert_uint_eq(a.times.end_ns - a.times.begin_ns, 400);
	ck_assert_int_eq(result_read(path, &kind, &b), 0);
	ck_assert_mem_eq(&a, &b, sizeof a);
}
END_TEST

START_TEST(what_has_no_event_has_no_end)
{
	a.times.begin_ns = 100;
	ck_assert_int_eq(result_save(fopen(path, "w"), &kind, &a), 0);
	ck_assert_uint_eq(a.times.end_ns, 0);
}
END_TEST

static void is_refused(const struct result_kind *wanted)
{
	char out[sizeof(struct counted) + 8];
	errno = EBUSY;
	ck_assert_int_lt(result_read(path, wanted, out), 0);
	ck_assert_int_eq(errno, 0);
}

START_TEST(a_result_of_another_kind_or_size_is_refused)
{
	ck_assert_int_eq(result_save(fopen(path, "w"), &kind, &a), 0);
	is_refused(&of_another_load);
	is_refused(&of_another_size);
}
END_TEST

START_TEST(a_file_that_is_cut_or_goes_on_is_refused)
{
	char text[500];
	ck_assert_int_eq(result_save(fopen(path, "w"), &kind, &a), 0);
	size_t len = read_file(text, sizeof text);
	for (size_t cut = 0; cut < len; cut++) {
		write_file(text, cut);
		is_refused(&kind);
	}
	write_file(text, len + 1);
	is_refused(&kind);
	write_file(text, len);
	ck_assert_int_eq(result_read(path, &kind, &b), 0);
}
END_TEST

START_TEST(another_version_is_refused)
{
	char text[500];
	ck_assert_int_eq(result_save(fopen(path, "w"), &kind, &a), 0);
	size_t len = read_file(text, sizeof text);
	text[strlen("cssl-bench ")]++;
	write_file(text, len);
	is_refused(&kind);
	memset(text, 'x', sizeof text);
	write_file(text, sizeof text);
	is_refused(&kind);
}
END_TEST

START_TEST(a_file_that_is_not_there_has_its_reason)
{
	ck_assert_int_lt(result_read("/nowhere/at/all", &kind, &a), 0);
	ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
	ck_assert_int_lt(result_save(fopen("/dev/full", "w"), &kind, &a), 0);
	ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

static void forget(void)
{
	memset(&sum, 0, sizeof sum);
	memset(&a, 0, sizeof a);
	memset(&b, 0, sizeof b);
}

UNIT(result)
{
	const TTest *facts[] = {
		the_time_is_from_the_first_begin_to_the_last_end,
		one_that_never_began_has_no_part_in_the_time,
		what_was_saved_is_read_as_it_was_and_has_the_wall_clock,
		what_has_no_event_has_no_end,
		a_result_of_another_kind_or_size_is_refused,
		a_file_that_is_cut_or_goes_on_is_refused,
		another_version_is_refused,
		a_file_that_is_not_there_has_its_reason,
		a_full_disk_is_told,
	};

	int fd = mkstemp(path);
	close(fd);
	int failed = fd < 0 ? 1 : suite_run_with("result", forget, facts, SUITE_LEN(facts));
	unlink(path);
	return failed;
}
