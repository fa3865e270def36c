/* test_heard_keys.c: which datagrams are opened, and which of them are new. */
#include <string.h>

#include "proto/error.h"
#include "sslagent/cluster/broadcast/heard_keys.h"
#include "sslagent/counters.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define BOOT 77u

static struct table all;
static struct sender_keys of, other;
static struct datagram_key *sealing[KEYS_HELD + 1];

static struct given_key key_of(unsigned n, enum key_use use)
{
	return (struct given_key){ .id = n + 1, .aead = aead_preferred(), .secret = { (uint8_t)n }, .use = use };
}

static void setup(void)
{
	of = (struct sender_keys){ .sender = 3, .workers = 1, .boot_id = BOOT };
	other = (struct sender_keys){ .sender = 4, .workers = 1, .boot_id = BOOT + 1 };
	for (unsigned n = 0; n <= KEYS_HELD; n++) {
		const struct given_key key = key_of(n, KEY_NEXT);

		sealing[n] = datagram_key_create(key.id, key.aead, key.secret);
		ck_assert_ptr_nonnull(sealing[n]);
	}
}

static void teardown(void)
{
	heard_keys_forget(&all, &of);
	heard_keys_forget(&all, &other);
	ck_assert_uint_eq(all.count, 0);
	table_clear(&all);
	for (unsigned n = 0; n <= KEYS_HELD; n++)
		datagram_key_destroy(sealing[n]);
}

static int give(unsigned n, enum key_use use)
{
	const struct given_key key = key_of(n, use);

	return heard_keys_add(&all, &of, &key);
}

static size_t seal(unsigned n, uint64_t boot_id, uint16_t worker, uint64_t at, uint8_t *out)
{
	const struct datagram_header h = { .worker = worker, .key_id = n + 1, .boot_id = boot_id, .counter = at };
	ptrdiff_t len = datagram_seal(sealing[n], &h, (const uint8_t *)"hello", 5, out, DATAGRAM_MAX);

	ck_assert_int_gt(len, 0);
	return (size_t)len;
}

static ptrdiff_t open_it(const uint8_t *datagram, size_t len)
{
	uint8_t payload[DATAGRAM_PAYLOAD_MAX];
	struct heard_datagram from;
	ptrdiff_t opened = heard_keys_open(&all, datagram, len, &from, payload);

	if (opened > 0) {
		ck_assert_mem_eq(payload, "hello", 5);
		ck_assert_uint_eq(from.key->of->sender, 3);
	}
	return opened;
}

START_TEST(a_key_is_given_once_and_by_one_sender)
{
	const struct given_key key = key_of(0, KEY_NEXT);

	ck_assert_int_eq(give(0, KEY_NEXT), 0);
	ck_assert_int_eq(give(0, KEY_NEXT), KEY_KNOWN);
	ck_assert_int_eq(heard_keys_add(&all, &other, &key), CSSL_E_STATE);
	ck_assert_uint_eq(of.count, 1);
	ck_assert_uint_eq(other.count, 0);
}
END_TEST

START_TEST(of_too_many_keys_the_oldest_goes)
{
	uint8_t datagram[DATAGRAM_MAX];

	for (unsigned n = 0; n <= KEYS_HELD; n++)
		ck_assert_int_eq(give(n, KEY_NEXT), 0);
	ck_assert_uint_eq(of.count, KEYS_HELD);
	ck_assert_int_eq(open_it(datagram, seal(0, BOOT, 0, 1, datagram)), -COUNT_DATAGRAMS_KEY_UNKNOWN);
	for (unsigned n = 1; n <= KEYS_HELD; n++)
		ck_assert_int_eq(open_it(datagram, seal(n, BOOT, 0, 1, datagram)), 5);
}
END_TEST

START_TEST(a_datagram_is_new_once)
{
	uint8_t datagram[DATAGRAM_MAX];
	size_t len = seal(0, BOOT, 1, 9, datagram);

	give(0, KEY_NEXT);
	ck_assert_int_eq(open_it(datagram, len), 5);
	ck_assert_int_eq(open_it(datagram, len), -COUNT_DATAGRAMS_REPLAYED);
}
END_TEST

START_TEST(a_forged_one_does_not_use_its_counter_up)
{
	uint8_t datagram[DATAGRAM_MAX], forged[DATAGRAM_MAX];
	size_t len = seal(0, BOOT, 0, 9, datagram);

	give(0, KEY_NEXT);
	memcpy(forged, datagram, len);
	forged[len - 1] ^= 1;
	ck_assert_int_eq(open_it(forged, len), -COUNT_DATAGRAMS_FORGED);
	ck_assert_int_eq(open_it(datagram, len), 5);
}
END_TEST

START_TEST(before_its_proof_a_key_remembers_nothing_and_after_it_refuses_what_is_older)
{
	uint8_t old[DATAGRAM_MAX], fresh[DATAGRAM_MAX];
	size_t old_len = seal(0, BOOT, 0, 9, old), fresh_len = seal(0, BOOT, 0, 10, fresh);
	const uint64_t first[] = { 10, 1 };

	give(0, KEY_IN_USE);
	ck_assert_int_eq(open_it(old, old_len), 5);
	ck_assert_int_eq(open_it(old, old_len), 5);
	heard_key_prove(of.held[0], first);
	ck_assert_int_eq(open_it(old, old_len), -COUNT_DATAGRAMS_REPLAYED);
	ck_assert_int_eq(open_it(fresh, fresh_len), 5);
}
END_TEST

START_TEST(another_process_and_another_thread_are_refused)
{
	uint8_t datagram[DATAGRAM_MAX];

	give(0, KEY_NEXT);
	give(1, KEY_NEXT);
	ck_assert_int_eq(open_it(datagram, seal(0, BOOT + 1, 0, 1, datagram)), -COUNT_DATAGRAMS_OLD_BOOT);
	ck_assert_int_eq(open_it(datagram, seal(1, BOOT, 2, 1, datagram)), -COUNT_DATAGRAMS_MALFORMED);
	ck_assert_int_eq(open_it(datagram, 3), -COUNT_DATAGRAMS_MALFORMED);
}
END_TEST

START_TEST(the_key_in_use_is_the_latest_that_opened_something)
{
	uint8_t datagram[DATAGRAM_MAX];

	give(0, KEY_IN_USE);
	give(1, KEY_NEXT);
	ck_assert_uint_eq(of.in_use, 0);
	open_it(datagram, seal(1, BOOT, 0, 1, datagram));
	ck_assert_uint_eq(of.in_use, 1);
	open_it(datagram, seal(0, BOOT, 0, 1, datagram)); /* it was under way */
	ck_assert_uint_eq(of.in_use, 1);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_key_is_given_once_and_by_one_sender);
	tcase_add_test(tcase, of_too_many_keys_the_oldest_goes);
	tcase_add_test(tcase, a_datagram_is_new_once);
	tcase_add_test(tcase, a_forged_one_does_not_use_its_counter_up);
	tcase_add_test(tcase, before_its_proof_a_key_remembers_nothing_and_after_it_refuses_what_is_older);
	tcase_add_test(tcase, another_process_and_another_thread_are_refused);
	tcase_add_test(tcase, the_key_in_use_is_the_latest_that_opened_something);
}

UNIT(heard_keys)
{
	return run_suite("heard_keys", add);
}
