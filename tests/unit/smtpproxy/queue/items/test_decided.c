/* test_decided.c: facts of the transactions that were decided: by name, and by age. */
#include <sodium.h>
#include <string.h>

#include "smtpproxy/queue/items/decided.h"
#include "smtpproxy/queue/items/seal.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct item_set set;
static struct decided decided;
static struct seal *seal;

static void before(void)
{
	static struct key_ring keys;

	ck_assert_int_ge(sodium_init(), 0);
	ck_assert_int_eq(key_ring_parse("k1 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a", 67,
				 &keys, &(unsigned){ 0 }),
		0);
	seal = seal_create(&keys, "test");
	set = (struct item_set){ 0 };
	decided = (struct decided){ 0 };
}

static void after(void)
{
	decided_clear(&decided);
	item_set_clear(&set); /* a leak is for the sanitizer */
	seal_destroy(seal);
}

static struct content_bytes text(const char *s)
{
	return (struct content_bytes){ .data = (const uint8_t *)s, .len = strlen(s) };
}

static struct item *is_decided(uint64_t id, const char *name, const char *reply)
{
	const struct content c = { .name = text(name), .rest = text(reply) };
	size_t len;
	uint8_t *sealed = content_seal(seal, ITEM_DECIDED, id, &c, &len);
	struct item *i = item_add(&set, ITEM_DECIDED, id, sealed, len);

	ck_assert_int_eq(decided_enter(&decided, i, text(name)), 0);
	return i;
}

static const struct item *finds(const char *name, const char *reply)
{
	char out[16];
	size_t len = 0;
	const struct item *i = decided_find(&decided, seal, text(name), out, sizeof out, &len);

	ck_assert(!i == !reply);
	ck_assert(!i || (len == strlen(reply) && !memcmp(out, reply, len)));
	return i;
}

START_TEST(name_finds_its_reply_and_no_other)
{
	struct item *first, *second;

	finds("0a/1", NULL);
	first = is_decided(1, "0a/1", "250 one");
	second = is_decided(2, "0a/2", "250 two");
	ck_assert_ptr_eq(finds("0a/1", "250 one"), first);
	ck_assert_ptr_eq(finds("0a/2", "250 two"), second);
	finds("0a/3", NULL);
	ck_assert_uint_eq(decided.count, 2);
	ck_assert_uint_eq(decided.bytes, item_bytes(first) + item_bytes(second));
}
END_TEST

START_TEST(long_reply_is_cut)
{
	is_decided(1, "0a/1", "250 0123456789abcdef");
	finds("0a/1", "250 0123456789ab");
}
END_TEST

START_TEST(one_that_leaves_is_not_found_and_keeps_its_place_by_age)
{
	struct item *first = is_decided(1, "0a/1", "250 one"), *second = is_decided(2, "0a/2", "250 two");

	decided_leave(&decided, first);
	item_remove(&set, first);
	finds("0a/1", NULL);
	ck_assert_uint_eq(decided.count, 1);
	ck_assert_ptr_eq(decided.oldest, first);
	item_drop(decided_pop(&decided));
	ck_assert_ptr_eq(decided.oldest, second);
	item_drop(decided_pop(&decided));
	ck_assert_ptr_null(decided.oldest);
	ck_assert_ptr_eq(finds("0a/2", "250 two"), second);
}
END_TEST

UNIT(decided)
{
	const TTest *facts[] = {
		name_finds_its_reply_and_no_other,
		long_reply_is_cut,
		one_that_leaves_is_not_found_and_keeps_its_place_by_age,
	};
	TCase *all = tcase_create("decided");

	tcase_add_checked_fixture(all, before, after);
	return suite_run_case("decided", all, facts, SUITE_LEN(facts));
}
