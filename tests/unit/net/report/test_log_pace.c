/* test_log_pace.c: facts of lines that strangers can cause. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net/report/log_pace.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static char path[256], text[1 << 20];

static void begin(enum log_level level)
{
	snprintf(path, sizeof path, "%s/log", temp_dir());
	unlink(path);
	ck_assert_int_eq(log_open("ragent", "r1", LOG_TEXT, level, path), 0);
}

static const char *written(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static unsigned lines_with(const char *words)
{
	unsigned n = 0;

	for (const char *at = written(); (at = strstr(at, words)) != NULL; at++)
		n++;
	return n;
}

static void next_second(void)
{
	struct timespec now, begun;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &begun);
	do {
		usleep(1000);
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	} while (now.tv_sec == begun.tv_sec);
}

static void many(struct log_pace *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		log_event_paced(p, LOG_INFO, NULL, "ended", "number=%u", i);
}

START_TEST(ten_a_second_are_written_and_the_rest_is_counted)
{
	struct log_pace p = { 0 };

	begin(LOG_INFO);
	next_second();
	many(&p, 1000);
	ck_assert_uint_eq(lines_with("ended number="), LOG_PACE_PER_S);
	ck_assert_uint_eq(lines_with("left_out"), 0);
	next_second();
	many(&p, 1);
	ck_assert_uint_eq(lines_with("info ragent/r1: ended left_out=990\n"), 1);
	ck_assert_uint_eq(lines_with("ended number="), LOG_PACE_PER_S + 1);
	log_close();
}
END_TEST

START_TEST(a_file_of_its_own_has_all_lines)
{
	struct log_pace p = { .to = LOG_ACCESS };

	begin(LOG_INFO);
	many(&p, 100);
	ck_assert_uint_eq(lines_with("ended number="), LOG_PACE_PER_S);
	snprintf(path, sizeof path, "%s/access", temp_dir());
	unlink(path);
	ck_assert_int_eq(log_open_access(path), 0);
	many(&p, 1000);
	ck_assert_uint_eq(lines_with("ended number="), 1000);
	ck_assert_uint_eq(lines_with("left_out"), 0);
	log_close();
}
END_TEST

START_TEST(a_timer_tells_of_what_nothing_comes_after)
{
	struct log_pace p = { 0 };

	begin(LOG_INFO);
	next_second();
	many(&p, LOG_PACE_PER_S + 5);
	log_pace_tell(&p, LOG_INFO, "ended");
	ck_assert_uint_eq(lines_with("left_out"), 0); /* it may become more */
	next_second();
	log_pace_tell(&p, LOG_INFO, "ended");
	log_pace_tell(&p, LOG_INFO, "ended");
	ck_assert_uint_eq(lines_with("left_out=5\n"), 1);
	log_close();
}
END_TEST

START_TEST(kinds_do_not_hide_each_other)
{
	struct log_pace one = { 0 }, other = { 0 };

	begin(LOG_INFO);
	many(&one, 100);
	log_event_paced(&other, LOG_WARNING, NULL, "other", "cause=%s", "rare");
	ck_assert_uint_eq(lines_with("warning ragent/r1: other cause=rare\n"), 1);
	log_close();
}
END_TEST

START_TEST(each_place_in_the_code_is_a_kind)
{
	begin(LOG_INFO);
	for (unsigned i = 0; i < 100; i++)
		log_paced(LOG_INFO, NULL, "one", "number=%u", i);
	for (unsigned i = 0; i < 3; i++)
		log_paced(LOG_INFO, NULL, "two", "number=%u", i);
	ck_assert_uint_le(lines_with("one number="), 2 * LOG_PACE_PER_S); /* a second may have turned */
	ck_assert_uint_eq(lines_with("two number="), 3);
	log_close();
}
END_TEST

START_TEST(debug_writes_all)
{
	struct log_pace p = { 0 };

	begin(LOG_DEBUG);
	many(&p, 100);
	ck_assert_uint_eq(lines_with("ended number="), 100);
	log_close();
}
END_TEST

UNIT(log_pace)
{
	const TTest *facts[] = {
		ten_a_second_are_written_and_the_rest_is_counted,
		a_file_of_its_own_has_all_lines,
		a_timer_tells_of_what_nothing_comes_after,
		kinds_do_not_hide_each_other,
		each_place_in_the_code_is_a_kind,
		debug_writes_all,
	};

	return worker_suite_run("log_pace", facts, FACTS_LEN(facts));
}
