/* test_handover_offer.c: facts of the offer of a running process, and of the files with which a new one cannot
 * accept it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/error.h"
#include "proto/fields.h"
#include "ragent/handover/handover_offer.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

static struct handover_message m;
static struct handover_map map;
static struct ragent_shared theirs;
static char error[256];

/* The dispatcher's process offers; the reader is a second set of shared parts with the same file. */
static void begin(void)
{
	dispatcher_start(NULL);
	ck_assert_int_eq(handover_offer_pack(&m, HANDOVER_FORMAT, &d.shared, d.shared.self->workers), 0);
	theirs = d.shared;
	theirs.agents = agents_create(d.conf);
	theirs.boot_id = 77;
}

static void finish(void)
{
	agents_destroy(theirs.agents);
	handover_map_clear(&map);
	handover_message_clear(&m);
}

static int read_offer(void)
{
	handover_map_clear(&map);
	return handover_offer_read(&m, &theirs, &map, error, sizeof error);
}

START_TEST(the_same_file_maps_everything_to_itself)
{
	begin();
	ck_assert_msg(read_offer() == 0, "%s", error);
	ck_assert_uint_eq(map.agent_count, AGENTS);
	for (int i = 0; i < AGENTS; i++)
		ck_assert_int_eq(map.agents[i], i);
	ck_assert_uint_eq(map.front_count, d.shared.front_count);
	for (unsigned i = 0; i < map.front_count; i++)
		ck_assert_ptr_eq(map.fronts[i], &theirs.fronts[i]);
	ck_assert_uint_eq(theirs.boot_id, d.shared.boot_id);
	finish();
}
END_TEST

START_TEST(another_number_of_workers_is_refused)
{
	begin();
	struct conf_ragent self = *d.shared.self;
	self.workers++;
	theirs.self = &self;
	ck_assert_int_eq(read_offer(), CSSL_E_MISMATCH);
	ck_assert_ptr_nonnull(strstr(error, "must be as many"));
	ck_assert_uint_eq(theirs.boot_id, 77);
	finish();
}
END_TEST

START_TEST(another_name_is_refused)
{
	begin();
	struct conf_ragent self = *d.shared.self;
	self.name = (char *)"another";
	theirs.self = &self;
	ck_assert_int_eq(read_offer(), CSSL_E_MISMATCH);
	finish();
}
END_TEST

START_TEST(a_listener_that_is_gone_is_refused)
{
	begin();
	theirs.front_count--;
	ck_assert_int_eq(read_offer(), CSSL_E_MISMATCH);
	ck_assert_ptr_nonnull(strstr(error, d.shared.fronts[theirs.front_count].conf->name));
	finish();
}
END_TEST

START_TEST(an_agent_that_is_up_must_not_be_gone_and_one_that_is_down_may)
{
	begin();
	struct conf conf = *d.conf;
	conf.agent_count--;
	agents_destroy(theirs.agents);
	theirs.agents = agents_create(&conf);
	ck_assert_int_eq(read_offer(), CSSL_E_MISMATCH);
	ck_assert_ptr_nonnull(strstr(error, "drain"));
	fake_agent_die(d.agents[AGENTS - 1]);
	wait_until(counter_get(&d.rw->home.counters.links_up) == AGENTS - 1);
	ck_assert_int_eq(handover_offer_pack(&m, HANDOVER_FORMAT, &d.shared, d.shared.self->workers), 0);
	ck_assert_msg(read_offer() == 0, "%s", error);
	ck_assert_int_eq(map.agents[AGENTS - 1], NO_AGENT);
	finish();
}
END_TEST

START_TEST(a_format_of_a_later_release_is_refused)
{
	begin();
	ck_assert_int_eq(handover_offer_pack(&m, HANDOVER_FORMAT + 1, &d.shared, d.shared.self->workers), 0);
	ck_assert_int_eq(read_offer(), CSSL_E_VERSION);
	finish();
}
END_TEST

START_TEST(an_offer_cut_within_a_field_is_refused)
{
	begin();
	size_t len = m.len;
	for (m.len = 1; m.len < FIELD_HEADER_LEN + 8; m.len++)
		ck_assert_int_eq(read_offer(), CSSL_E_TRUNCATED);
	m.len = len - 1;
	ck_assert_int_eq(read_offer(), CSSL_E_TRUNCATED);
	m.len = len;
	finish();
}
END_TEST

/* The answer to a new process that reads these. */
static int hello_of(unsigned least, unsigned most)
{
	uint8_t hello[4];

	wire_store_u16(hello, (uint16_t)least);
	wire_store_u16(hello + 2, (uint16_t)most);
	handover_message_begin(&m, HANDOVER_HELLO);
	ck_assert_int_eq(handover_message_put(&m, hello, sizeof hello), 0);
	return handover_hello_read(&m);
}

