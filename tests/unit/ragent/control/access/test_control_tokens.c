/* test_control_tokens.c: facts of the file of tokens and of the roles that it gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "ragent/control/access/control_tokens.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define READER   "cssl_reader-reader-reader-reader-reader-reader-x"
#define OPERATOR "cssl_operator-operator-operator-operator-operat"

static char path[] = "/tmp/cssl-tokens-XXXXXX";

static const char *hash_of(const char *token)
{
	static char text[2][65];
	static unsigned turn;
	uint8_t hash[32];
	crypto_generichash(hash, sizeof hash, (const uint8_t *)token, strlen(token), NULL, 0);
	return sodium_bin2hex(text[++turn % 2], sizeof text[0], hash, sizeof hash);
}

static struct control_tokens *load_text(const char *text, mode_t mode, char error[static 512])
{
	strcpy(path + sizeof path - 7, "XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
	error[0] = '\0';
	struct control_tokens *t = control_tokens_load(path, CONTROL_NAMES_BELIEVED, error, 512);
	unlink(path);
	return t;
}

static struct control_tokens *two(void)
{
	char text[512], error[512];
	snprintf(text, sizeof text, "# who watches\nwatcher read %s\n\nnight-shift\toperate  %s", hash_of(READER),
		hash_of(OPERATOR));
	struct control_tokens *t = load_text(text, 0644, error);
	ck_assert_msg(t != NULL, "%s", error);
	return t;
}

static const struct {
	const char *authorization;
	enum control_role role;
	const char *name;
} visitors[] = {
	{ "Bearer " READER, CONTROL_ROLE_READ, "watcher" },
	{ "bearer " OPERATOR, CONTROL_ROLE_OPERATE, "night-shift" },
	{ NULL, CONTROL_ROLE_NONE, NULL },
	{ "", CONTROL_ROLE_NONE, NULL },
	{ "Bearer ", CONTROL_ROLE_NONE, NULL },
	{ "Bearer " READER "y", CONTROL_ROLE_NONE, NULL },
	{ "Bearer cssl_reader", CONTROL_ROLE_NONE, NULL },
	{ "Basic " READER, CONTROL_ROLE_NONE, NULL },
	{ READER, CONTROL_ROLE_NONE, NULL },
};

START_TEST(a_token_has_its_role_and_name_and_nothing_else_has_one)
{
	struct control_tokens *t = two();
	const char *name = "?";
	ck_assert_int_eq(control_tokens_role(t, visitors[_i].authorization, &name), visitors[_i].role);
	ck_assert_pstr_eq(name, visitors[_i].name);
	free(t);
}
END_TEST

START_TEST(a_certificates_name_has_its_role_and_is_no_token)
{
	char error[512];
	const char *name;
	struct control_tokens *t = load_text("night-shift operate cn=Bob B. Example\n", 0644, error);

	ck_assert_msg(t != NULL, "%s", error);
	ck_assert_int_eq(control_tokens_certificate_role(t, "Bob B. Example", &name), CONTROL_ROLE_OPERATE);
	ck_assert_str_eq(name, "night-shift");
	ck_assert_int_eq(control_tokens_certificate_role(t, "Bob B.", &name), CONTROL_ROLE_NONE);
	ck_assert_ptr_null(name);
	ck_assert_int_eq(control_tokens_certificate_role(t, "", &name), CONTROL_ROLE_NONE);
	ck_assert_int_eq(control_tokens_role(t, "Bearer cn=Bob B. Example", &name), CONTROL_ROLE_NONE);
	free(t);
	t = two();
	ck_assert_int_eq(control_tokens_certificate_role(t, "", &name), CONTROL_ROLE_NONE);
	free(t);
}
END_TEST

START_TEST(the_hash_itself_is_no_token)
{
	char header[128];
	const char *name;
	struct control_tokens *t = two();
	snprintf(header, sizeof header, "Bearer %s", hash_of(OPERATOR));
	ck_assert_int_eq(control_tokens_role(t, header, &name), CONTROL_ROLE_NONE);
	free(t);
}
END_TEST

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const struct {
	const char *text;
	mode_t mode;
	const char *piece;
} faults[] = {
	{ "a read", 0644, ":1: found something else, expected `name role hash`" },
	{ "\na read " HASH " x", 0644, ":2: found something else, expected a hash of 64 hexadecimal digits" },
	{ "a read", 0644, "or `name role cn=COMMON NAME`" },
	{ "a read cn=", 0644, "expected a common name of 1 to 64 bytes" },
	{ "a read cn=Alice ", 0644, "expected a common name of 1 to 64 bytes, and nothing behind it" },
	{ "a write " HASH, 0644, "expected the role read or operate" },
	{ "a read " HASH "00", 0644, "expected a hash of 64 hexadecimal digits" },
	{ "a read 0011", 0644, "expected a hash of 64 hexadecimal digits" },
	{ "a read " HASH, 0664, "found mode 0664, expected a regular file that only its owner can write: chmod 644 " },
};

START_TEST(a_fault_is_told_with_file_and_line)
{
	char error[512];
	ck_assert_ptr_null(load_text(faults[_i].text, faults[_i].mode, error));
	ck_assert_msg(strstr(error, path) == error || strstr(error, "chmod"), "%s", error);
	ck_assert_msg(strstr(error, faults[_i].piece) != NULL, "%s", error);
}
END_TEST

START_TEST(a_file_that_is_missing_is_told)
{
	char error[512];
	ck_assert_ptr_null(control_tokens_load("/nowhere/at/all", CONTROL_NAMES_BELIEVED, error, sizeof error));
	ck_assert_str_eq(error, "/nowhere/at/all: cannot be read: No such file or directory");
}
END_TEST

START_TEST(an_empty_file_lets_nobody_in)
{
	char error[512];
	const char *name;
	struct control_tokens *t = load_text("", 0600, error);
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(control_tokens_role(t, "Bearer " READER, &name), CONTROL_ROLE_NONE);
	free(t);
}
END_TEST

UNIT(control_tokens)
{
	Suite *suite = suite_create("control_tokens");
	TCase *all = tcase_create("control_tokens");
	suite_add_tcase(suite, all);
	tcase_add_loop_test(all, a_token_has_its_role_and_name_and_nothing_else_has_one, 0, SUITE_LEN(visitors));
	tcase_add_loop_test(all, a_fault_is_told_with_file_and_line, 0, SUITE_LEN(faults));
	tcase_add_test(all, a_certificates_name_has_its_role_and_is_no_token);
	tcase_add_test(all, the_hash_itself_is_no_token);
	tcase_add_test(all, a_file_that_is_missing_is_told);
	tcase_add_test(all, an_empty_file_lets_nobody_in);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
