/* test_agents_key.c */
#include <stdio.h>
#include <string.h>

#include "proto/agents_key.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define HEX_1 "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
#define HEX_2 "f0e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f"

static int parse(const char *text, struct key_ring *out, unsigned *line)
{
	return key_ring_parse(text, strlen(text), out, line);
}

static void parse_two(struct key_ring *out)
{
	unsigned line;

	ck_assert_int_eq(parse("new " HEX_1 "\nold " HEX_2 "\n", out, &line), 0);
}

START_TEST(keys_stand_in_the_order_of_the_lines)
{
	struct key_ring ring;

	parse_two(&ring);
	ck_assert_uint_eq(ring.count, 2);
	ck_assert_str_eq(ring.keys[0].id, "new");
	ck_assert_str_eq(ring.keys[1].id, "old");
	ck_assert_uint_eq(ring.keys[0].key[1], 0x11);
	ck_assert_uint_eq(ring.keys[0].key[31], 0xff);
	ck_assert_uint_eq(ring.keys[1].key[0], 0xf0);
}
END_TEST

START_TEST(comments_blank_lines_and_line_ends_do_not_matter)
{
	static const char *const texts[] = {
		"a " HEX_1,
		"a " HEX_1 "\n",
		"a " HEX_1 "\r\n",
		"# made by hand\n\n \t\na\t " HEX_1 "\n",
		"  a   " HEX_1 "   \n#b " HEX_2,
		"# comment without end\n  # indented\na " HEX_1 "\n\n\n",
	};
	struct key_ring ring;
	unsigned line;

	for (size_t i = 0; i < SUITE_LEN(texts); i++) {
		ck_assert_int_eq(parse(texts[i], &ring, &line), 0);
		ck_assert_uint_eq(ring.count, 1);
		ck_assert_str_eq(ring.keys[0].id, "a");
		ck_assert_uint_eq(ring.keys[0].key[15], 0xff);
	}
}
END_TEST

static const struct {
	const char *text;
	int error;
	unsigned line;
} bad_texts[] = {
	{ "", CSSL_E_NOT_FOUND, 1 },
	{ "# nothing\n\n", CSSL_E_NOT_FOUND, 2 },
	{ "a\n", CSSL_E_CONFIG, 1 },
	{ HEX_1 "\n", CSSL_E_CONFIG, 1 },
	{ "a " HEX_1 " c\n", CSSL_E_CONFIG, 1 },
	{ "a " HEX_1 "\nb\n", CSSL_E_CONFIG, 2 },
	{ "# c\n\na-b " HEX_1 "\n", CSSL_E_TYPE, 3 },
	{ "seventeen_letters " HEX_1 "\n", CSSL_E_TYPE, 1 },
	{ "a " HEX_1 "0\n", CSSL_E_RANGE, 1 },
	{ "a 00112233\n", CSSL_E_RANGE, 1 },
	{ "a 00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFg\n", CSSL_E_RANGE, 1 },
	{ "a 0x112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF\n", CSSL_E_RANGE, 1 },
	{ "a " HEX_1 "\na " HEX_2 "\n", CSSL_E_MISMATCH, 2 },
	{ "a " HEX_1 "\nb " HEX_1 "\n", CSSL_E_MISMATCH, 2 },
};

START_TEST(each_bad_line_is_named_with_its_error)
{
	struct key_ring ring;
	unsigned line;

	for (size_t i = 0; i < SUITE_LEN(bad_texts); i++) {
		ck_assert_int_eq(parse(bad_texts[i].text, &ring, &line), bad_texts[i].error);
		ck_assert_uint_eq(line, bad_texts[i].line);
	}
}
END_TEST

START_TEST(an_error_leaves_nothing_of_the_keys_before_it)
{
	static const struct key_ring empty;
	struct key_ring ring;
	unsigned line;

	for (size_t i = 0; i < SUITE_LEN(bad_texts); i++) {
		memset(&ring, 0xee, sizeof(ring));
		parse(bad_texts[i].text, &ring, &line);
		ck_assert_mem_eq(&ring, &empty, sizeof(ring));
	}
}
END_TEST

