/* test_ja4.c: fingerprints that FoxIO's specification and its samples of captured traffic give for known lists, and the
 * cases that they do not show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/ja4.h"
#include "proto/wire.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* A hello by its lists in hexadecimal. NULL: it lacks that extension, wherever its number stands in @extensions. */
struct kind {
	uint16_t version; /* legacy_version; 0: 0x0303 */
	const char *ciphers, *extensions, *signatures, *versions;
	const char *alpn; /* the first protocol; "" for one of no bytes */
};

#define CHROME_CIPHERS    "1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035"
#define CHROME_EXTENSIONS "001b,0000,0033,0010,4469,0017,002d,000d,0005,0023,0012,002b,ff01,000b,000a,0015"
#define CHROME_SIGNATURES "0403,0804,0401,0503,0805,0501,0806,0601"

static const struct kind chrome = { .ciphers = CHROME_CIPHERS,
	.extensions = CHROME_EXTENSIONS,
	.signatures = CHROME_SIGNATURES,
	.versions = "0304,0303",
	.alpn = "h2" };

static void put_list(struct wire_writer *w, const char *list)
{
	for (const char *at = list; *at; at += at[4] ? 5 : 4)
		wire_put_u16(w, (uint16_t)strtoul((char[]){ at[0], at[1], at[2], at[3], 0 }, NULL, 16));
}

static size_t list_len(const char *list)
{
	return (strlen(list) + 1) / 5 * 2;
}

static void put_extension(struct wire_writer *w, uint16_t type, const struct kind *k)
{
	wire_put_u16(w, type);
	if (type == 0x0000) {
		wire_put_u16(w, 6);
		wire_put_u16(w, 4);
		wire_put_u8(w, 0);
		wire_put_u16(w, 1);
		wire_put_u8(w, 'a');
	} else if (type == 0x000d && k->signatures) {
		wire_put_u16(w, (uint16_t)(2 + list_len(k->signatures)));
		wire_put_u16(w, (uint16_t)list_len(k->signatures));
		put_list(w, k->signatures);
	} else if (type == 0x002b && k->versions) {
		wire_put_u16(w, (uint16_t)(1 + list_len(k->versions)));
		wire_put_u8(w, (uint8_t)list_len(k->versions));
		put_list(w, k->versions);
	} else if (type == 0x0010 && k->alpn) {
		wire_put_u16(w, (uint16_t)(3 + strlen(k->alpn)));
		wire_put_u16(w, (uint16_t)(1 + strlen(k->alpn)));
		wire_put_u8(w, (uint8_t)strlen(k->alpn));
		wire_put_bytes(w, k->alpn, strlen(k->alpn));
	} else {
		wire_put_u16(w, 0);
	}
}

static size_t hello_of(const struct kind *k, uint8_t *out, size_t cap)
{
	static const uint8_t random[32];
	struct wire_writer w = wire_writer(out, cap);

	wire_put_u8(&w, 1);
	uint8_t *len = wire_put_room(&w, 3);
	wire_put_u16(&w, k->version ? k->version : 0x0303);
	wire_put_bytes(&w, random, sizeof(random));
	wire_put_u8(&w, 0);
	wire_put_u16(&w, (uint16_t)list_len(k->ciphers));
	put_list(&w, k->ciphers);
	wire_put_u16(&w, 0x0100);
	if (k->extensions) {
		uint8_t *extensions = wire_put_room(&w, 2);
		for (const char *at = k->extensions; *at; at += at[4] ? 5 : 4)
			put_extension(&w, (uint16_t)strtoul((char[]){ at[0], at[1], at[2], at[3], 0 }, NULL, 16), k);
		wire_store_u16(extensions, (uint16_t)(w.at - extensions - 2));
	}
	size_t whole = (size_t)wire_writer_len(&w);
	len[0] = 0;
	wire_store_u16(len + 1, (uint16_t)(whole - 4));
	return whole;
}

static const char *ja4_of(const struct kind *k)
{
	static char text[JA4_TEXT_MAX];
	static uint8_t bytes[16384];
	struct client_hello hello;
	struct ja4 made;

	ck_assert_int_eq(client_hello_read(bytes, hello_of(k, bytes, sizeof(bytes)), &hello), 0);
	ja4_make(&hello, &made);
	return ja4_text(&made, text);
}

