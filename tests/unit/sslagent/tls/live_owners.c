/* live_owners.c: records between the agent and the client of live_pair.h. */
#include <check.h>

#include "proto/error.h"
#include "tests/unit/sslagent/tls/live_owners.h"

struct live_pair pair;
uint8_t record[FORGED_RECORD_MAX], plain[TLS_PLAINTEXT_MAX];

const struct cipher_suite *suite_at(int i)
{
	unsigned count;
	const struct cipher_suite *all = cipher_suites(&count);

	ck_assert_uint_lt((unsigned)i, count);
	return &all[i];
}

void start(uint16_t suite)
{
	ck_assert_int_eq(live_pair_start(&pair, suite, 0), 0);
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i * 7 + i / 251);
}

int is_tls13(const struct live_pair *p)
{
	return p->suite->protocol_version == TLS13_VERSION_WIRE;
}

void agent_says(struct live *from, size_t len)
{
	struct live_record got;
	ptrdiff_t n = live_seal(from, plain, len, record);

	ck_assert_int_eq(n, (ptrdiff_t)(len + live_overhead(from)));
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_DATA);
	ck_assert_uint_eq(got.len, len);
	ck_assert_mem_eq(got.data, plain, len);
}

int client_sends(struct live *to, const struct forged_record *r, struct live_record *got)
{
	ptrdiff_t n = record_forge_seal(pair.client, r, record, sizeof(record));

	ck_assert_int_gt(n, 0);
	return live_open_bytes(to, record, (size_t)n, 0, got);
}

void client_says(struct live *to, size_t len)
{
	struct live_record got;

	ck_assert_int_eq(
		client_sends(to, &(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = plain, .len = len },
			&got),
		0);
	ck_assert_int_eq(got.content, LIVE_DATA);
	ck_assert_uint_eq(got.len, len);
	ck_assert_mem_eq(got.data, plain, len);
}

void client_updates_keys(struct live *to, uint8_t request)
{
	uint8_t message[5] = { 24, 0, 0, 1, request };
	struct live_record got;

	ck_assert_int_eq(
		client_sends(to, &(struct forged_record){ .type = TLS_HANDSHAKE, .content = message, .len = 5 }, &got),
		0);
	ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	ck_assert_int_eq(record_forge_step(pair.client), 0);
}

void agent_updates_keys(struct live *from)
{
	struct live_record got;
	ptrdiff_t n = live_seal_key_update(from, record);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	live_committed(from, live_position(from).write_generation);
}

struct live *adopt(struct live_pool *pool, const struct live_part *part, uint16_t epoch, enum live_start how)
{
	struct live_position at = live_part_position(part);
	struct live *l = NULL;

	ck_assert_int_eq(live_create(pool, part, pair.suite->id, &at, epoch, how, &l), 0);
	return l;
}

int adopt_result(const struct live_part *part, uint16_t epoch, enum live_start how)
{
	struct live_position at = live_part_position(part);
	struct live *l = NULL;
	int r = live_create(pair.pool, part, pair.suite->id, &at, epoch, how, &l);

	live_destroy(l);
	return r;
}

int live_suite_run(
	const char *name, const TTest *const *each, size_t each_count, const TTest *const *one, size_t one_count)
{
	Suite *s = suite_create(name);
	TCase *of_each = tcase_create("each suite"), *of_one = tcase_create("one suite");
	unsigned suites;

	cipher_suites(&suites);
	suite_add_tcase(s, of_each);
	suite_add_tcase(s, of_one);
	for (size_t i = 0; i < each_count; i++)
		tcase_add_loop_test(of_each, each[i], 0, (int)suites);
	for (size_t i = 0; i < one_count; i++)
		tcase_add_test(of_one, one[i]);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
