/* test_session_listing.c: filters, pages, and how long they take. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/socket/address.h"
#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/session_listing.h"
#include "sslagent/sessions/store.h"
#include "tests/unit/sslagent/revoke_what.h"
#include "tests/unit/sslagent/sessions/session_maker.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define LIFETIME_MS (3600 * 1000)
#define NOW_MS      100000
#define WHOLE       (256u * 1024u * 1024u) /* the default of a cluster file */
#define MANY        100000u
#define BOUND_MS    100

static struct tombstones *tombstones;
static struct store *store;
static struct counter_array counters;

static void open_store(uint64_t bytes)
{
	const struct store_limits limits = { bytes, 100, LIFETIME_MS };

	ck_assert_int_ge(sodium_init(), 0);
	memset(&counters, 0, sizeof(counters));
	counters_use(&counters);
	tombstones = tombstones_create(LIFETIME_MS, TOMBSTONES_MAX);
	store = store_create(&limits, tombstones);
	ck_assert(tombstones && store);
}

static void close_store(void)
{
	store_destroy(store);
	tombstones_destroy(tombstones);
	counters_use(NULL);
}

/* @age_s old at NOW_MS; its id is in *id (may be NULL). */
static void put(const char *server_name, const char *client, uint32_t age_s, uint8_t *id)
{
	static struct made_session made;
	static uint8_t encoded[SESS_OBJ_LEN_MAX];
	const int64_t made_ms = NOW_MS - (int64_t)age_s * 1000;

	session_make(&made, &(struct session_wish){ .server_name = server_name, .client = client, .origin = "a7" });
	const ptrdiff_t len = sess_obj_encode(&made.obj, encoded, sizeof(encoded));
	ck_assert_int_gt(len, 0);
	if (id)
		memcpy(id, made.obj.facts.session_id, SESSION_ID_LEN);
	const struct offer offer = { &made.obj, encoded, (size_t)len, made_ms, made_ms, STORED_OWN, 0 };
	ck_assert_int_eq(store_put(store, &offer, NOW_MS), 0);
}

static struct session_listing *list(struct session_query q)
{
	int result;

	if (q.bytes_max == 0)
		q.bytes_max = SIZE_MAX;
	struct session_listing *l = session_listing_create(store, &q, NOW_MS);
	ck_assert_ptr_nonnull(l);
	while ((result = session_listing_step(l)) > 0)
		;
	ck_assert_int_eq(result, 0);
	return l;
}

static const struct listed_session *rows_of(const struct session_listing *l, size_t *count, int *more)
{
	*count = l->row_count;
	*more = l->more;
	return l->rows;
}

static uint64_t count_of(Cssl__SessionFilter f)
{
	struct session_listing *l = list((struct session_query){ .filter = &f });
	const uint64_t count = l->count;

	session_listing_destroy(l);
	return count;
}

START_TEST(an_empty_store_has_an_empty_page)
{
	size_t count;
	int more;

	open_store(WHOLE);
	struct session_listing *l = list((struct session_query){ .limit = 10 });
	rows_of(l, &count, &more);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(more, LISTING_ENDS);
	session_listing_destroy(l);
	close_store();
}
END_TEST

START_TEST(a_row_has_the_facts_of_its_session)
{
	uint8_t id[SESSION_ID_LEN];
	size_t count;
	int more;

	open_store(WHOLE);
	put("x.example", "192.0.2.1", 40, id);
	struct session_listing *l = list((struct session_query){ .limit = 10 });
	const struct listed_session *row = rows_of(l, &count, &more);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(more, LISTING_ENDS);
	ck_assert_mem_eq(row->facts.session_id, id, SESSION_ID_LEN);
	ck_assert_str_eq(row->facts.server_name, "x.example");
	ck_assert_str_eq(row->facts.origin, "a7");
	ck_assert_uint_eq(row->age_s, 40);
	ck_assert_uint_eq(row->facts.family_age_s, 40);
	ck_assert_uint_eq(row->expires_s, 3560);
	ck_assert_uint_eq(row->hits, 0);
	session_listing_destroy(l);
	close_store();
}
END_TEST