/* The lists of the specification, and of captures that FoxIO publishes with their fingerprints. */
static const struct sample {
	const char *ja4;
	struct kind kind;
} samples[] = {
	{ "t13d1516h2_8daaf6152771_e5627efa2ab1",
		{ 0, CHROME_CIPHERS, CHROME_EXTENSIONS, CHROME_SIGNATURES, "0304,0303", "h2" } },
	{ "t13d1516h1_8daaf6152771_e5627efa2ab1",
		{ 0, CHROME_CIPHERS, "000d,0033,0000,ff01,002b,0023,002d,0005,0012,000b,0017,4469,0010,001b,000a,0015",
			CHROME_SIGNATURES, "0304,0303", "http/1.1" } },
	{ "t13d1615h2_46e7e9700bed_45f260be83e2",
		{ 0, "1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035,000a",
			"0000,0017,ff01,000a,000b,0023,0010,0005,000d,0012,0033,002d,002b,001b,0015",
			"0403,0804,0401,0503,0805,0501,0806,0601,0201", "0304,0303", "h2" } },
	{ "t12d190800_d83cc789557e_7af1ed941c26",
		{ 0, "c02c,c02b,c030,c02f,c024,c023,c028,c027,c00a,c009,c014,c013,009d,009c,003d,003c,0035,002f,000a",
			"0000,0005,000a,000b,000d,0023,0017,ff01",
			"0804,0805,0806,0401,0501,0201,0403,0503,0203,0202,0601,0603", NULL, NULL } },
	{ "t12d1909h2_d83cc789557e_7af1ed941c26",
		{ 0, "c02c,c02b,c030,c02f,c024,c023,c028,c027,c00a,c009,c014,c013,009d,009c,003d,003c,0035,002f,000a",
			"0000,0005,000a,000b,000d,0023,0010,0017,ff01",
			"0804,0805,0806,0401,0501,0201,0403,0503,0203,0202,0601,0603", NULL, "h2" } },
	{ "t10d230100_6a57a6f57151_000000000000", { 0x0301,
							  "0039,0038,0035,0016,0013,000a,0033,0032,002f,009a,0099,0096,"
							  "0005,0004,0015,0012,0009,0014,0011,0008,0006,0003,00ff",
							  "0000", NULL, NULL, NULL } },
	{ "t12d4605h2_85626a9a5f7f_aaf95bb78ec9",
		{ 0,
			"c030,c02c,c028,c024,c014,c00a,009f,006b,0039,cca9,cca8,ccaa,ff85,00c4,0088,0081,009d,003d,"
			"0035,00c0,0084,c02f,c02b,c027,c023,c013,c009,009e,0067,0033,00be,0045,009c,003c,002f,00ba,"
			"0041,c011,c007,0005,0004,c012,c008,0016,000a,00ff",
			"0000,000b,000a,000d,0010", "0601,0603,efef,0501,0503,0401,0403,eeee,eded,0301,0303,0201,0203",
			NULL, "h2" } },
};

START_TEST(published_examples_have_their_fingerprints)
{
	ck_assert_str_eq(ja4_of(&samples[_i].kind), samples[_i].ja4);
}
END_TEST

START_TEST(values_that_clients_make_up_count_nowhere)
{
	struct kind k = chrome;

	k.ciphers = "8a8a," CHROME_CIPHERS;
	k.extensions = "dada," CHROME_EXTENSIONS ",2a2a";
	k.signatures = "0a0a," CHROME_SIGNATURES;
	k.versions = "fafa,0304,0303";
	ck_assert_str_eq(ja4_of(&k), samples[0].ja4);
}
END_TEST

