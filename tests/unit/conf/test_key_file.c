/* test_key_file.c: facts of key files: their permissions, their contents, the messages. */
#include <sodium.h>
#include <sys/types.h>

#include "conf/conf.h"
#include "proto/agents_key.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/conf/temp_dir.h"
#include "tests/unit/unit.h"

#define HEX_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

/* The message about a bad file, without the folder's random name. */
static const char *message_of(const char *path)
{
	static char out[1024];
	char error[1024] = "", *at;
	ck_assert_ptr_null(conf_read_key(path, error, sizeof error));
	out[0] = '\0';
	char *rest = error;
	while ((at = strstr(rest, temp_dir))) {
		strncat(out, rest, (size_t)(at - rest));
		strcat(out, "DIR");
		rest = at + strlen(temp_dir);
	}
	strcat(out, rest);
	return out;
}

START_TEST(a_good_file_is_read)
{
	char error[256];
	struct key_ring *ring =
		conf_read_key(temp_file("k", "k2 " HEX_A "\nk1 " HEX_B "\n", 0600), error, sizeof error);
	ck_assert_ptr_nonnull(ring);
	ck_assert_uint_eq(ring->count, 2);
	ck_assert_str_eq(ring->keys[0].id, "k2");
	ck_assert_uint_eq(ring->keys[1].key[0], 0xff);
	sodium_free(ring);
}
END_TEST

START_TEST(a_file_that_only_its_owner_reads_is_read)
{
	char error[256];
	struct key_ring *ring = conf_read_key(temp_file("k", "k " HEX_A, 0400), error, sizeof error);
	ck_assert_ptr_nonnull(ring);
	sodium_free(ring);
}
END_TEST

static const mode_t open_modes[] = { 0640, 0620, 0604, 0602, 0644, 0666, 0610, 0601 };

START_TEST(a_file_open_to_others_is_refused_with_the_remedy)
{
	char expected[256];
	snprintf(expected, sizeof expected,
		"found 'DIR/k' with mode %04o, expected mode 0600, for its owner alone: chmod 600 DIR/k",
		(unsigned)open_modes[_i]);
	ck_assert_str_eq(message_of(temp_file("k", "k " HEX_A, open_modes[_i])), expected);
}
END_TEST

START_TEST(a_missing_file_is_refused_with_the_remedy)
{
	ck_assert_str_eq(message_of(temp_path("none")),
		"found 'DIR/none', expected a file that can be read: No such file or directory; "
		"to make one: (umask 077; echo \"k1 $(openssl rand -hex 32)\" > FILE)");
}
END_TEST

START_TEST(a_folder_is_refused)
{
	ck_assert_int_eq(mkdir(temp_path("d"), 0700), 0);
	ck_assert_str_eq(message_of(temp_path("d")),
		"found 'DIR/d', expected a regular file; "
		"to make one: (umask 077; echo \"k1 $(openssl rand -hex 32)\" > FILE)");
}
END_TEST

START_TEST(a_fifo_is_refused_and_does_not_block)
{
	ck_assert_int_eq(mkfifo(temp_path("f"), 0600), 0);
	ck_assert_ptr_nonnull(strstr(message_of(temp_path("f")), "expected a regular file"));
}
END_TEST

static const struct {
	const char *text, *message;
} faults[] = {
	{ "", "DIR/k:1: found something else (not shown: it may be a key), expected a line `id key`" },
	{ "k " HEX_A "\nwhat is this\n",
		"DIR/k:2: found something else (not shown: it may be a key), expected lines `id key`" },
	{ "k 0011\n",
		"DIR/k:1: found something else (not shown: it may be a key), expected a key of 64 hexadecimal digits" },
	{ "k-1 " HEX_A "\n", "DIR/k:1: found something else (not shown: it may be a key), expected an id of 1 to 16 "
			     "letters, digits and _" },
	{ "k " HEX_A "\nk " HEX_B "\n",
		"DIR/k:2: found something else (not shown: it may be a key), expected each id and each key only once" },
};

START_TEST(bad_text_is_refused_with_its_line_and_not_quoted)
{
	ck_assert_str_eq(message_of(temp_file("k", faults[_i].text, 0600)), faults[_i].message);
}
END_TEST

START_TEST(a_huge_file_is_refused)
{
	char text[5001];
	memset(text, '#', 5000);
	text[5000] = '\0';
	ck_assert_str_eq(
		message_of(temp_file("k", text, 0600)), "DIR/k: found a larger file, expected at most 4095 bytes");
}
END_TEST

UNIT(key_file)
{
	TCase *facts = tcase_create("key_file");
	tcase_add_checked_fixture(facts, temp_dir_make, temp_dir_remove);
	tcase_add_test(facts, a_good_file_is_read);
	tcase_add_test(facts, a_file_that_only_its_owner_reads_is_read);
	tcase_add_loop_test(facts, a_file_open_to_others_is_refused_with_the_remedy, 0, ROWS(open_modes));
	tcase_add_test(facts, a_missing_file_is_refused_with_the_remedy);
	tcase_add_test(facts, a_folder_is_refused);
	tcase_add_test(facts, a_fifo_is_refused_and_does_not_block);
	tcase_add_loop_test(facts, bad_text_is_refused_with_its_line_and_not_quoted, 0, ROWS(faults));
	tcase_add_test(facts, a_huge_file_is_refused);
	return facts_run(facts);
}
