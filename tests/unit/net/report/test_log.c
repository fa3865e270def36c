/* test_log.c: facts of log lines and of where they go. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/report/log.h"
#include "net/report/log_line.h"
#include "net/report/log_pace.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static char path[256], text[1 << 20];

static void begin(enum log_format format, enum log_level level)
{
	snprintf(path, sizeof path, "%s/log", temp_dir());
	unlink(path);
	ck_assert_int_eq(log_open("sslagent", "a1", format, level, path), 0);
}

/* A line of the access log, as kinds of lines write it. */
__attribute__((format(printf, 2, 3))) static void to_access(const char *event, const char *fields, ...)
{
	va_list args;

	va_start(args, fields);
	log_write_va(LOG_ACCESS, LOG_INFO, NULL, event, fields, args);
	va_end(args);
}

/* All of the file, without the last newline. */
static const char *written(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	if (n && text[n - 1] == '\n')
		text[n - 1] = '\0';
	close(fd);
	return text;
}

/* The line behind its time. */
static const char *line(void)
{
	const char *all = written();

	ck_assert_msg(strlen(all) > 25 && all[10] == 'T' && all[23] == 'Z', "%s", all);
	return all + 25;
}

START_TEST(text_line_has_level_component_connection_and_fields)
{
	struct connection_id id = { { 0x4f, 0x2a, [15] = 0xff } };
	begin(LOG_TEXT, LOG_INFO);
	log_event(LOG_INFO, &id, "handed off", "agent=%s to=%s epoch=%u", "a1", "a2", 2u);
	ck_assert_str_eq(line(), "info sslagent/a1 connection 4f2a00000000000000000000000000ff: handed off "
				 "agent=a1 to=a2 epoch=2");
	log_close();
}
END_TEST

START_TEST(json_line_has_them_as_members)
{
	struct connection_id id = { { 1 } };
	begin(LOG_JSON, LOG_INFO);
	log_event(LOG_WARNING, &id, "handed off", "agent=%s count=%u left=%lld at=%s:%d", "a1", 2u, -5LL, "h", 80);
	ck_assert_ptr_nonnull(strstr(written(), "{\"time\":\"20"));
	ck_assert_str_eq(strchr(written(), ','),
		",\"level\":\"warning\",\"component\":\"sslagent\",\"node\":\"a1\","
		"\"connection\":\"01000000000000000000000000000000\",\"event\":\"handed off\","
		"\"agent\":\"a1\",\"count\":2,\"left\":-5,\"at\":\"h:80\"}");
	log_close();
}
END_TEST

START_TEST(line_without_fields_or_node_is_whole)
{
	snprintf(path, sizeof path, "%s/log", temp_dir());
	ck_assert_int_eq(log_open("ragent", NULL, LOG_TEXT, LOG_INFO, path), 0);
	log_event(LOG_ERROR, NULL, "stopped", NULL);
	ck_assert_str_eq(line(), "error ragent: stopped");
	log_close();
}
END_TEST

START_TEST(every_conversion_is_printed_as_printf_does)
{
	static const char fmt[] =
		"a=%d b=%5u c=%-4x| d=%s e=%.3s f=%c g=%08lx h=%llu i=%zu j=%.*s k=%+d l=%.2f m=%hhu n=%%";
	begin(LOG_TEXT, LOG_INFO);
	log_event(LOG_INFO, NULL, "x", fmt, -1, 7u, 0xabu, "str", "cutoff", 'c', 0x1234ul, 18446744073709551615ull,
		(size_t)9, 2, "long", 3, 2.5, (unsigned char)200);
	ck_assert_str_eq(line(), "info sslagent/a1: x a=-1 b=\"    7\" c=\"ab  |\" d=str e=cut f=c g=00001234 "
				 "h=18446744073709551615 i=9 j=lo k=+3 l=2.50 m=200 n=%");
	log_close();
}
END_TEST

