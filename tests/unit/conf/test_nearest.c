/* test_nearest.c: facts of the word that was meant. */
#include "conf/complaints.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const char *nearest_of(const char *written, const char *const *words)
{
	struct nearest n = NEAREST_TO(written);
	for (; *words; words++)
		nearest_try(&n, *words);
	return nearest_found(&n);
}

static const char *const words[] = { "agents", "connections", "drain", "undrain", NULL };

START_TEST(a_slip_finds_its_word)
{
	ck_assert_str_eq(nearest_of("agnets", words), "agents");
	ck_assert_str_eq(nearest_of("conections", words), "connections");
	ck_assert_str_eq(nearest_of("drains", words), "drain");
}
END_TEST

START_TEST(the_word_itself_is_nearest)
{
	ck_assert_str_eq(nearest_of("undrain", words), "undrain");
}
END_TEST

START_TEST(another_word_finds_none)
{
	ck_assert_ptr_null(nearest_of("sessions", words));
	ck_assert_ptr_null(nearest_of("", words));
}
END_TEST

START_TEST(without_words_there_is_none)
{
	ck_assert_ptr_null(nearest_of("agents", words + 4));
}
END_TEST

START_TEST(a_very_long_word_is_near_to_none)
{
	char text[201] = { 0 };
	for (unsigned i = 0; i < 200; i++)
		text[i] = 'a';
	ck_assert_ptr_null(nearest_of(text, words));
}
END_TEST

UNIT(nearest)
{
	const TTest *facts[] = { a_slip_finds_its_word, the_word_itself_is_nearest, another_word_finds_none,
		without_words_there_is_none, a_very_long_word_is_near_to_none };
	return suite_run("nearest", facts, SUITE_LEN(facts));
}