START_TEST(both_agree_on_the_latest_format_that_both_know_or_part)
{
	dispatcher_start(NULL);
	ck_assert_int_eq(handover_hello_pack(&m), 0);
	ck_assert_int_eq(handover_hello_read(&m), HANDOVER_FORMAT);
	ck_assert_int_eq(hello_of(1, 1), 1);
	ck_assert_int_eq(hello_of(1, HANDOVER_FORMAT + 1), HANDOVER_FORMAT);
	ck_assert_int_eq(hello_of(HANDOVER_FORMAT, HANDOVER_FORMAT), HANDOVER_FORMAT);
	ck_assert_int_eq(hello_of(HANDOVER_FORMAT + 1, HANDOVER_FORMAT + 2), CSSL_E_VERSION);
	ck_assert_int_eq(hello_of(2, 1), CSSL_E_VERSION);
	handover_message_clear(&m);
}
END_TEST

START_TEST(what_an_operator_blocked_stays_blocked)
{
	static struct blocked ours, other;
	const struct client_address client = { .bytes = { 192, 0, 2, 7 }, .len = 4 };
	const uint64_t now_ms = notes_now_ns() / 1000000;
	struct address_net net;

	begin();
	theirs.blocked = &other;
	d.shared.blocked = &ours;
	ck_assert_int_eq(address_net_parse("192.0.2.0/24", &net), 0);
	ck_assert_int_eq(blocked_set(&ours, &net, 60000, now_ms), 0);
	ck_assert_int_eq(handover_offer_pack(&m, HANDOVER_FORMAT, &d.shared, d.shared.self->workers), 0);
	ck_assert_msg(read_offer() == 0, "%s", error);
	ck_assert(blocked_has(&other, &client, now_ms));
	ck_assert(!blocked_has(&other, &client, now_ms + 70000));
	finish();
}
END_TEST

START_TEST(the_release_after_this_one_reads_both_formats)
{
	begin();
	handover_act_as_release(HANDOVER_FORMAT + 1);
	ck_assert_msg(read_offer() == 0, "%s", error);
	ck_assert_int_eq(hello_of(HANDOVER_FORMAT, HANDOVER_FORMAT), HANDOVER_FORMAT);
	ck_assert_int_eq(hello_of(HANDOVER_FORMAT, HANDOVER_FORMAT + 1), HANDOVER_FORMAT + 1);
	ck_assert_int_eq(handover_offer_pack(&m, HANDOVER_FORMAT + 1, &d.shared, d.shared.self->workers), 0);
	ck_assert_msg(read_offer() == 0, "%s", error);
	handover_act_as_release(HANDOVER_FORMAT);
	ck_assert_int_eq(read_offer(), CSSL_E_VERSION);
	finish();
}
END_TEST

START_TEST(sockets_are_found_by_what_they_are_for)
{
	struct passed_sockets passed = { 0 };
	int fds[2];

	dispatcher_start(NULL);
	ck_assert_int_eq(pipe(fds), 0);
	handover_message_begin(&m, HANDOVER_SOCKETS);
	ck_assert_int_eq(handover_socket_pack(&m, "listener sf 127.0.0.1:1", 1, fds[0]), 0);
	ck_assert_int_eq(handover_socket_pack(&m, "control /x", 0, fds[1]), 0);
	m.fds_are = HANDOVER_FDS_OWNED;
	ck_assert_int_eq(handover_sockets_read(&m, &passed), 0);
	ck_assert_int_eq(passed_sockets_take(&passed, "listener sf 127.0.0.1:1", 0), -1);
	ck_assert_int_eq(passed_sockets_take(&passed, "listener sf 127.0.0.1:1", 1), fds[0]);
	ck_assert_int_eq(passed_sockets_take(&passed, "listener sf 127.0.0.1:1", 1), -1);
	ck_assert_str_eq(passed_sockets_left(&passed), "control /x");
	passed_sockets_clear(&passed);
	ck_assert_int_eq(close(fds[1]), -1); /* closed with the rest */
	close(fds[0]);
	handover_message_clear(&m);
}
END_TEST

UNIT(handover_offer)
{
	const TTest *const facts[] = {
		the_same_file_maps_everything_to_itself,
		another_number_of_workers_is_refused,
		another_name_is_refused,
		a_listener_that_is_gone_is_refused,
		an_agent_that_is_up_must_not_be_gone_and_one_that_is_down_may,
		a_format_of_a_later_release_is_refused,
		an_offer_cut_within_a_field_is_refused,
		both_agree_on_the_latest_format_that_both_know_or_part,
		what_an_operator_blocked_stays_blocked,
		the_release_after_this_one_reads_both_formats,
		sockets_are_found_by_what_they_are_for,
	};

	return dispatcher_suite_run("handover_offer", facts, FACTS_LEN(facts));
}
