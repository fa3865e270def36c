/* test_record.c: facts of the owner's record. The link is the test: it keeps the arguments of a request, which come
 * back as a server's answer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smtpproxy/queue/backup/record.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ONE   "11111111111111111111111111111111"

static char said[2 * RECORD_MARKER_FIELDS][REPLACED_MAX + 1];
static unsigned count;

void redis_link_argument(struct redis_link *l, const void *data, size_t len)
{
	ck_assert_uint_lt(count, SUITE_LEN(said));
	ck_assert_uint_lt(len, sizeof said[0]);
	memcpy(said[count], data, len);
	said[count++][len] = '\0';
}

void redis_link_number(struct redis_link *l, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	redis_link_text(l, text);
}

static int reads(struct marker *out)
{
	redisReply texts[SUITE_LEN(said)], *all[SUITE_LEN(said)];
	const redisReply reply = { .type = REDIS_REPLY_ARRAY, .elements = count, .element = all };

	for (unsigned n = 0; n < count; n++) {
		texts[n] = (redisReply){ .type = REDIS_REPLY_STRING, .str = said[n], .len = strlen(said[n]) };
		all[n] = &texts[n];
	}
	return record_read(out, &reply);
}

static void says(const char *name, const char *value)
{
	redis_link_text(NULL, name);
	redis_link_text(NULL, value);
}

static void before(void)
{
	count = 0;
}

START_TEST(marker_comes_back_as_it_was)
{
	static const struct marker m = { .version = UINT64_MAX,
		.run_id = RUN_A,
		.members = { RUN_A, "" },
		.apart = { "", RUN_B },
		.apart_version = 7,
		.unread = 2,
		.left = { { RUN_B, 3, 4, ONE }, { RUN_A, 5, 6, "" } },
		.by = ONE,
		.owners = ONE "0000000000000005",
		.replaced = RUN_B "00000000000000030000000000000004" ONE,
		.key = "00112233445566778899aabbccddeeff" };
	struct marker is;

	record_write(NULL, &m);
	ck_assert_uint_eq(count, SUITE_LEN(said));
	ck_assert_int_eq(reads(&is), 0);
	ck_assert_mem_eq(&is, &m, sizeof m);
}
END_TEST

START_TEST(claim_is_read_and_fields_that_are_not_known_are_passed_over)
{
	struct marker is;

	says("epoch", "3");
	says("generation", "2");
	says("renewals", "99");
	says("nonce", ONE);
	says("token", "3.2");
	ck_assert_int_eq(reads(&is), 0);
	ck_assert_uint_eq(is.epoch, 3);
	ck_assert_uint_eq(is.generation, 2);
	ck_assert_uint_eq(is.renewals, 99);
	ck_assert_str_eq(is.nonce, ONE);
	ck_assert_uint_eq(is.version, 0);
}
END_TEST

START_TEST(long_value_is_cut)
{
	struct marker is;

	says("run_id", RUN_A "more");
	ck_assert_int_eq(reads(&is), 0);
	ck_assert_str_eq(is.run_id, RUN_A);
}
END_TEST

START_TEST(what_is_no_record_is_refused)
{
	const redisReply number = { .type = REDIS_REPLY_INTEGER };
	redisReply *both[] = { (redisReply *)&number, (redisReply *)&number };
	const redisReply numbers = { .type = REDIS_REPLY_ARRAY, .elements = 2, .element = both };
	struct marker is;

	ck_assert_int_eq(record_read(&is, &number), -1);
	ck_assert_int_eq(record_read(&is, &numbers), -1);
}
END_TEST

UNIT(record)
{
	const TTest *facts[] = {
		marker_comes_back_as_it_was,
		claim_is_read_and_fields_that_are_not_known_are_passed_over,
		long_value_is_cut,
		what_is_no_record_is_refused,
	};
	return suite_run_with("record", before, facts, SUITE_LEN(facts));
}
