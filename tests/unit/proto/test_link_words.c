/* test_link_words.c: facts of the words for the numbers of link.proto. */
#include "proto/link_words.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const char *cause(int number)
{
	return link_cause_name((Cssl__Cause)number);
}

static const char *refusal(int number)
{
	return link_refusal_name((Cssl__LinkRefused__Reason)number);
}

static const char *response(int number)
{
	return link_response_name((Cssl__ResponseState)number);
}

static const struct {
	const ProtobufCEnumDescriptor *values;
	const char *(*name)(int number);
} tables[] = {
	{ &cssl__cause__descriptor, cause },
	{ &cssl__link_refused__reason__descriptor, refusal },
	{ &cssl__response_state__descriptor, response },
};

#define TABLES (sizeof tables / sizeof tables[0])

START_TEST(every_value_has_a_word_of_its_own)
{
	for (size_t t = 0; t < TABLES; t++)
		for (unsigned i = 0; i < tables[t].values->n_values; i++) {
			const char *word = tables[t].name(tables[t].values->values[i].value);

			ck_assert_ptr_nonnull(word);
			ck_assert_str_ne(word, "unknown");
			for (unsigned j = 0; j < i; j++)
				ck_assert_str_ne(word, tables[t].name(tables[t].values->values[j].value));
		}
}
END_TEST

START_TEST(a_number_of_a_later_release_is_unknown)
{
	for (size_t t = 0; t < TABLES; t++) {
		ck_assert_str_eq(tables[t].name((int)tables[t].values->n_values), "unknown");
		ck_assert_str_eq(tables[t].name(-1), "unknown");
	}
}
END_TEST

UNIT(link_words)
{
	const TTest *facts[] = {
		every_value_has_a_word_of_its_own,
		a_number_of_a_later_release_is_unknown,
	};
	return suite_run("link_words", facts, SUITE_LEN(facts));
}
