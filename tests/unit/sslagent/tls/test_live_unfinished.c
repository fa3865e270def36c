/* test_live_unfinished.c: a KeyUpdate of the client in several records (RFC 8446 5.1), of which nothing is consumed
 * before its end has come. */
#include <string.h>

#include "proto/error.h"
#include "tests/unit/sslagent/tls/live_owners.h"
#include "tests/unit/unit.h"

#define BYTES(...) .content = (const uint8_t[]){ __VA_ARGS__ }, .len = sizeof((const uint8_t[]){ __VA_ARGS__ })

static int send_bytes(const void *bytes, size_t len, uint8_t type, struct live_record *got)
{
	return client_sends(pair.agent, &(struct forged_record){ .type = type, .content = bytes, .len = len }, got);
}

/* And nothing more is opened. */
static void is_owed(enum tls_alert alert)
{
	struct live_record got;

	ck_assert_int_eq(live_alert_owed(pair.agent), alert);
	ck_assert_int_eq(send_bytes("x", 1, TLS_APPLICATION_DATA, &got), CSSL_E_STATE);
}

static const uint8_t key_update[KEY_UPDATE_LEN] = { 24, 0, 0, 1, 1 };

/* In @pieces records; the last one has what is left. */
static void send_key_update(int pieces, struct live_record *got)
{
	const size_t at = (size_t)pieces - 1;

	for (size_t i = 0; i < at; i++) {
		ck_assert_int_eq(send_bytes(key_update + i, 1, TLS_HANDSHAKE, got), 0);
		ck_assert_int_eq(got->content, LIVE_IGNORED);
		ck_assert_uint_eq(live_unfinished(pair.agent), i + 1);
	}
	ck_assert_int_eq(send_bytes(key_update + at, KEY_UPDATE_LEN - at, TLS_HANDSHAKE, got), 0);
}

/* RFC 8446 5.1. */
START_TEST(a_key_update_in_pieces_is_one)
{
	struct live_record got;

	start(TLS13_AES_128);
	ck_assert_int_eq(send_bytes("data", 4, TLS_APPLICATION_DATA, &got), 0);
	send_key_update(_i, &got);
	ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	ck_assert_uint_eq(live_unfinished(pair.agent), 0);
	ck_assert_uint_eq(live_position(pair.agent).read_generation, 1);
	ck_assert_uint_eq(live_position(pair.agent).read_sequence, 0);
	ck_assert_int_eq(live_due(pair.agent), LIVE_KEY_UPDATE_DUE);
	ck_assert_int_eq(record_forge_step(pair.client), 0);
	ck_assert_int_eq(send_bytes("data", 4, TLS_APPLICATION_DATA, &got), 0);
	ck_assert_int_eq(got.content, LIVE_DATA);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_part_of_a_message_is_not_behind_the_position)
{
	struct live_record got;
	struct live_part part;

	start(TLS13_AES_128);
	ck_assert_int_eq(send_bytes("data", 4, TLS_APPLICATION_DATA, &got), 0);
	ck_assert_int_eq(send_bytes(key_update, 1, TLS_HANDSHAKE, &got), 0);
	ck_assert_int_eq(send_bytes(key_update + 1, 2, TLS_HANDSHAKE, &got), 0);
	ck_assert_uint_eq(live_unfinished(pair.agent), 2);
	ck_assert_uint_eq(live_position(pair.agent).read_sequence, 1);
	live_freeze(pair.agent, &part);
	ck_assert_uint_eq(part.read_sequence, 1);
	live_pair_stop(&pair);
}
END_TEST

/* Behind two bytes of a KeyUpdate. */
static const struct {
	struct forged_record record;
	enum tls_alert alert;
} amid[] = {
	{ { .type = TLS_APPLICATION_DATA, BYTES(1) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ { .type = TLS_APPLICATION_DATA }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ { .type = TLS_HANDSHAKE }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ { .type = TLS_HANDSHAKE, BYTES(0, 2) }, TLS_ALERT_DECODE_ERROR },
	{ { .type = TLS_HANDSHAKE, BYTES(0, 1, 2) }, TLS_ALERT_ILLEGAL_PARAMETER },
	{ { .type = TLS_HANDSHAKE, BYTES(0, 1, 0, 24) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 1, 0) }, TLS_ALERT_DECODE_ERROR },
	{ { .type = TLS_ALERT, BYTES(1, 90) }, TLS_ALERT_UNEXPECTED_MESSAGE }, /* user_canceled */
	{ { .type = TLS_ALERT, BYTES(1, TLS_ALERT_CLOSE_NOTIFY) }, TLS_ALERT_UNEXPECTED_MESSAGE },
};

START_TEST(what_does_not_belong_to_it_ends_the_connection)
{
	struct live_record got;

	start(TLS13_AES_128);
	ck_assert_int_eq(send_bytes(key_update, 2, TLS_HANDSHAKE, &got), 0);
	ck_assert_int_lt(client_sends(pair.agent, &amid[_i].record, &got), 0);
	is_owed(amid[_i].alert);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_fatal_alert_amid_it_is_taken)
{
	static const uint8_t alert[] = { 2, TLS_ALERT_INTERNAL_ERROR };
	struct live_record got;

	start(TLS13_AES_128);
	ck_assert_int_eq(send_bytes(key_update, 2, TLS_HANDSHAKE, &got), 0);
	ck_assert_int_eq(send_bytes(alert, 2, TLS_ALERT, &got), 0);
	ck_assert_int_eq(got.content, LIVE_ALERT);
	live_pair_stop(&pair);
}
END_TEST

static int send_padded(size_t at, size_t padding, struct live_record *got)
{
	const struct forged_record r = {
		.type = TLS_HANDSHAKE, .content = key_update + at, .len = 1, .padding = padding
	};

	return client_sends(pair.agent, &r, got);
}

/* RAgent has room for one more record of maximal length in the smallest window, or the end could never come. */
START_TEST(its_padding_does_not_fill_a_window)
{
	const size_t around = TLS_RECORD_HEADER_LEN + 1 + 1 + RECORD_TAG_LEN; /* its byte, and its type */
	const size_t padding = BEGUN_BYTES_MAX / 2 - around;
	struct live_record got;

	start(TLS13_AES_128);
	ck_assert_int_eq(send_padded(0, padding, &got), 0);
	ck_assert_int_eq(send_padded(1, padding, &got), 0);
	ck_assert_int_eq(send_bytes(key_update + 2, 3, TLS_HANDSHAKE, &got), 0);
	ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	ck_assert_int_eq(record_forge_step(pair.client), 0);
	ck_assert_int_eq(send_padded(0, padding, &got), 0);
	ck_assert_int_eq(send_padded(1, padding, &got), 0);
	ck_assert_int_lt(send_padded(2, 0, &got), 0);
	is_owed(TLS_ALERT_UNEXPECTED_MESSAGE);
	live_pair_stop(&pair);
}
END_TEST

UNIT(live_unfinished)
{
	Suite *s = suite_create("live_unfinished");
	TCase *t = tcase_create("half a message");
	SRunner *r = srunner_create(s);

	tcase_add_loop_test(t, a_key_update_in_pieces_is_one, 1, KEY_UPDATE_LEN + 1);
	tcase_add_test(t, a_part_of_a_message_is_not_behind_the_position);
	tcase_add_loop_test(t, what_does_not_belong_to_it_ends_the_connection, 0, sizeof(amid) / sizeof(amid[0]));
	tcase_add_test(t, a_fatal_alert_amid_it_is_taken);
	tcase_add_test(t, its_padding_does_not_fill_a_window);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