START_TEST(resumptions_are_counted)
{
	uint8_t id[SESSION_ID_LEN];
	int64_t family_made_ms;
	struct sess_obj obj;
	size_t count;
	int more;

	open_store(WHOLE);
	put("x.example", NULL, 0, id);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(store_find(store, id, NOW_MS, &obj, &family_made_ms), 0);
		sess_obj_destroy(&obj);
	}
	struct session_listing *l = list(
		(struct session_query){ .limit = 1, .filter = &FILTER(.session_id = bytes_of(id, SESSION_ID_LEN)) });
	ck_assert_uint_eq(rows_of(l, &count, &more)->hits, 3);
	session_listing_destroy(l);
	close_store();
}
END_TEST

START_TEST(filters_let_through_what_they_say)
{
	uint8_t id[SESSION_ID_LEN], other[SESSION_ID_LEN] = { 0 };

	open_store(WHOLE);
	put("a.example", "10.0.0.1", 10, id);
	put("b.example", "10.0.128.2", 20, NULL);
	put("", "2001:db8::1", 30, NULL);
	ck_assert_uint_eq(count_of(FILTER()), 3);
	ck_assert_uint_eq(count_of(FILTER(.server_name = (char *)"A.EXAMPLE")), 1);
	ck_assert_uint_eq(count_of(FILTER(.server_name = (char *)"c.example")), 0);
	ck_assert_uint_eq(count_of(FILTER(.session_id = bytes_of(id, SESSION_ID_LEN))), 1);
	ck_assert_uint_eq(count_of(FILTER(.session_id = bytes_of(other, SESSION_ID_LEN))), 0);
	ck_assert_uint_eq(
		count_of(FILTER(.session_id = bytes_of(id, SESSION_ID_LEN), .server_name = (char *)"b.example")), 0);
	ck_assert_uint_eq(count_of(FILTER(.min_age_s = 20)), 2);
	ck_assert_uint_eq(count_of(FILTER(.max_age_s = 20)), 2);
	ck_assert_uint_eq(count_of(FILTER(.min_age_s = 11, .max_age_s = 29)), 1);
	ck_assert_uint_eq(count_of(FILTER(.protocol_version = 0x0304)), 3);
	ck_assert_uint_eq(count_of(FILTER(.protocol_version = 0x0303)), 0);
	ck_assert_uint_eq(count_of(FILTER(.cipher_suite = 0x1301)), 3);
	ck_assert_uint_eq(count_of(FILTER(.cipher_suite = 0x1302)), 0);
	close_store();
}
END_TEST

START_TEST(families_and_client_certificates_are_told_and_filtered)
{
	static struct made_session made;
	static uint8_t encoded[SESS_OBJ_LEN_MAX];
	uint8_t hash[CERTIFICATE_HASH_LEN], other[CERTIFICATE_HASH_LEN] = { 1 };
	size_t count;
	int more;

	open_store(WHOLE);
	put("x.example", NULL, 0, NULL);
	session_make(&made, &(struct session_wish){ .client_certificate = "certificate" });
	const ptrdiff_t len = sess_obj_encode(&made.obj, encoded, sizeof(encoded));
	const struct offer offer = { &made.obj, encoded, (size_t)len, NOW_MS, NOW_MS, STORED_OWN, 0 };
	ck_assert_int_eq(store_put(store, &offer, NOW_MS), 0);
	session_filter_hash(made.obj.certificate, made.obj.certificate_len, hash);
	ck_assert_uint_eq(count_of(FILTER(.client_certificate = bytes_of(hash, CERTIFICATE_HASH_LEN))), 1);
	ck_assert_uint_eq(count_of(FILTER(.client_certificate = bytes_of(other, CERTIFICATE_HASH_LEN))), 0);
	ck_assert_uint_eq(count_of(FILTER(.family_id = bytes_of(made.obj.facts.family_id, FAMILY_ID_LEN))), 1);
	ck_assert_uint_eq(count_of(FILTER(.family_id = bytes_of(other, FAMILY_ID_LEN))), 0);
	struct session_listing *l = list((struct session_query){
		.limit = 9, .filter = &FILTER(.client_certificate = bytes_of(hash, CERTIFICATE_HASH_LEN)) });
	const struct listed_session *row = rows_of(l, &count, &more);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(row->client_certificate_len, CERTIFICATE_HASH_LEN);
	ck_assert_mem_eq(row->client_certificate, hash, CERTIFICATE_HASH_LEN);
	session_listing_destroy(l);
	close_store();
}
END_TEST