START_TEST(text_values_cannot_look_like_fields_or_lines)
{
	begin(LOG_TEXT, LOG_INFO);
	log_event(LOG_INFO, NULL, "x", "a=%s b=%s c=%s d=%s e=%s f=%s", "two words", "quo\"te\\", "k=v", "",
		"line\nfeed\x1b[2J", "ok\xc3\xbc\xff\xc2\x85");
	ck_assert_str_eq(line(), "info sslagent/a1: x a=\"two words\" b=\"quo\\\"te\\\\\" c=\"k=v\" d=\"\" "
				 "e=\"line\\x0afeed\\x1b[2J\" f=\"ok\xc3\xbc\\xff\\xc2\\x85\"");
	log_close();
}
END_TEST

START_TEST(json_values_are_valid_json_strings)
{
	begin(LOG_JSON, LOG_INFO);
	log_event(LOG_INFO, NULL, "x", "a=%s b=%s c=%s d=%s", "quo\"te\\", "line\nfeed\x7f", "ok\xc3\xbc\xe2\x82\xac",
		"bad\xff\xc0\x80\xed\xa0\x80\xc2");
	ck_assert_str_eq(strstr(written(), ",\"a\""),
		",\"a\":\"quo\\\"te\\\\\",\"b\":\"line\\u000afeed\\u007f\",\"c\":\"ok\xc3\xbc\xe2\x82\xac\","
		"\"d\":\"bad\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"}");
	log_close();
}
END_TEST

/* And the value behind it gets its own argument. */
START_TEST(a_format_of_several_words_stands_in_quotation_marks)
{
	static const char fmt[] = "a=\"no room for %u of %s\" b=\"one two\" c=%s d=\"\" e=\"open";
	begin(LOG_TEXT, LOG_INFO);
	log_event(LOG_INFO, NULL, "x", fmt, 7u, "a \"b\"", "end");
	ck_assert_str_eq(
		line(), "info sslagent/a1: x a=\"no room for 7 of a \\\"b\\\"\" b=\"one two\" c=end d=\"\" e=open");
	log_close();
	begin(LOG_JSON, LOG_INFO);
	log_event(LOG_INFO, NULL, "x", fmt, 7u, "it", "end");
	ck_assert_str_eq(strstr(written(), ",\"a\""),
		",\"a\":\"no room for 7 of it\",\"b\":\"one two\",\"c\":\"end\",\"d\":\"\",\"e\":\"open\"}");
	log_close();
}
END_TEST

START_TEST(line_that_is_too_long_loses_whole_fields_and_says_so)
{
	static char long_value[900];
	memset(long_value, 'v', sizeof long_value - 1);
	for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
		begin(format, LOG_INFO);
		log_event(LOG_INFO, NULL, "x", "a=%s b=%s c=%s d=%d", long_value, long_value, long_value, 1);
		const char *all = written();
		ck_assert_uint_lt(strlen(all), LOG_LINE_MAX);
		ck_assert_ptr_nonnull(strstr(all, format == LOG_JSON ? "\"b\":\"vv" : " b=vv"));
		ck_assert_ptr_null(strstr(all, format == LOG_JSON ? "\"c\":" : " c="));
		const char *end = format == LOG_JSON ? ",\"cut\":true}" : " cut=true";
		ck_assert_str_eq(all + strlen(all) - strlen(end), end);
		log_close();
	}
}
END_TEST

START_TEST(lines_below_the_level_are_not_written)
{
	begin(LOG_TEXT, LOG_WARNING);
	ck_assert(!log_enabled(LOG_INFO));
	log_event(LOG_INFO, NULL, "quiet", NULL);
	log_set_level(LOG_DEBUG);
	log_event(LOG_DEBUG, NULL, "loud", NULL);
	ck_assert_str_eq(line(), "debug sslagent/a1: loud");
	log_close();
}
END_TEST

START_TEST(a_level_is_changed_by_word_and_back_to_the_configured_one)
{
	begin(LOG_TEXT, LOG_WARNING);
	ck_assert_int_eq(log_level_change("debug"), 0);
	ck_assert_str_eq(log_level_name(log_level_now()), "debug");
	ck_assert_str_eq(log_level_name(log_level_configured()), "warning");
	ck_assert_str_eq(line(), "warning sslagent/a1: log level changed level=debug");
	ck_assert_int_eq(log_level_change("configured"), 0);
	ck_assert_int_eq(log_level_now(), LOG_WARNING);
	log_close();
}
END_TEST

