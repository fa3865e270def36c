/* test_seal.c: facts of the items that are sealed for the backups. */
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/queue/items/seal.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const uint8_t plain[] = "From: x\r\n\r\nbody";
static uint8_t sealed[sizeof plain + SEAL_OVERHEAD], opened[sizeof plain];

static struct seal *seal_of(const char *keys, const char *name)
{
	struct key_ring *ring = sodium_malloc(sizeof *ring);
	struct seal *s;
	unsigned line;

	ck_assert_int_eq(key_ring_parse(keys, strlen(keys), ring, &line), 0);
	s = seal_create(ring, name);
	sodium_free(ring);
	return s;
}

#define KEY_1 "k1 1111111111111111111111111111111111111111111111111111111111111111\n"
#define KEY_2 "k2 2222222222222222222222222222222222222222222222222222222222222222\n"

START_TEST(fingerprint_tells_which_keys_a_ring_has)
{
	struct seal *both = seal_of(KEY_2 KEY_1, "one"), *one = seal_of(KEY_1, "two");

	ck_assert_uint_eq(strlen(seal_print(one)), SEAL_PRINT_LEN);
	ck_assert_str_ne(seal_print(both), seal_print(one));
	ck_assert(seal_has(both, seal_print(one)) && seal_has(both, seal_print(both)));
	ck_assert(!seal_has(one, seal_print(both)) && !seal_has(one, ""));
	seal_destroy(both);
	seal_destroy(one);
}
END_TEST

static int open_it(const struct seal *s, char kind, uint64_t id)
{
	return seal_open(s, kind, id, sealed, sizeof sealed, opened);
}

START_TEST(sealed_bytes_open_for_their_kind_id_and_gateway_only)
{
	struct seal *s = seal_of(KEY_1, "one"), *other = seal_of(KEY_1, "two");

	seal_seal(s, 'm', 7, plain, sizeof plain, sealed);
	ck_assert_int_eq(open_it(s, 'm', 7), 0);
	ck_assert_mem_eq(opened, plain, sizeof plain);
	ck_assert_int_eq(open_it(s, 's', 7), CSSL_E_AUTH);
	ck_assert_int_eq(open_it(s, 'm', 8), CSSL_E_AUTH);
	ck_assert_int_eq(open_it(other, 'm', 7), CSSL_E_AUTH);
	seal_destroy(s);
	seal_destroy(other);
}
END_TEST

START_TEST(changed_or_cut_bytes_do_not_open)
{
	struct seal *s = seal_of(KEY_1, "one");

	seal_seal(s, 'm', 7, plain, sizeof plain, sealed);
	for (size_t n = KEY_ID_MAX; n < sizeof sealed; n++) {
		sealed[n] ^= 1;
		ck_assert_int_eq(open_it(s, 'm', 7), CSSL_E_AUTH);
		sealed[n] ^= 1;
	}
	ck_assert_int_eq(seal_open(s, 'm', 7, sealed, SEAL_OVERHEAD - 1, opened), CSSL_E_TRUNCATED);
	ck_assert_int_eq(seal_open(s, 'm', 7, sealed, sizeof sealed - 1, opened), CSSL_E_AUTH);
	seal_destroy(s);
}
END_TEST

START_TEST(older_key_still_opens)
{
	struct seal *old = seal_of(KEY_1, "one"), *both = seal_of(KEY_2 KEY_1, "one"), *new = seal_of(KEY_2, "one");

	seal_seal(old, 'm', 7, plain, sizeof plain, sealed);
	ck_assert_int_eq(open_it(both, 'm', 7), 0);
	ck_assert_int_eq(open_it(new, 'm', 7), CSSL_E_KEY_UNKNOWN);
	seal_seal(both, 'm', 7, plain, sizeof plain, sealed);
	ck_assert_int_eq(open_it(new, 'm', 7), 0);
	seal_destroy(old);
	seal_destroy(both);
	seal_destroy(new);
}
END_TEST

START_TEST(sealing_works_in_place_and_never_gives_the_same_bytes)
{
	struct seal *s = seal_of(KEY_1, "one");
	uint8_t again[sizeof sealed];

	memcpy(sealed + 40, plain, sizeof plain);
	seal_seal(s, 'm', 7, sealed + 40, sizeof plain, sealed);
	ck_assert_int_eq(open_it(s, 'm', 7), 0);
	ck_assert_mem_eq(opened, plain, sizeof plain);
	seal_seal(s, 'm', 7, plain, sizeof plain, again);
	ck_assert_mem_ne(again + 16, sealed + 16, 24);
	seal_destroy(s);
}
END_TEST

UNIT(seal)
{
	const TTest *facts[] = {
		fingerprint_tells_which_keys_a_ring_has,
		sealed_bytes_open_for_their_kind_id_and_gateway_only,
		changed_or_cut_bytes_do_not_open,
		older_key_still_opens,
		sealing_works_in_place_and_never_gives_the_same_bytes,
	};
	if (sodium_init() < 0)
		return 1;
	return suite_run("seal", facts, SUITE_LEN(facts));
}