START_TEST(an_id_has_16_characters_at_most)
{
	struct key_ring ring;
	unsigned line;

	ck_assert_int_eq(parse("sixteen_letters_ " HEX_1 "\n", &ring, &line), 0);
	ck_assert_str_eq(ring.keys[0].id, "sixteen_letters_");
}
END_TEST

START_TEST(a_nul_in_the_text_is_refused)
{
	static const char in_id[] = "a\0b " HEX_1 "\n";
	static const char alone[] = "a " HEX_1 "\n\0\n";
	struct key_ring ring;
	unsigned line;

	ck_assert_int_eq(key_ring_parse(in_id, sizeof(in_id) - 1, &ring, &line), CSSL_E_TYPE);
	ck_assert_int_eq(key_ring_parse(alone, sizeof(alone) - 1, &ring, &line), CSSL_E_CONFIG);
}
END_TEST

START_TEST(eight_keys_fit_and_a_ninth_is_refused)
{
	struct key_ring ring;
	unsigned line;
	char text[1024];
	size_t len = 0;

	for (unsigned i = 0; i < KEY_RING_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "k%u %02x%s\n", i, i, &HEX_2[2]);
	ck_assert_int_eq(parse(text, &ring, &line), 0);
	ck_assert_uint_eq(ring.count, KEY_RING_MAX);
	snprintf(text + len, sizeof(text) - len, "k9 " HEX_1 "\n");
	ck_assert_int_eq(parse(text, &ring, &line), CSSL_E_FULL);
	ck_assert_uint_eq(line, KEY_RING_MAX + 1);
}
END_TEST

START_TEST(a_key_is_found_by_its_whole_id_only)
{
	struct key_ring ring;

	parse_two(&ring);
	ck_assert_int_eq(key_ring_find(&ring, "old", 3), 1);
	ck_assert_int_eq(key_ring_find(&ring, "ol", 2), CSSL_E_KEY_UNKNOWN);
	ck_assert_int_eq(key_ring_find(&ring, "older", 5), CSSL_E_KEY_UNKNOWN);
	ck_assert_int_eq(key_ring_find(&ring, "", 0), CSSL_E_KEY_UNKNOWN);
	ck_assert_int_eq(key_ring_find(&ring, "old\0", 4), CSSL_E_KEY_UNKNOWN);
}
END_TEST

START_TEST(every_key_and_purpose_has_a_subkey_of_its_own)
{
	uint8_t subkeys[2 * SUBKEY_SEALED_MAIL][32]; /* the last purpose is as many as there are */
	struct key_ring ring;
	unsigned n = 0;

	parse_two(&ring);
	for (unsigned index = 0; index < 2; index++)
		for (enum subkey purpose = SUBKEY_SEALED_COPY; purpose <= SUBKEY_SEALED_MAIL; purpose++)
			key_ring_subkey(&ring, index, purpose, subkeys[n++], 32);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			ck_assert_mem_ne(subkeys[i], subkeys[j], 32);
}
END_TEST

/* Ids and copies made before an upgrade must be known after it. */
START_TEST(subkeys_never_change)
{
	static const uint8_t expected[16] = { 0xb7, 0xcd, 0x50, 0x05, 0xb3, 0xb7, 0xf9, 0x6b, 0xf7, 0x7e, 0x95, 0x48,
		0xf4, 0x87, 0xf1, 0x14 };
	struct key_ring ring;
	uint8_t subkey[16];

	parse_two(&ring);
	key_ring_subkey(&ring, 0, SUBKEY_ID_CHECK, subkey, sizeof(subkey));
	ck_assert_mem_eq(subkey, expected, sizeof(expected));
}
END_TEST

UNIT(agents_key)
{
	const TTest *const facts[] = {
		keys_stand_in_the_order_of_the_lines,
		comments_blank_lines_and_line_ends_do_not_matter,
		each_bad_line_is_named_with_its_error,
		an_error_leaves_nothing_of_the_keys_before_it,
		an_id_has_16_characters_at_most,
		a_nul_in_the_text_is_refused,
		eight_keys_fit_and_a_ninth_is_refused,
		a_key_is_found_by_its_whole_id_only,
		every_key_and_purpose_has_a_subkey_of_its_own,
		subkeys_never_change,
	};
	return suite_run("agents_key", facts, SUITE_LEN(facts));
}