START_TEST(networks_are_compared_bit_by_bit)
{
	static const struct {
		const char *net;
		unsigned count;
	} rows[] = { { "10.0.0.0/8", 2 }, { "10.0.0.0/17", 1 }, { "10.0.128.0/17", 1 }, { "10.0.0.1/32", 1 },
		{ "0.0.0.0/0", 2 }, { "2001:db8::/32", 1 }, { "::/0", 1 }, { "2001:db9::/32", 0 },
		{ "2001:db8::/31", 1 } };

	open_store(WHOLE);
	put("a.example", "10.0.0.1", 0, NULL);
	put("a.example", "10.0.128.2", 0, NULL);
	put("a.example", "2001:db8::1", 0, NULL);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct address_net net;
		ck_assert_int_eq(address_net_parse(rows[i].net, &net), 0);
		Cssl__SessionFilter f =
			FILTER(.client_address = bytes_of(net.bytes, net.len), .client_prefix = net.prefix);
		ck_assert_msg(count_of(f) == rows[i].count, "%s", rows[i].net);
	}
	close_store();
}
END_TEST

/* Every session once, whatever the size of the page. Returns how many. */
static unsigned read_pages(unsigned limit, size_t bytes_max, uint8_t (*seen)[SESSION_ID_LEN])
{
	uint8_t after[SESSION_ID_LEN];
	unsigned total = 0;
	size_t count;
	int more;

	do {
		struct session_listing *l = list((struct session_query){
			.limit = limit, .bytes_max = bytes_max, .after = total ? after : NULL });
		const struct listed_session *rows = rows_of(l, &count, &more);
		ck_assert_uint_le(count, limit);
		for (size_t i = 0; i < count; i++)
			memcpy(seen[total + i], rows[i].facts.session_id, SESSION_ID_LEN);
		total += (unsigned)count;
		if (count)
			memcpy(after, rows[count - 1].facts.session_id, SESSION_ID_LEN);
		ck_assert(more == LISTING_ENDS || count > 0);
		session_listing_destroy(l);
	} while (more == LISTING_GOES_ON);
	return total;
}

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, SESSION_ID_LEN);
}

/* In few buckets, so that chains are long and pages end inside of them. */
START_TEST(pages_of_any_size_have_every_session_once)
{
	enum { COUNT = 300 };
	static uint8_t seen[COUNT + 1][SESSION_ID_LEN];
	static const unsigned limits[] = { 1, 2, 7, 299, 300, 301, 1000 };

	open_store(384 * 1024);
	for (unsigned i = 0; i < COUNT; i++)
		put("x.example", NULL, 0, NULL);
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		ck_assert_uint_eq(read_pages(limits[i], 0, seen), COUNT);
		qsort(seen, COUNT, SESSION_ID_LEN, compare_ids);
		for (unsigned j = 1; j < COUNT; j++)
			ck_assert_int_lt(memcmp(seen[j - 1], seen[j], SESSION_ID_LEN), 0);
	}
	close_store();
}
END_TEST

