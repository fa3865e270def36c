/* test_sealed_note.c: facts of the note that RAgent keeps of an answer: it opens for its own connection and listener
 * only.
 */
#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "sslagent/service/sealed_note.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static struct key_ring ring = { .count = 1,
	.keys = { { .id = "sixteen_letters_", .key = "a key of thirty-two bytes" } } };
static const uint8_t note[] = "the answer is 42";
static const struct note_binding here = { { "connection id 16" }, "shop" };

static size_t sealed(uint8_t out[static SEALED_NOTE_MAX])
{
	ptrdiff_t len = sealed_note_seal(&ring, &here, note, sizeof note, out);

	ck_assert_int_gt(len, 0);
	ck_assert_int_le(len, SEALED_NOTE_MAX);
	return (size_t)len;
}

START_TEST(what_was_sealed_opens)
{
	uint8_t blob[SEALED_NOTE_MAX], out[SERVICE_NOTE_MAX];

	ck_assert_int_eq(sealed_note_open(&ring, &here, blob, sealed(blob), out), sizeof note);
	ck_assert_mem_eq(out, note, sizeof note);
}
END_TEST

START_TEST(the_longest_note_has_room)
{
	uint8_t blob[SEALED_NOTE_MAX], longest[SERVICE_NOTE_MAX], out[SERVICE_NOTE_MAX];

	memset(longest, 'n', sizeof longest);
	ptrdiff_t len = sealed_note_seal(&ring, &here, longest, sizeof longest, blob);
	ck_assert_int_eq(len, SEALED_NOTE_MAX);
	ck_assert_int_eq(sealed_note_open(&ring, &here, blob, (size_t)len, out), SERVICE_NOTE_MAX);
	ck_assert_mem_eq(out, longest, sizeof longest);
}
END_TEST

START_TEST(it_opens_for_nothing_else)
{
	struct note_binding other = here;
	struct key_ring keys = ring;
	uint8_t blob[SEALED_NOTE_MAX];
	uint8_t out[SERVICE_NOTE_MAX];
	size_t len = sealed(blob);

	other.connection.bytes[3] ^= 1;
	ck_assert_int_eq(sealed_note_open(&ring, &other, blob, len, out), CSSL_E_AUTH);
	other = here;
	other.listener = "shopx";
	ck_assert_int_eq(sealed_note_open(&ring, &other, blob, len, out), CSSL_E_AUTH);
	keys.keys[0].key[0] ^= 1;
	ck_assert_int_eq(sealed_note_open(&keys, &here, blob, len, out), CSSL_E_AUTH);
	keys.keys[0].id[0] = 'x';
	ck_assert_int_eq(sealed_note_open(&keys, &here, blob, len, out), CSSL_E_KEY_UNKNOWN);
}
END_TEST

START_TEST(no_bit_of_it_can_be_changed)
{
	uint8_t blob[SEALED_NOTE_MAX];
	uint8_t out[SERVICE_NOTE_MAX];
	size_t len = sealed(blob);

	for (size_t bit = 0; bit < len * 8; bit++) {
		blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_lt(sealed_note_open(&ring, &here, blob, len, out), 0);
		blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t less = 0; less < len; less++)
		ck_assert_int_lt(sealed_note_open(&ring, &here, blob, less, out), 0);
	ck_assert_int_eq(sealed_note_open(&ring, &here, blob, len, out), sizeof note);
}
END_TEST

START_TEST(a_copy_key_does_not_open_it)
{
	uint8_t download[KEY_LEN], copy[KEY_LEN];

	key_ring_subkey(&ring, 0, SUBKEY_SEALED_DOWNLOAD, download, sizeof download);
	key_ring_subkey(&ring, 0, SUBKEY_SEALED_COPY, copy, sizeof copy);
	ck_assert_mem_ne(download, copy, KEY_LEN);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, what_was_sealed_opens);
	tcase_add_test(t, the_longest_note_has_room);
	tcase_add_test(t, it_opens_for_nothing_else);
	tcase_add_test(t, no_bit_of_it_can_be_changed);
	tcase_add_test(t, a_copy_key_does_not_open_it);
}

UNIT(sealed_note)
{
	return sodium_init() < 0 ? 1 : run_suite("sealed_note", add);
}