START_TEST(a_level_that_hides_warnings_is_written_before)
{
	begin(LOG_TEXT, LOG_WARNING);
	ck_assert_int_eq(log_level_change("error"), 0);
	ck_assert_str_eq(line(), "warning sslagent/a1: log level changed level=error");
	ck_assert_int_eq(log_level_now(), LOG_ERROR);
	log_close();
}
END_TEST

START_TEST(a_word_that_is_no_level_changes_nothing)
{
	begin(LOG_TEXT, LOG_WARNING);
	ck_assert_int_eq(log_level_change("loud"), -1);
	ck_assert_int_eq(log_level_change(""), -1);
	ck_assert_int_eq(log_level_now(), LOG_WARNING);
	log_close();
}
END_TEST

START_TEST(errno_survives_a_log_line)
{
	begin(LOG_TEXT, LOG_INFO);
	errno = ENOTTY;
	log_event(LOG_INFO, NULL, "x", NULL);
	ck_assert_int_eq(errno, ENOTTY);
	log_close();
}
END_TEST

/* Where they go */

START_TEST(reopened_log_goes_on_in_a_new_file)
{
	char moved[300];
	begin(LOG_TEXT, LOG_INFO);
	log_event(LOG_INFO, NULL, "before", NULL);
	snprintf(moved, sizeof moved, "%s.1", path);
	ck_assert_int_eq(rename(path, moved), 0);
	log_event(LOG_INFO, NULL, "between", NULL);
	ck_assert_int_eq(log_reopen(), 0);
	log_event(LOG_INFO, NULL, "after", NULL);
	ck_assert_str_eq(line(), "info sslagent/a1: after");
	log_close();
}
END_TEST

/* The contents of the access log; its path. */
static const char *accesses(char *access_path, size_t cap)
{
	snprintf(access_path, cap, "%s/access", temp_dir());
	char *events = strdup(path);
	snprintf(path, sizeof path, "%s", access_path);
	const char *all = written();
	snprintf(path, sizeof path, "%s", events);
	free(events);
	return all;
}

static void end_connection(enum log_level level)
{
	static struct log_pace pace = { .to = LOG_ACCESS };

	log_event_paced(&pace, level, NULL, "ended", "reason=done");
}

START_TEST(lines_of_connections_go_with_the_events_until_they_have_a_file)
{
	char access_path[300];

	begin(LOG_TEXT, LOG_INFO);
	end_connection(LOG_INFO);
	ck_assert_str_eq(line(), "info sslagent/a1: ended reason=done");
	snprintf(access_path, sizeof access_path, "%s/access", temp_dir());
	unlink(access_path);
	ck_assert_int_eq(log_open_access(access_path), 0);
	end_connection(LOG_INFO);
	log_event(LOG_INFO, NULL, "link up", NULL);
	ck_assert_str_eq(accesses(access_path, sizeof access_path) + 25, "info sslagent/a1: ended reason=done");
	ck_assert_ptr_nonnull(strstr(written(), "link up"));
	log_close();
}
END_TEST

START_TEST(an_access_log_takes_its_lines_whatever_the_level_of_events)
{
	char access_path[300];

	begin(LOG_TEXT, LOG_ERROR);
	end_connection(LOG_INFO);
	ck_assert_str_eq(written(), "");
	snprintf(access_path, sizeof access_path, "%s/access", temp_dir());
	unlink(access_path);
	ck_assert_int_eq(log_open_access(access_path), 0);
	end_connection(LOG_DEBUG);
	ck_assert_str_eq(accesses(access_path, sizeof access_path), "");
	end_connection(LOG_INFO);
	ck_assert_ptr_nonnull(strstr(accesses(access_path, sizeof access_path), "ended"));
	log_close();
}
END_TEST