START_TEST(a_page_ends_where_its_frame_would)
{
	enum { COUNT = 50 };
	static uint8_t seen[COUNT][SESSION_ID_LEN];

	open_store(WHOLE);
	for (unsigned i = 0; i < COUNT; i++)
		put("x.example", NULL, 0, NULL);
	struct session_listing *l = list((struct session_query){ .limit = 1000, .bytes_max = 2000 });
	size_t count;
	int more;
	rows_of(l, &count, &more);
	ck_assert_uint_lt(count, 20);
	ck_assert_uint_gt(count, 5);
	ck_assert_int_eq(more, LISTING_GOES_ON);
	session_listing_destroy(l);
	ck_assert_uint_eq(read_pages(1000, 2000, seen), COUNT);
	ck_assert_uint_eq(read_pages(1000, 1, seen), COUNT); /* at least one goes out */
	close_store();
}
END_TEST

START_TEST(a_page_goes_on_behind_a_session_that_is_gone)
{
	uint8_t absent[SESSION_ID_LEN];
	size_t count, before = 0;
	int more;

	open_store(WHOLE);
	for (unsigned i = 0; i < 20; i++)
		put("x.example", NULL, 0, NULL);
	struct session_listing *l = list((struct session_query){ .limit = 1000 });
	const struct listed_session *rows = rows_of(l, &count, &more);
	randombytes_buf(absent, sizeof(absent));
	for (size_t i = 0; i < count; i++)
		before += session_id_compare(rows[i].facts.session_id, absent) < 0;
	session_listing_destroy(l);
	l = list((struct session_query){ .limit = 1000, .after = absent });
	rows_of(l, &count, &more);
	ck_assert_uint_eq(count, 20 - before);
	session_listing_destroy(l);
	close_store();
}
END_TEST

static int64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* CPU time: what else this machine does is no matter of the listing. */
START_TEST(a_hundred_thousand_sessions_are_listed_counted_and_filtered_in_time)
{
	size_t count;
	int more;

	open_store(WHOLE);
	for (unsigned i = 0; i < MANY; i++)
		put(i % 1000 == 0 ? "rare.example" : "x.example", "10.0.0.1", 0, NULL);
	const int64_t begun = cpu_ms();
	struct session_listing *l = list((struct session_query){ .limit = 1000 });
	rows_of(l, &count, &more);
	ck_assert_uint_eq(count, 1000);
	session_listing_destroy(l);
	const int64_t listed = cpu_ms();
	l = list((struct session_query){ .limit = 1000, .filter = &FILTER(.server_name = (char *)"rare.example") });
	rows_of(l, &count, &more);
	ck_assert_uint_eq(count, MANY / 1000);
	session_listing_destroy(l);
	const int64_t filtered = cpu_ms();
	ck_assert_uint_eq(count_of(FILTER(.server_name = (char *)"x.example")), MANY - MANY / 1000);
	const int64_t counted = cpu_ms();
	printf("%u sessions: a page %d ms, a filter over all %d ms, a count over all %d ms of CPU\n", MANY,
		(int)(listed - begun), (int)(filtered - listed), (int)(counted - filtered));
#ifndef CSSL_SANITIZED
	ck_assert_int_lt(listed - begun, BOUND_MS);
	ck_assert_int_lt(filtered - listed, BOUND_MS);
	ck_assert_int_lt(counted - filtered, BOUND_MS);
#endif
	close_store();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, an_empty_store_has_an_empty_page);
	tcase_add_test(tcase, a_row_has_the_facts_of_its_session);
	tcase_add_test(tcase, resumptions_are_counted);
	tcase_add_test(tcase, filters_let_through_what_they_say);
	tcase_add_test(tcase, families_and_client_certificates_are_told_and_filtered);
	tcase_add_test(tcase, networks_are_compared_bit_by_bit);
	tcase_add_test(tcase, pages_of_any_size_have_every_session_once);
	tcase_add_test(tcase, a_page_ends_where_its_frame_would);
	tcase_add_test(tcase, a_page_goes_on_behind_a_session_that_is_gone);
	tcase_add_test(tcase, a_hundred_thousand_sessions_are_listed_counted_and_filtered_in_time);
}

UNIT(session_listing)
{
	return run_suite("session_listing", add);
}
