/* test_noise.c: two states with the same input agree, and disagree from the first difference on. */
#include <string.h>

#include "proto/error.h"
#include "proto/noise.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const uint8_t psk[NOISE_KEY_LEN] = "thirty-two bytes both sides know";
static const uint8_t text[] = "a payload";

static void start(struct noise *n, const char *name)
{
	noise_init(n, name);
	noise_mix_psk(n, psk);
}

START_TEST(each_side_opens_the_messages_of_the_other_in_order)
{
	struct noise a, b;
	uint8_t sealed[2][sizeof(text) + NOISE_TAG_LEN], opened[sizeof(text)];

	start(&a, "name");
	start(&b, "name");
	noise_seal(&a, text, sizeof(text), sealed[0]);
	noise_seal(&a, text, sizeof(text), sealed[1]);
	ck_assert_mem_ne(sealed[0], sealed[1], sizeof(sealed[0]));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(noise_open(&b, sealed[i], sizeof(sealed[i]), opened), 0);
		ck_assert_mem_eq(opened, text, sizeof(text));
	}
	ck_assert_mem_eq(a.hash, b.hash, NOISE_HASH_LEN);
}
END_TEST

START_TEST(every_difference_in_what_was_mixed_shows)
{
	struct noise a, b[4];
	uint8_t sealed[sizeof(text) + NOISE_TAG_LEN], opened[sizeof(text)];

	start(&a, "name");
	for (unsigned i = 0; i < 4; i++)
		start(&b[i], i == 0 ? "other name" : "name");
	noise_mix_hash(&b[1], text, 1);
	noise_mix_key(&b[2], text, 1);
	noise_mix_psk(&b[3], psk);
	noise_seal(&a, text, sizeof(text), sealed);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(noise_open(&b[i], sealed, sizeof(sealed), opened), CSSL_E_AUTH);
}
END_TEST

START_TEST(a_payload_shorter_than_its_tag_is_refused)
{
	struct noise n;
	uint8_t sealed[NOISE_TAG_LEN] = { 0 }, opened[1];

	start(&n, "name");
	ck_assert_int_eq(noise_open(&n, sealed, NOISE_TAG_LEN - 1, opened), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(both_transport_keys_follow_from_all_that_was_secret)
{
	struct noise a, b;
	uint8_t keys[4][NOISE_KEY_LEN];

	start(&a, "name");
	start(&b, "name");
	noise_mix_key(&b, text, 1);
	noise_split(&a, keys[0], keys[1]);
	noise_split(&b, keys[2], keys[3]);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < i; j++)
			ck_assert_mem_ne(keys[i], keys[j], NOISE_KEY_LEN);
}
END_TEST

/* Links between releases: the first sealed byte depends on every detail of the mixing. */
START_TEST(the_mixing_never_changes)
{
	static const uint8_t expected[NOISE_TAG_LEN] = { 0xc3, 0xaa, 0xd7, 0xe8, 0x72, 0xf2, 0xa8, 0x54, 0x8b, 0x1e,
		0x50, 0x19, 0x11, 0x3a, 0x8b, 0x9e };
	struct noise n;
	uint8_t tag[NOISE_TAG_LEN];

	start(&n, "name");
	noise_mix_key(&n, text, sizeof(text));
	noise_seal(&n, NULL, 0, tag);
	ck_assert_mem_eq(tag, expected, sizeof(tag));
}
END_TEST

START_TEST(a_wiped_state_holds_nothing)
{
	static const struct noise nothing;
	struct noise n;

	start(&n, "name");
	noise_wipe(&n);
	ck_assert_mem_eq(&n, &nothing, sizeof(n));
}
END_TEST

UNIT(noise)
{
	const TTest *const facts[] = {
		each_side_opens_the_messages_of_the_other_in_order,
		every_difference_in_what_was_mixed_shows,
		a_payload_shorter_than_its_tag_is_refused,
		both_transport_keys_follow_from_all_that_was_secret,
		the_mixing_never_changes,
		a_wiped_state_holds_nothing,
	};
	return suite_run("noise", facts, SUITE_LEN(facts));
}
