/* test_control_token.c: facts of tokens and their hashes. */
#include "proto/control_token.h"

#include <sodium.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(a_token_has_its_prefix_and_length)
{
	char token[CONTROL_TOKEN_LEN + 1];
	control_token_make(token);
	ck_assert_uint_eq(strlen(token), CONTROL_TOKEN_LEN);
	ck_assert_int_eq(strncmp(token, "cssl_", 5), 0);
	ck_assert_uint_eq(
		strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), CONTROL_TOKEN_LEN);
}
END_TEST

START_TEST(no_two_are_alike)
{
	char a[CONTROL_TOKEN_LEN + 1], b[CONTROL_TOKEN_LEN + 1];
	control_token_make(a);
	control_token_make(b);
	ck_assert_str_ne(a, b);
}
END_TEST

/* Files of hashes outlive releases. */
START_TEST(the_hash_is_blake2b_256)
{
	uint8_t hash[CONTROL_TOKEN_HASH_LEN];
	char hex[2 * CONTROL_TOKEN_HASH_LEN + 1];
	control_token_hash("abc", 3, hash);
	ck_assert_str_eq(sodium_bin2hex(hex, sizeof hex, hash, sizeof hash),
		"bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}
END_TEST

UNIT(control_token)
{
	const TTest *facts[] = { a_token_has_its_prefix_and_length, no_two_are_alike, the_hash_is_blake2b_256 };
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return suite_run("control_token", facts, SUITE_LEN(facts));
}
