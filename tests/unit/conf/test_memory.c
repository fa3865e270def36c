/* test_memory.c: facts of limits that follow from memory, and of the bound that they come to. */
#include <stdlib.h>
#include <string.h>

#include "conf/memory.h"
#include "tests/unit/conf/cluster_text.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct conf *with(const char *limits, uint64_t memory)
{
	char text[EDITED_MAX], error[2048];
	struct conf *c = NULL;

	snprintf(text, sizeof text, "%s%s", cluster_text, limits);
	ck_assert_msg(conf_parse(text, strlen(text), "c.yaml", &c, error, sizeof error) == 0, "%s", error);
	memory_derive(c, memory);
	return c;
}

static uint64_t sum_of_ragent(const struct conf *c)
{
	struct memory_part parts[MEMORY_PARTS_MAX];

	return memory_sum(parts, memory_of_ragent(c, &c->ragents[0], parts));
}

static uint64_t sum_of_agent(const struct conf *c)
{
	struct memory_part parts[MEMORY_PARTS_MAX];

	return memory_sum(parts, memory_of_agent(c, &c->agents[0], parts));
}

START_TEST(a_silent_file_has_limits_by_the_machine)
{
	struct conf *c = with("", 8 * GIB);

	ck_assert_uint_eq(c->limits.connections, 131072);
	ck_assert_uint_eq(c->limits.kept_len, 512 * MIB);
	ck_assert_uint_eq(c->limits.handshakes, 1024);
	ck_assert_uint_eq(c->limits.handshakes_per_source, 512);
	ck_assert_uint_eq(c->ragents[0].limits.connections, 131072);
	ck_assert_uint_eq(c->store.bytes, 256 * MIB);
	conf_destroy(c);
}
END_TEST

START_TEST(on_a_small_machine_they_are_small)
{
	struct conf *c = with("", 512 * MIB);

	ck_assert_uint_eq(c->limits.connections, 8192);
	ck_assert_uint_eq(c->limits.kept_len, 32 * MIB);
	ck_assert_uint_eq(c->limits.handshakes, 170);
	ck_assert_uint_eq(c->ragents[0].limits.handshakes, 85); /* two workers */
	ck_assert_uint_eq(c->store.bytes, 64 * MIB);
	conf_destroy(c);
}
END_TEST

START_TEST(what_the_file_says_stands)
{
	struct conf *c = with("limits: { connections: 100, handshakes: 7, handshakes_per_source: 3, kept: 20MiB }\n"
			      "store: { size: 300MiB }\n",
		512 * MIB);

	ck_assert_uint_eq(c->limits.connections, 100);
	ck_assert_uint_eq(c->ragents[0].limits.connections, 100);
	ck_assert_uint_eq(c->limits.handshakes, 7);
	ck_assert_uint_eq(c->limits.handshakes_per_source, 3);
	ck_assert_uint_eq(c->limits.kept_len, 20 * MIB);
	ck_assert_uint_eq(c->store.bytes, 300 * MIB);
	conf_destroy(c);
}
END_TEST

START_TEST(the_sum_is_bounded_and_smaller_than_the_machine)
{
	static const uint64_t machines[] = { 2 * GIB, 8 * GIB, 64 * GIB, 512 * GIB };

	for (unsigned i = 0; i < sizeof machines / sizeof machines[0]; i++) {
		struct conf *c = with("", machines[i]);
		ck_assert_uint_lt(sum_of_ragent(c), machines[i] / 2);
		ck_assert_uint_lt(sum_of_agent(c), machines[i] / 2);
		conf_destroy(c);
	}
}
END_TEST

START_TEST(off_has_no_bound_and_says_so)
{
	static const struct {
		const char *limits;
		int ragent, agent; /* bounded? */
	} cases[] = {
		{ "limits: { connections: off }\n", 0, 0 },
		{ "limits: { kept: off }\n", 0, 0 },
		{ "limits: { handshakes: off }\n", 1, 0 },
	};
	char text[8192] = "";

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct conf *c = with(cases[i].limits, 8 * GIB);
		ck_assert_int_eq(sum_of_ragent(c) != UINT64_MAX, cases[i].ragent);
		ck_assert_int_eq(sum_of_agent(c) != UINT64_MAX, cases[i].agent);
		FILE *out = fmemopen(text, sizeof text, "w");
		memory_print(c, out);
		fclose(out);
		ck_assert_ptr_nonnull(strstr(text, "at most no bound"));
		conf_destroy(c);
	}
}
END_TEST

