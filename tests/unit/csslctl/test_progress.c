/* test_progress.c: facts of bars, and of lines where there is no terminal. */
#include "csslctl/screen.h"
#include "tests/unit/csslctl/printed.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static void bar_is(uint64_t done, uint64_t total, const char *expected)
{
	char out[PROGRESS_BAR_MAX + 1];
	progress_bar(done, total, 18, out);
	ck_assert_str_eq(out, expected);
}

START_TEST(a_bar_fills_from_left_to_right)
{
	bar_is(0, 100, "[..........]   0%");
	bar_is(52, 100, "[#####.....]  52%");
	bar_is(100, 100, "[##########] 100%");
}
END_TEST

START_TEST(it_is_full_only_at_the_end)
{
	bar_is(4999, 5000, "[#########.]  99%");
}
END_TEST

START_TEST(of_nothing_all_is_done)
{
	bar_is(0, 0, "[##########] 100%");
}
END_TEST

START_TEST(more_than_all_is_all)
{
	bar_is(7, 5, "[##########] 100%");
}
END_TEST

START_TEST(a_bar_is_never_longer_than_its_room)
{
	char out[PROGRESS_BAR_MAX + 1];
	progress_bar(1, 2, 10000, out);
	ck_assert_uint_le(strlen(out), PROGRESS_BAR_MAX);
}
END_TEST

START_TEST(without_a_terminal_it_says_a_line_a_second)
{
	struct printed p;
	struct progress progress;
	printed_begin(&p);
	progress_start(&progress, &p.screen);
	progress_show(&progress, 1, 10, "a", 5000);
	progress_show(&progress, 2, 10, "b", 5999);
	progress_show(&progress, 3, 10, "c", 6000);
	progress_end(&progress);
	char *text = printed_end(&p);
	ck_assert_str_eq(text, "1 of 10, a\n3 of 10, c\n");
	free(text);
}
END_TEST

START_TEST(with_json_it_says_nothing)
{
	struct printed p;
	struct progress progress;
	printed_begin(&p);
	p.screen.form = SCREEN_JSON;
	progress_start(&progress, &p.screen);
	progress_show(&progress, 1, 10, "a", 5000);
	progress_end(&progress);
	char *text = printed_end(&p);
	ck_assert_str_eq(text, "");
	free(text);
}
END_TEST

START_TEST(on_a_terminal_the_bar_is_drawn_over_itself)
{
	struct printed p;
	struct progress progress;
	printed_begin(&p);
	p.screen.kind = SCREEN_TERMINAL;
	/* A stream in memory has no size: 80 columns are taken. */
	progress_start(&progress, &p.screen);
	progress_show(&progress, 1, 2, "half", 1);
	progress_end(&progress);
	char *text = printed_end(&p);
	ck_assert_str_eq(text, "\r\033[K[################................]  50%  half\r\033[K");
	free(text);
}
END_TEST

UNIT(progress)
{
	const TTest *facts[] = { a_bar_fills_from_left_to_right, it_is_full_only_at_the_end, of_nothing_all_is_done,
		more_than_all_is_all, a_bar_is_never_longer_than_its_room, without_a_terminal_it_says_a_line_a_second,
		with_json_it_says_nothing, on_a_terminal_the_bar_is_drawn_over_itself };
	return suite_run("progress", facts, SUITE_LEN(facts));
}
