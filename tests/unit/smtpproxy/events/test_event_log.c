/* test_event_log.c: facts of the event log. */
#include "smtpproxy/events/event_log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static uint64_t dropped;

static json_t *record(unsigned number)
{
	return json_pack("{s:i}", "x", (int)number);
}

static size_t records(const struct event_log *l, uint64_t after, unsigned most)
{
	json_t *all = event_log_answer(l, after, most);
	const size_t count = json_array_size(json_object_get(all, "events"));
	json_decref(all);
	return count;
}

START_TEST(the_newest_records_are_kept)
{
	struct event_log *l = event_log_create(NULL, &dropped);
	for (unsigned i = 1; i <= EVENT_LOG_KEPT + 10; i++)
		event_log_add(l, record(i));
	ck_assert_uint_eq(records(l, 0, EVENT_LOG_KEPT), EVENT_LOG_KEPT);
	ck_assert_uint_eq(records(l, EVENT_LOG_KEPT + 8, 100), 2);
	ck_assert_uint_eq(records(l, 0, 3), 3);
	event_log_destroy(l);
}
END_TEST

START_TEST(an_answer_tells_what_was_forgotten_and_of_which_process_it_is)
{
	struct event_log *l = event_log_create(NULL, &dropped), *other = event_log_create(NULL, &dropped);
	for (unsigned i = 1; i <= EVENT_LOG_KEPT + 10; i++)
		event_log_add(l, record(i));
	json_t *one = event_log_answer(l, 3, 5), *two = event_log_answer(other, 3, 5);
	const json_t *first = json_array_get(json_object_get(one, "events"), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(first, "n")), 11);
	ck_assert_int_eq(json_integer_value(json_object_get(one, "oldest")), 11);
	ck_assert_int_eq(json_integer_value(json_object_get(one, "newest")), EVENT_LOG_KEPT + 10);
	ck_assert_int_eq(json_integer_value(json_object_get(two, "oldest")), 1);
	ck_assert(json_equal(json_object_get(first, "instance"), json_object_get(one, "instance")));
	ck_assert(!json_equal(json_object_get(one, "instance"), json_object_get(two, "instance")));
	json_decref(one);
	json_decref(two);
	event_log_destroy(l);
	event_log_destroy(other);
}
END_TEST

