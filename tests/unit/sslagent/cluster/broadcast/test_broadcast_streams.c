/* test_broadcast_streams.c: facts of a sender that has a stream for each agent. */
#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "tests/unit/unit.h"

#define AGENTS   4u
#define SELF     1u
#define RING     8u
#define SAID_MAX 64u

/* A message as its receiver would read it; number 0: no object. */
struct said {
	int to;
	enum datagram_of what;
	uint64_t number;
	uint8_t value;
};

static struct said said[SAID_MAX];
static unsigned said_count, datagrams;
static struct broadcast_sender *sender;
static struct sending_keys *keys;
static struct datagram_key *opening;

static void on_emit(void *ctx, enum datagram_of what, int to, const uint8_t *datagram, size_t len)
{
	uint8_t payload[DATAGRAM_PAYLOAD_MAX];
	ptrdiff_t payload_len = datagram_open(opening, datagram, len, payload, sizeof(payload));
	struct wire_reader in = wire_reader(payload, payload_len > 0 ? (size_t)payload_len : 0);

	ck_assert_int_gt(payload_len, 0);
	datagrams++;
	while (wire_left(&in) > 0) {
		const Cssl__BroadcastMessage *m;
		struct scratch scratch;

		ck_assert_int_eq(scratch_open(&scratch, SCRATCH_INSIDE), 0);
		ck_assert_int_eq(broadcast_message_next(&in, &scratch, &m), 0);
		ck_assert_uint_lt(said_count, SAID_MAX);
		said[said_count++] = (struct said){ to, what, m->number,
			m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ ? m->ssl_obj.data[0] : 0 };
		scratch_close(&scratch);
	}
}

static void setup(void)
{
	struct broadcast_sender_conf conf = {
		.boot_id = 1, .ring = RING, .streams = AGENTS, .self = SELF, .emit = on_emit
	};
	struct sending_key key[2];

	said_count = datagrams = 0;
	ck_assert_int_ge(sodium_init(), 0);
	conf.keys = keys = sending_keys_create();
	ck_assert_ptr_nonnull(keys);
	ck_assert_uint_eq(sending_keys_list(keys, key), 1);
	opening = datagram_key_create(key[0].id, key[0].aead, key[0].secret);
	ck_assert_ptr_nonnull(opening);
	sender = broadcast_sender_create(&conf);
	ck_assert_ptr_nonnull(sender);
}

static void teardown(void)
{
	broadcast_sender_destroy(sender);
	datagram_key_destroy(opening);
	sending_keys_destroy(keys);
}

static void number(int to, uint8_t value)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;

	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ;
	m.ssl_obj = (ProtobufCBinaryData){ 1, &value };
	ck_assert_int_eq(broadcast_sender_number(sender, to, &m), 0);
}

static unsigned said_to(int to, uint64_t number, uint8_t value)
{
	unsigned count = 0;

	for (unsigned i = 0; i < said_count; i++)
		count += said[i].to == to && said[i].number == number && said[i].value == value;
	return count;
}

START_TEST(each_agent_has_numbers_of_its_own)
{
	number(0, 10);
	number(2, 11);
	number(0, 12);
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(said_count, 3);
	ck_assert_uint_eq(said_to(0, 1, 10), 1);
	ck_assert_uint_eq(said_to(2, 1, 11), 1);
	ck_assert_uint_eq(said_to(0, 2, 12), 1);
	ck_assert_uint_eq(broadcast_sender_mark(sender, 0, 0).highest, 2);
	ck_assert_uint_eq(broadcast_sender_mark(sender, 2, 0).highest, 1);
	ck_assert_uint_eq(broadcast_sender_mark(sender, 3, 0).highest, 0);
}
END_TEST

START_TEST(what_is_for_all_goes_into_every_stream_but_the_own)
{
	number(3, 20);
	number(BROADCAST_ALL, 21);
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(said_count, AGENTS);
	ck_assert_uint_eq(said_to(0, 1, 21), 1);
	ck_assert_uint_eq(said_to(2, 1, 21), 1);
	ck_assert_uint_eq(said_to(3, 2, 21), 1);
	ck_assert_uint_eq(broadcast_sender_mark(sender, SELF, 0).highest, 0);
}
END_TEST

START_TEST(a_turn_s_objects_for_one_agent_share_a_datagram)
{
	for (uint8_t i = 0; i < 5; i++) {
		number(0, i);
		number(2, i);
	}
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(datagrams, 2);
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(datagrams, 2); /* nothing is said twice */
}
END_TEST

START_TEST(objects_and_words_are_told_apart)
{
	number(0, 30);
	broadcast_sender_flush(sender);
	broadcast_sender_repeat(sender, 0, 1, 1, 0);
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(said_count, 2);
	ck_assert_int_eq(said[0].what, DATAGRAM_OF_OBJECTS);
	ck_assert_int_eq(said[1].what, DATAGRAM_OF_WORDS);
}
END_TEST

START_TEST(an_agent_gets_its_own_numbers_again)
{
	number(0, 40);
	number(2, 41);
	broadcast_sender_flush(sender);
	said_count = 0;
	broadcast_sender_repeat(sender, 2, 1, 1, 0);
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(said_count, 1);
	ck_assert_uint_eq(said_to(2, 1, 41), 1);
}
END_TEST

START_TEST(what_one_stream_forgot_another_still_has)
{
	number(2, 50);
	for (uint8_t i = 0; i <= RING; i++)
		number(0, i);
	broadcast_sender_flush(sender);
	said_count = 0;
	broadcast_sender_repeat(sender, 0, 1, 2, 0);
	broadcast_sender_repeat(sender, 2, 1, 1, 0);
	broadcast_sender_flush(sender);
	ck_assert_uint_eq(said_to(0, 0, 0), 1); /* forgotten */
	ck_assert_uint_eq(said_to(0, 2, 1), 1);
	ck_assert_uint_eq(said_to(2, 1, 50), 1);
}
END_TEST

UNIT(broadcast_streams)
{
	Suite *suite = suite_create("broadcast_streams");
	TCase *facts = tcase_create("broadcast_streams");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(facts, setup, teardown);
	tcase_add_test(facts, each_agent_has_numbers_of_its_own);
	tcase_add_test(facts, what_is_for_all_goes_into_every_stream_but_the_own);
	tcase_add_test(facts, a_turn_s_objects_for_one_agent_share_a_datagram);
	tcase_add_test(facts, objects_and_words_are_told_apart);
	tcase_add_test(facts, an_agent_gets_its_own_numbers_again);
	tcase_add_test(facts, what_one_stream_forgot_another_still_has);
	suite_add_tcase(suite, facts);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