START_TEST(the_version_is_the_highest_that_is_offered)
{
	static const struct {
		uint16_t legacy;
		const char *versions, *text;
	} rows[] = { { 0x0303, "0303,0304", "t13" }, { 0x0303, "0303", "t12" }, { 0x0303, NULL, "t12" },
		{ 0x0302, NULL, "t11" }, { 0x0301, NULL, "t10" }, { 0x0300, NULL, "ts3" }, { 0x0303, "7f1c", "t00" } };
	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		struct kind k = chrome;
		k.version = rows[i].legacy;
		k.versions = rows[i].versions;
		k.extensions = k.versions ? CHROME_EXTENSIONS : "000d";
		ck_assert_mem_eq(ja4_of(&k), rows[i].text, 3);
	}
}
END_TEST

START_TEST(two_characters_tell_the_first_protocol)
{
	static const char *const rows[][2] = { { "h2", "h2" }, { "http/1.1", "h1" }, { "x", "xx" }, { "\xab", "ab" },
		{ "\x20", "20" }, { "\xab\xcd", "ad" }, { "\x20\x61", "21" }, { "\x30\xab", "3b" },
		{ "\x61\x20", "60" }, { "\x30\x31\xab\xcd", "3d" }, { "\x30\xab\xcd\x31", "01" }, { "", "00" } };
	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		struct kind k = chrome;
		k.alpn = rows[i][0];
		ck_assert_mem_eq(ja4_of(&k) + 8, rows[i][1], 2);
	}
}
END_TEST

START_TEST(lists_without_values_are_zeros)
{
	ck_assert_str_eq(ja4_of(&(struct kind){ .ciphers = "0a0a" }), "t12i000000_000000000000_000000000000");
	ck_assert_str_eq(ja4_of(&(struct kind){ .ciphers = "0a0a", .extensions = "0000" }),
		"t12d000100_000000000000_000000000000");
	/* as the specification has it */
	struct kind k = chrome;
	k.signatures = NULL;
	ck_assert_str_eq(ja4_of(&k) + 24, "6d807ffa2a79");
}
END_TEST

static const char *list_of(size_t count)
{
	static char list[5 * 513 + 1];

	for (size_t i = 0; i < count; i++)
		sprintf(list + 5 * i, "%04zx,", 0x1300 + i);
	list[5 * count - 1] = '\0';
	return list;
}

START_TEST(counts_end_at_99_and_hashes_are_of_all_values)
{
	struct kind k = chrome;

	k.ciphers = list_of(98);
	ck_assert_mem_eq(ja4_of(&k), "t13d9816h2", 10);
	k.ciphers = list_of(512);
	ck_assert_str_eq(ja4_of(&k), "t13d9916h2_f16d9ca29313_e5627efa2ab1");
	k.ciphers = list_of(513);
	ck_assert_str_eq(ja4_of(&k), "");
}
END_TEST

START_TEST(extensions_that_are_cut_short_do_no_harm)
{
	static const struct {
		uint8_t type, len, body[4];
	} rows[] = { { 13, 0, { 0 } }, { 13, 3, { 0, 8, 4 } }, { 16, 1, { 0 } }, { 16, 3, { 0, 9, 9 } },
		{ 16, 3, { 0, 1, 0 } } };
	char text[JA4_TEXT_MAX];

	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		uint8_t bytes[8] = { 0, rows[i].type, 0, rows[i].len };
		struct ja4 made;
		memcpy(bytes + 4, rows[i].body, rows[i].len);
		const struct client_hello hello = {
			.version = 0x0303, .extensions = bytes, .extensions_len = (uint16_t)(4 + rows[i].len)
		};
		ja4_make(&hello, &made);
		ck_assert_mem_eq(ja4_text(&made, text), "t12i000100", 10);
	}
}
END_TEST

UNIT(ja4)
{
	const TTest *const facts[] = {
		values_that_clients_make_up_count_nowhere,
		the_version_is_the_highest_that_is_offered,
		two_characters_tell_the_first_protocol,
		lists_without_values_are_zeros,
		counts_end_at_99_and_hashes_are_of_all_values,
		extensions_that_are_cut_short_do_no_harm,
	};
	TCase *all = tcase_create("ja4");
	tcase_add_loop_test(all, published_examples_have_their_fingerprints, 0, (int)SUITE_LEN(samples));
	return suite_run_case("ja4", all, facts, SUITE_LEN(facts));
}