START_TEST(client_certificates_make_connections_dearer)
{
	struct conf *c = with("", 8 * GIB);
	const uint64_t without = sum_of_ragent(c), table_without = memory_of_table(c, &c->ragents[0]);

	c->listeners[0].tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	/* the connections, and those that two processes restore after a death */
	ck_assert_uint_eq(sum_of_ragent(c) - without, 3 * (uint64_t)c->limits.connections * MEMORY_OF_CERTIFICATES);
	/* in slabs, of which some is unused */
	ck_assert_uint_ge(memory_of_table(c, &c->ragents[0]) - table_without,
		3 * (uint64_t)c->limits.connections * (MEMORY_OF_CERTIFICATES * 8 / 7));
	conf_destroy(c);
}
END_TEST

START_TEST(connections_and_kept_bytes_are_there_again_while_they_are_restored)
{
	struct conf *c = with("limits: { connections: 1024, kept: 64MiB }\n", 8 * GIB);
	const uint64_t before = sum_of_ragent(c);

	c->ragents[0].limits.connections += 1024;
	ck_assert_uint_eq(sum_of_ragent(c) - before, 3 * 1024 * (uint64_t)MEMORY_OF_RAGENT_CONNECTION);
	c->ragents[0].limits.connections -= 1024;
	c->ragents[0].limits.kept_len += 64 * MIB;
	/* a quarter of them may be parts of records, on both workers */
	ck_assert_uint_eq(sum_of_ragent(c) - before, 3 * 64 * MIB + 16 * MIB);
	conf_destroy(c);
}
END_TEST

/* Three processes, 4 KiB and 8 KiB of each connection, what is kept, and some of each slab unused. */
START_TEST(the_table_has_room_for_the_connections_and_slabs_of_three_processes)
{
	struct conf *c = with("limits: { connections: 1024 }\n", 8 * GIB);
	struct conf_ragent *r = &c->ragents[0];
	const uint64_t of_two_workers = memory_of_table(c, r);

	ck_assert_uint_ge(of_two_workers, 3 * 1024 * 12 * 1024);
	r->workers = 4;
	const uint64_t of_four = memory_of_table(c, r);
	ck_assert_uint_eq(of_four - of_two_workers, 3 * 2 * 88 * 5 * 65536);
	r->limits.connections = 2048;
	ck_assert_uint_ge(memory_of_table(c, r) - of_four, 3 * 1024 * 12 * 1024);
	const uint64_t before = memory_of_table(c, r);
	r->limits.kept_len += 64 * MIB;
	ck_assert_uint_ge(memory_of_table(c, r) - before, 3 * 64 * MIB);
	r->limits.connections = 0;
	ck_assert_uint_eq(memory_table_connections(r), 1u << 20);
	conf_destroy(c);
}
END_TEST

START_TEST(each_part_is_printed_and_the_sum)
{
	struct conf *c = with("limits: { connections: 1024, kept: 64MiB }\n", 8 * GIB);
	char text[8192] = "";
	FILE *out = fmemopen(text, sizeof text, "w");

	memory_print(c, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "follow from 8GiB of memory\n"));
	ck_assert_ptr_nonnull(strstr(text, "memory of ragent r1: at most "));
	ck_assert_ptr_nonnull(strstr(text, "memory of each agent from a1 to a2: at most "));
	ck_assert_ptr_nonnull(strstr(text, "  connections                  4MiB   1024 of 4KiB\n"));
	ck_assert_ptr_nonnull(strstr(text, "  kept bytes                  64MiB\n"));
	ck_assert_ptr_nonnull(strstr(text, "  restore after a death      136MiB   2 of 68MiB\n"));
	ck_assert_ptr_nonnull(strstr(text, "the next process can go on with 1024 connections: 426MiB of addresses,"));
	ck_assert_ptr_nonnull(strstr(text, "  half-open handshakes        96MiB   1024 of 96KiB\n"));
	conf_destroy(c);
}
END_TEST

UNIT(memory)
{
	TCase *facts = tcase_create("memory");
	tcase_add_test(facts, a_silent_file_has_limits_by_the_machine);
	tcase_add_test(facts, on_a_small_machine_they_are_small);
	tcase_add_test(facts, what_the_file_says_stands);
	tcase_add_test(facts, the_sum_is_bounded_and_smaller_than_the_machine);
	tcase_add_test(facts, off_has_no_bound_and_says_so);
	tcase_add_test(facts, client_certificates_make_connections_dearer);
	tcase_add_test(facts, connections_and_kept_bytes_are_there_again_while_they_are_restored);
	tcase_add_test(facts, the_table_has_room_for_the_connections_and_slabs_of_three_processes);
	tcase_add_test(facts, each_part_is_printed_and_the_sum);
	return facts_run(facts);
}
