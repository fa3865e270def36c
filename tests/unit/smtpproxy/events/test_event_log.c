/* test_event_log.c: facts of the event log. */
#include "smtpproxy/events/event_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/proto/suite.h"

static uint64_t dropped;

static json_t *record(unsigned number)
{
	return json_pack("{s:i}", "x", (int)number);
}

START_TEST(the_newest_records_are_kept)
{
	struct event_log *l = event_log_create(NULL, &dropped);
	for (unsigned i = 1; i <= EVENT_LOG_KEPT + 10; i++)
		event_log_add(l, record(i));
	json_t *all = event_log_since(l, 0, EVENT_LOG_KEPT);
	ck_assert_uint_eq(json_array_size(all), EVENT_LOG_KEPT);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(all, 0), "n")), 11);
	json_decref(all);
	all = event_log_since(l, EVENT_LOG_KEPT + 8, 100);
	ck_assert_uint_eq(json_array_size(all), 2);
	json_decref(all);
	all = event_log_since(l, 0, 3);
	ck_assert_uint_eq(json_array_size(all), 3);
	json_decref(all);
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
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
	ck_assert_ptr_eq(strstr(line, "{\"x\":7,\"n\":1,\"instance\":\""), line);
	ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
	ck_assert_ptr_null(fgets(line, sizeof line, f));
	fclose(f);
	event_log_destroy(l);
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
	ck_assert_uint_eq(dropped, 2);
	event_log_destroy(l);
	l = event_log_create("/nowhere/at/all", &dropped);
	ck_assert_int_lt(event_log_open(l), 0);
	event_log_destroy(l);
}
END_TEST

int main(void)
{
	const TTest *facts[] = {
		the_newest_records_are_kept,
		an_answer_tells_what_was_forgotten_and_of_which_process_it_is,
		each_record_is_a_line_of_the_file,
		a_record_that_cannot_be_written_is_dropped_and_counted,
	};
	return suite_run("event_log", facts, SUITE_LEN(facts));
}