START_TEST(both_files_are_opened_again_though_one_cannot_be)
{
	char access_path[300], moved[310];

	begin(LOG_TEXT, LOG_INFO);
	snprintf(access_path, sizeof access_path, "%s/access", temp_dir());
	snprintf(moved, sizeof moved, "%s.1", access_path);
	unlink(access_path);
	ck_assert_int_eq(log_open_access(access_path), 0);
	ck_assert_int_eq(rename(access_path, moved), 0);
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0); /* no file can be there */
	ck_assert_int_eq(log_reopen(), -EISDIR);
	end_connection(LOG_INFO);
	ck_assert_ptr_nonnull(strstr(accesses(access_path, sizeof access_path), "ended"));
	rmdir(path);
	log_close();
}
END_TEST

START_TEST(files_are_given_only_where_they_are_its_own)
{
	struct stat st;

	begin(LOG_TEXT, LOG_INFO);
	ck_assert_int_eq(log_give(geteuid(), getegid()), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_uid, geteuid());
	log_close();
	ck_assert_int_eq(log_open("x", "", LOG_TEXT, LOG_INFO, "/dev/null"), 0);
	ck_assert_int_eq(log_give(12345, 12345), 0);
	ck_assert_int_eq(stat("/dev/null", &st), 0);
	ck_assert_uint_eq(st.st_uid, 0);
	log_close();
}
END_TEST

START_TEST(log_that_cannot_be_opened_is_an_error_and_changes_nothing)
{
	begin(LOG_TEXT, LOG_INFO);
	ck_assert_int_eq(log_open("x", "y", LOG_JSON, LOG_INFO, "/no/such/folder/log"), -ENOENT);
	log_event(LOG_INFO, NULL, "still here", NULL);
	ck_assert_str_eq(line(), "info sslagent/a1: still here");
	log_close();
}
END_TEST

/* Whatever standard error is and whether it is read: thousands of lines must pass in no time. */
static void flood_stderr(int to)
{
	int saved = dup(2);
	uint64_t dropped = log_dropped(), begin_ms = now_ms();

	ck_assert_int_eq(dup2(to, 2), 2);
	int flags = fcntl(2, F_GETFL);
	ck_assert_int_eq(log_open("ragent", "r", LOG_TEXT, LOG_INFO, NULL), 0);
	for (unsigned i = 0; i < 20000; i++)
		log_event(LOG_INFO, NULL, "flood", "number=%u", i);
	int flags_after = fcntl(2, F_GETFL);
	log_close();
	dup2(saved, 2);
	close(saved);
	ck_assert_uint_gt(log_dropped(), dropped + 1000);
	ck_assert_uint_lt(now_ms() - begin_ms, 10000);
	ck_assert_int_eq(flags, flags_after); /* others write there too */
}

