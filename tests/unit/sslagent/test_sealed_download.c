/* test_sealed_download.c: facts of what RAgent keeps of an answer: it opens for its own connection and listener only.
 */
#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "sslagent/service/sealed_download.h"
#include "tests/unit/sslagent/suite_of.h"

static struct key_ring ring = { .count = 1,
	.keys = { { .id = "sixteen_letters_", .key = "a key of thirty-two bytes" } } };
static const struct download answer = { .first = 200,
	.len = 100,
	.total = 1000,
	.head_len = 50,
	.closes = DOWNLOAD_CLOSES,
	.etag_len = 4,
	.etag = "\"v1\"" };
static const struct download_binding here = { { "connection id 16" }, "shop" };

static size_t sealed(const struct download *d, uint8_t out[static SEALED_DOWNLOAD_MAX])
{
	ptrdiff_t len = sealed_download_seal(&ring, &here, d, out);

	ck_assert_int_gt(len, 0);
	ck_assert_int_le(len, SEALED_DOWNLOAD_MAX);
	return (size_t)len;
}

START_TEST(what_was_sealed_opens)
{
	uint8_t blob[SEALED_DOWNLOAD_MAX];
	struct download d = answer, out;

	if (_i) {
		d.etag_len = DOWNLOAD_ETAG_MAX;
		memset(d.etag, 'e', sizeof d.etag);
	}
	ck_assert_int_eq(sealed_download_open(&ring, &here, blob, sealed(&d, blob), &out), 0);
	ck_assert_mem_eq(&out, &d, sizeof d);
}
END_TEST

START_TEST(it_opens_for_nothing_else)
{
	struct download_binding other = here;
	struct key_ring keys = ring;
	uint8_t blob[SEALED_DOWNLOAD_MAX];
	struct download out;
	size_t len = sealed(&answer, blob);

	other.connection.bytes[3] ^= 1;
	ck_assert_int_eq(sealed_download_open(&ring, &other, blob, len, &out), CSSL_E_AUTH);
	other = here;
	other.listener = "shopx";
	ck_assert_int_eq(sealed_download_open(&ring, &other, blob, len, &out), CSSL_E_AUTH);
	keys.keys[0].key[0] ^= 1;
	ck_assert_int_eq(sealed_download_open(&keys, &here, blob, len, &out), CSSL_E_AUTH);
	keys.keys[0].id[0] = 'x';
	ck_assert_int_eq(sealed_download_open(&keys, &here, blob, len, &out), CSSL_E_KEY_UNKNOWN);
}
END_TEST

START_TEST(no_bit_of_it_can_be_changed)
{
	uint8_t blob[SEALED_DOWNLOAD_MAX];
	struct download out;
	size_t len = sealed(&answer, blob);

	for (size_t bit = 0; bit < len * 8; bit++) {
		blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_lt(sealed_download_open(&ring, &here, blob, len, &out), 0);
		blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t less = 0; less < len; less++)
		ck_assert_int_lt(sealed_download_open(&ring, &here, blob, less, &out), 0);
	ck_assert_int_eq(sealed_download_open(&ring, &here, blob, len, &out), 0);
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

/* What no agent of ours seals: it is refused before anybody counts with it. */
static const struct download senseless[] = {
	{ .first = 0, .len = 0, .total = 1000, .head_len = 50 },
	{ .first = 0, .len = 1001, .total = 1000, .head_len = 50 },
	{ .first = 901, .len = 100, .total = 1000, .head_len = 50 },
	{ .first = UINT64_MAX, .len = 2, .total = 1000, .head_len = 50 },
	{ .first = 0, .len = 1000, .total = 1000, .head_len = 0 },
	{ .first = 0, .len = 1000, .total = 1000, .head_len = DOWNLOAD_HEAD_MAX + 1 },
	{ .first = 0, .len = 1000, .total = 1000, .head_len = 50, .closes = 2 },
};

START_TEST(what_makes_no_sense_is_refused)
{
	uint8_t blob[SEALED_DOWNLOAD_MAX];
	struct download out;

	ck_assert_int_eq(sealed_download_open(&ring, &here, blob, sealed(&senseless[_i], blob), &out), CSSL_E_RANGE);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, what_was_sealed_opens, 0, 2);
	tcase_add_test(t, it_opens_for_nothing_else);
	tcase_add_test(t, no_bit_of_it_can_be_changed);
	tcase_add_test(t, a_copy_key_does_not_open_it);
	tcase_add_loop_test(t, what_makes_no_sense_is_refused, 0, (int)(sizeof senseless / sizeof senseless[0]));
}

int main(void)
{
	return sodium_init() < 0 ? 1 : run_suite("sealed_download", add);
}
