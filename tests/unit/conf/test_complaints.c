/* test_complaints.c: facts of how faults are reported. */
#include <string.h>

#include "conf/complaints.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

START_TEST(a_complaint_names_file_line_key_found_and_expected)
{
	char out[256];
	struct complaints c;
	complaints_start(&c, "c.yaml", out, sizeof out);
	complain_value(&c, 3, "mode", "xx", "one of %s, %s", "sf", "sl");
	complain(&c, 4, "name", "a list", "a name");
	complain(&c, 0, NULL, "nothing", "a cluster");
	complain_plain(&c, 9, "not %s", "YAML");
	ck_assert_str_eq(out, "c.yaml:3: key 'mode': found 'xx', expected one of sf, sl\n"
			      "c.yaml:4: key 'name': found a list, expected a name\n"
			      "c.yaml: found nothing, expected a cluster\n"
			      "c.yaml:9: not YAML");
	ck_assert_uint_eq(c.count, 4);
}
END_TEST

START_TEST(a_found_value_is_shortened_and_cannot_break_the_line)
{
	char out[256], value[200];
	struct complaints c;
	memset(value, 'v', sizeof value);
	value[1] = '\n';
	value[199] = '\0';
	complaints_start(&c, "c.yaml", out, sizeof out);
	complain_value(&c, 1, "k", value, "less");
	ck_assert_str_eq(out,
		"c.yaml:1: key 'k': found 'v?vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv...', "
		"expected less");
}
END_TEST

START_TEST(complaints_without_room_are_counted)
{
	char out[100];
	struct complaints c;
	complaints_start(&c, "c.yaml", out, sizeof out);
	for (unsigned i = 1; i <= 5; i++)
		complain(&c, i, "key", "this", "that");
	ck_assert_str_eq(out, "c.yaml:1: key 'key': found this, expected that\n... and 4 more");
	ck_assert_uint_eq(c.count, 5);
}
END_TEST

START_TEST(a_tiny_buffer_gets_the_beginning)
{
	char out[10];
	struct complaints c;
	complaints_start(&c, "c.yaml", out, sizeof out);
	complain(&c, 1, "key", "this", "that");
	ck_assert_str_eq(out, "c.yaml:1:");
}
END_TEST

START_TEST(no_buffer_at_all_is_legal)
{
	struct complaints c;
	complaints_start(&c, "c.yaml", NULL, 0);
	complain(&c, 1, "key", "this", "that");
	complain(&c, 2, "key", "this", "that");
	ck_assert_uint_eq(c.count, 2);
}
END_TEST

UNIT(complaints)
{
	TCase *facts = tcase_create("complaints");
	tcase_add_test(facts, a_complaint_names_file_line_key_found_and_expected);
	tcase_add_test(facts, a_found_value_is_shortened_and_cannot_break_the_line);
	tcase_add_test(facts, complaints_without_room_are_counted);
	tcase_add_test(facts, a_tiny_buffer_gets_the_beginning);
	tcase_add_test(facts, no_buffer_at_all_is_legal);
	return facts_run(facts);
}