START_TEST(each_record_is_a_line_of_the_file)
{
	char path[] = "/tmp/cssl-events-XXXXXX", line[128];
	close(mkstemp(path));
	struct event_log *l = event_log_create(path, &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	event_log_add(l, record(7));
	event_log_add(l, record(8));
	event_log_destroy(l);
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
	ck_assert_ptr_eq(strstr(line, "{\"x\":7,\"n\":1,\"instance\":\""), line);
	ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
	ck_assert_ptr_null(fgets(line, sizeof line, f));
	fclose(f);
	unlink(path);
}
END_TEST

START_TEST(a_record_that_cannot_be_written_is_dropped_and_counted)
{
	struct event_log *l = event_log_create("/dev/full", &dropped);
	dropped = 0;
	ck_assert_int_eq(event_log_open(l), 0);
	event_log_add(l, record(1));
	event_log_add(l, NULL);
	for (unsigned i = 0; i < 5000 && dropped < 2; i++) {
		usleep(1000);
		event_log_count(l);
	}
	ck_assert_uint_eq(dropped, 2);
	event_log_destroy(l);
	l = event_log_create("/nowhere/at/all", &dropped);
	ck_assert_int_lt(event_log_open(l), 0);
	event_log_destroy(l);
}
END_TEST

START_TEST(a_full_disk_keeps_no_half_of_a_record)
{
	char path[] = "/tmp/cssl-events-XXXXXX", text[256];
	struct rlimit before, little;

	close(mkstemp(path));
	struct event_log *l = event_log_create(path, &dropped);
	dropped = 0;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	little = (struct rlimit){ 100, before.rlim_max };
	ck_assert_int_eq(event_log_open(l), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
	event_log_add(l, record(1));
	event_log_add(l,
		json_pack("{s:s}", "long", "a record of more bytes than there is room for, so that a part is written"));
	for (unsigned i = 0; i < 5000 && dropped < 1; i++) {
		usleep(1000);
		event_log_count(l);
	}
	setrlimit(RLIMIT_FSIZE, &before);
	event_log_add(l, record(3));
	event_log_destroy(l);
	FILE *f = fopen(path, "r");
	size_t len = fread(text, 1, sizeof text - 1, f);
	text[len] = '\0';
	fclose(f);
	unlink(path);
	ck_assert_uint_eq(dropped, 1);
	ck_assert_ptr_null(strstr(text, "long"));
	ck_assert_ptr_eq(strstr(strchr(text, '\n'), "\n{\"x\":3,"), strchr(text, '\n'));
}
END_TEST

/* A pipe that nobody reads is like a disk that stalls. */

#define PIPE_RECORDS 2000u /* more than a pipe takes */

static char folder[] = "/tmp/cssl-events-XXXXXX", pipe_path[64];

static int open_pipe(void)
{
	snprintf(folder, sizeof folder, "/tmp/cssl-events-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
	ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
	return open(pipe_path, O_RDONLY | O_NONBLOCK);
}

static void remove_pipe(void)
{
	unlink(pipe_path);
	rmdir(folder);
}

/* A record of 100 bytes and more. */
static json_t *long_record(unsigned number)
{
	return json_pack("{s:i,s:s}", "x", (int)number, "text",
		"0123456789012345678901234567890123456789012345678901234567890123456789");
}

static void expect_lines(FILE *f, unsigned from, unsigned to)
{
	char line[256];
	for (unsigned i = from; i <= to; i++) {
		ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
		json_t *r = json_loads(line, 0, NULL);
		ck_assert_int_eq(json_integer_value(json_object_get(r, "x")), i);
		json_decref(r);
	}
}

START_TEST(no_record_is_lost_while_the_file_takes_nothing_for_a_time)
{
	const int fd = open_pipe();
	dropped = 0;
	struct event_log *l = event_log_create(pipe_path, &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	for (unsigned i = 1; i <= PIPE_RECORDS; i++)
		event_log_add(l, long_record(i));
	fcntl(fd, F_SETFL, 0);
	FILE *f = fdopen(fd, "r");
	expect_lines(f, 1, PIPE_RECORDS);
	event_log_destroy(l);
	ck_assert_uint_eq(dropped, 0);
	ck_assert_int_eq(fgetc(f), EOF);
	fclose(f);
	remove_pipe();
}
END_TEST

START_TEST(records_from_before_a_rotation_go_to_the_old_file)
{
	const int fd = open_pipe();
	char next[] = "/tmp/cssl-events-XXXXXX";
	close(mkstemp(next));
	dropped = 0;
	struct event_log *l = event_log_create(pipe_path, &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	for (unsigned i = 1; i <= PIPE_RECORDS; i++)
		event_log_add(l, long_record(i));
	ck_assert_int_eq(event_log_follow(l, next), 0);
	event_log_add(l, long_record(PIPE_RECORDS + 1));
	fcntl(fd, F_SETFL, 0);
	FILE *f = fdopen(fd, "r");
	expect_lines(f, 1, PIPE_RECORDS);
	ck_assert_int_eq(fgetc(f), EOF);
	fclose(f);
	event_log_destroy(l);
	ck_assert_uint_eq(dropped, 0);
	f = fopen(next, "r");
	expect_lines(f, PIPE_RECORDS + 1, PIPE_RECORDS + 1);
	ck_assert_int_eq(fgetc(f), EOF);
	fclose(f);
	unlink(next);
	remove_pipe();
}
END_TEST

START_TEST(records_are_dropped_and_counted_when_the_memory_for_them_is_full)
{
	const int fd = open_pipe();
	dropped = 0;
	struct event_log *l = event_log_create(pipe_path, &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	unsigned added = 0;
	while (dropped < 10 && added < 100000)
		event_log_add(l, long_record(++added));
	ck_assert_uint_eq(dropped, 10);
	ck_assert_uint_gt(added, 4u * 1024 * 1024 / 200);
	fcntl(fd, F_SETFL, 0);
	FILE *f = fdopen(fd, "r");
	expect_lines(f, 1, added - 10);
	event_log_destroy(l);
	fclose(f);
	remove_pipe();
}
END_TEST

/* Of a regular file, whose write() always waits: this one replaces libc's. */

static _Atomic int slow_ms;

ssize_t write(int fd, const void *bytes, size_t len)
{
	if (slow_ms > 0)
		usleep((useconds_t)slow_ms * 1000u);
	return syscall(SYS_write, fd, bytes, len);
}

static _Atomic int slow_open_ms;

int open(const char *path, int flags, ...)
{
	va_list mode;
	va_start(mode, flags);
	const int bits = flags & O_CREAT ? va_arg(mode, int) : 0;
	va_end(mode);
	if (slow_open_ms > 0)
		usleep((useconds_t)slow_open_ms * 1000u);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, bits);
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

START_TEST(a_slow_disk_does_not_hold_up_whoever_adds_a_record)
{
	char path[] = "/tmp/cssl-events-XXXXXX";
	close(mkstemp(path));
	dropped = 0;
	struct event_log *l = event_log_create(path, &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	slow_ms = 200;
	const uint64_t began_ms = now_ms();
	for (unsigned i = 1; i <= 10; i++)
		event_log_add(l, record(i));
	ck_assert_uint_lt(now_ms() - began_ms, 1000);
	event_log_destroy(l);
	slow_ms = 0;
	FILE *f = fopen(path, "r");
	expect_lines(f, 1, 10);
	fclose(f);
	unlink(path);
	ck_assert_uint_eq(dropped, 0);
}
END_TEST

static char *new_path(char path[static 24])
{
	snprintf(path, 24, "/tmp/cssl-events-XXXXXX");
	close(mkstemp(path));
	return path;
}

START_TEST(a_disk_that_opens_files_slowly_holds_up_nobody)
{
	char first[24], second[24];
	dropped = 0;
	struct event_log *l = event_log_create(new_path(first), &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	new_path(second);
	slow_open_ms = 1000;
	const uint64_t began_ms = now_ms();
	ck_assert_int_eq(event_log_follow(l, second), 0);
	event_log_add(l, record(1));
	ck_assert_uint_lt(now_ms() - began_ms, 500);
	event_log_destroy(l);
	slow_open_ms = 0;
	FILE *f = fopen(second, "r");
	expect_lines(f, 1, 1);
	fclose(f);
	unlink(first);
	unlink(second);
	ck_assert_uint_eq(dropped, 0);
}
END_TEST

START_TEST(records_go_to_the_old_file_if_the_new_one_cannot_be_opened)
{
	char first[24];
	dropped = 0;
	struct event_log *l = event_log_create(new_path(first), &dropped);
	ck_assert_int_eq(event_log_open(l), 0);
	event_log_add(l, record(1));
	event_log_follow(l, "/nowhere/at/all");
	event_log_add(l, record(2));
	event_log_destroy(l);
	FILE *f = fopen(first, "r");
	expect_lines(f, 1, 2);
	fclose(f);
	unlink(first);
	ck_assert_uint_eq(dropped, 0);
}
END_TEST

UNIT(event_log)
{
	const TTest *facts[] = {
		the_newest_records_are_kept,
		an_answer_tells_what_was_forgotten_and_of_which_process_it_is,
		each_record_is_a_line_of_the_file,
		a_record_that_cannot_be_written_is_dropped_and_counted,
		a_full_disk_keeps_no_half_of_a_record,
		no_record_is_lost_while_the_file_takes_nothing_for_a_time,
		records_from_before_a_rotation_go_to_the_old_file,
		records_are_dropped_and_counted_when_the_memory_for_them_is_full,
		a_slow_disk_does_not_hold_up_whoever_adds_a_record,
		a_disk_that_opens_files_slowly_holds_up_nobody,
		records_go_to_the_old_file_if_the_new_one_cannot_be_opened,
	};
	return suite_run("event_log", facts, SUITE_LEN(facts));
}