START_TEST(stopped_reader_of_a_pipe_stops_nobody)
{
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	flood_stderr(fds[1]);
	static char got[1 << 17];
	ssize_t n = read(fds[0], got, sizeof got);
	ck_assert_int_gt(n, 4096);
	ck_assert_int_eq(got[n - 1], '\n'); /* whole lines only */
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(stopped_reader_of_a_socket_stops_nobody)
{
	int fds[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	flood_stderr(fds[1]);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(full_disk_drops_lines_and_counts_them)
{
	uint64_t dropped = log_dropped();
	ck_assert_int_eq(log_open("ragent", "r", LOG_TEXT, LOG_INFO, "/dev/full"), 0);
	for (unsigned i = 0; i < 10; i++)
		log_event(LOG_INFO, NULL, "lost", NULL);
	ck_assert_uint_ge(log_dropped(), dropped + 10); /* and what tells of it */
	ck_assert_uint_le(log_dropped(), dropped + 20);
	log_close();
}
END_TEST

/* A file that may not grow beyond some bytes is a disk that becomes full in the middle of a line. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_full_disk_leaves_no_half_line)
{
	char got[4096], access[256];

	begin(LOG_TEXT, LOG_INFO);
	snprintf(access, sizeof access, "%s/access", temp_dir());
	unlink(access);
	ck_assert_int_eq(log_open_access(access), 0);
	signal(SIGXFSZ, SIG_IGN);
	limit_files(1000);
	for (unsigned i = 0; i < 100; i++)
		to_access("ended", "number=%u", i);
	limit_files(RLIM_INFINITY);
	to_access("ended", "number=last");
	log_close();

	FILE *f = fopen(access, "r");
	unsigned lines = 0;
	while (fgets(got, sizeof got, f)) {
		ck_assert_ptr_nonnull(strstr(got, "info sslagent/a1: ended number="));
		ck_assert_int_eq(got[strlen(got) - 1], '\n');
		/* behind a half one there would be the next */
		ck_assert_uint_lt(strlen(got), sizeof "2026-01-02T03:04:05.678Z info sslagent/a1: ended number=last\n");
		lines++;
	}
	fclose(f);
	ck_assert_uint_gt(lines, 5);
	ck_assert_ptr_nonnull(strstr(got, "number=last\n"));
	ck_assert_uint_ge(log_dropped(), 100 - lines);
}
END_TEST

START_TEST(lost_lines_are_told_behind_the_next_event)
{
	begin(LOG_TEXT, LOG_INFO);
	ck_assert_int_eq(log_open_access("/dev/full"), 0);
	to_access("ended", NULL);
	to_access("ended", NULL);
	ck_assert_str_eq(written(), "");
	log_event(LOG_INFO, NULL, "link up", NULL);
	log_event(LOG_INFO, NULL, "link lost", NULL);
	const char *told = strstr(written(), "warning sslagent/a1: log lines lost in_all=2\n");
	ck_assert_ptr_nonnull(told);
	ck_assert_ptr_null(strstr(strchr(told, '\n'), "lines lost"));
	ck_assert(strstr(written(), "link up") < told);
	log_close();
}
END_TEST

#define WRITERS 4u
#define LINES   2000u

static void *write_lines(void *arg)
{
	for (unsigned i = 0; i < LINES; i++)
		log_event(LOG_INFO, NULL, "line", "writer=%u number=%u", (unsigned)(uintptr_t)arg, i);
	return NULL;
}

START_TEST(lines_of_many_threads_stay_whole)
{
	pthread_t threads[WRITERS];
	unsigned next[WRITERS] = { 0 }, writer, number;
	begin(LOG_TEXT, LOG_INFO);
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&threads[i], NULL, write_lines, (void *)i);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	log_close();
	FILE *f = fopen(path, "r");
	char one[256];
	while (fgets(one, sizeof one, f)) {
		if (sscanf(one, "%*s info sslagent/a1: line writer=%u number=%u\n", &writer, &number) != 2)
			ck_abort_msg("broken: %s", one);
		ck_assert_uint_lt(writer, WRITERS);
		ck_assert_uint_eq(number, next[writer]++);
	}
	fclose(f);
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_uint_eq(next[i], LINES);
}
END_TEST

UNIT(log)
{
	const TTest *facts[] = {
		text_line_has_level_component_connection_and_fields,
		json_line_has_them_as_members,
		line_without_fields_or_node_is_whole,
		every_conversion_is_printed_as_printf_does,
		text_values_cannot_look_like_fields_or_lines,
		json_values_are_valid_json_strings,
		a_format_of_several_words_stands_in_quotation_marks,
		line_that_is_too_long_loses_whole_fields_and_says_so,
		lines_below_the_level_are_not_written,
		a_level_is_changed_by_word_and_back_to_the_configured_one,
		a_level_that_hides_warnings_is_written_before,
		a_word_that_is_no_level_changes_nothing,
		errno_survives_a_log_line,
		reopened_log_goes_on_in_a_new_file,
		lines_of_connections_go_with_the_events_until_they_have_a_file,
		an_access_log_takes_its_lines_whatever_the_level_of_events,
		both_files_are_opened_again_though_one_cannot_be,
		files_are_given_only_where_they_are_its_own,
		log_that_cannot_be_opened_is_an_error_and_changes_nothing,
		stopped_reader_of_a_pipe_stops_nobody,
		stopped_reader_of_a_socket_stops_nobody,
		full_disk_drops_lines_and_counts_them,
		a_full_disk_leaves_no_half_line,
		lost_lines_are_told_behind_the_next_event,
		lines_of_many_threads_stay_whole,
	};
	return worker_suite_run("log", facts, FACTS_LEN(facts));
}
