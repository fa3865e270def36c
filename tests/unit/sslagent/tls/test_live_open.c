/* test_live_open.c: what a client may not do once the handshake is over, and the alert each of it gets (RFC 8446 5, 6;
 * RFC 5246 6.2, 7.2). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/live_internal.h"
#include "tests/lib/live_pair.h"
#include "tests/unit/unit.h"

static struct live_pair pair;
static uint8_t record[FORGED_RECORD_MAX];
static uint8_t zeros[20000];

static const struct cipher_suite *suite_at(int i)
{
	unsigned count;

	return &cipher_suites(&count)[i];
}

static int is_tls13(void)
{
	return pair.suite->protocol_version == TLS13_VERSION_WIRE;
}

static void start(uint16_t suite)
{
	ck_assert_int_eq(live_pair_start(&pair, suite, 0), 0);
}

static int send_record(const struct forged_record *r, uint64_t now_ms, struct live_record *got)
{
	ptrdiff_t n = record_forge_seal(pair.client, r, record, sizeof(record));

	ck_assert_int_gt(n, 0);
	return live_open_bytes(pair.agent, record, (size_t)n, now_ms, got);
}

static int send_bytes(const void *bytes, size_t len, uint8_t type, struct live_record *got)
{
	return send_record(&(struct forged_record){ .type = type, .content = bytes, .len = len }, 0, got);
}

/* After a violation nothing is opened any more, and the client gets that alert. */
static void check_ended_with(int alert)
{
	struct live_record got;

	ck_assert_int_eq(live_alert_owed(pair.agent), alert);
	ck_assert_int_eq(send_bytes("x", 1, TLS_APPLICATION_DATA, &got), CSSL_E_STATE);
	ptrdiff_t n = live_seal_alert(pair.agent, TLS_ALERT_FATAL, live_alert_owed(pair.agent), record);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_ALERT);
	ck_assert_int_eq(got.alert, alert);
}

enum { TLS12 = 1, TLS13 = 2, BOTH = 3 };
#define BYTES(...) .content = (const uint8_t[]){ __VA_ARGS__ }, .len = sizeof((const uint8_t[]){ __VA_ARGS__ })
#define ZEROS(n)   .content = zeros, .len = (n)

static const struct violation {
	const char *what;
	int versions;
	struct forged_record record;
	int alert;
} violations[] = {
	{ "a wrong tag", BOTH, { .type = TLS_APPLICATION_DATA, BYTES(1), .tag = FORGED_TAG_WRONG },
		TLS_ALERT_BAD_RECORD_MAC },
	{ "plaintext too long", BOTH, { .type = TLS_APPLICATION_DATA, ZEROS(16385) }, TLS_ALERT_RECORD_OVERFLOW },
	{ "ciphertext too long", TLS13, { .type = TLS_APPLICATION_DATA, ZEROS(16640) }, TLS_ALERT_RECORD_OVERFLOW },
	{ "padded beyond 2^14+1", TLS13, { .type = TLS_APPLICATION_DATA, ZEROS(16000), .padding = 400 },
		TLS_ALERT_RECORD_OVERFLOW },
	{ "no inner type", TLS13, { .type = 0, ZEROS(0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "nothing but padding", TLS13, { .type = 0, ZEROS(500) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "inner type unknown", TLS13, { .type = 99, BYTES(1) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "inner type heartbeat", TLS13, { .type = 24, BYTES(1, 0, 1, 1) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "protected change_cipher_spec", BOTH, { .type = TLS_CHANGE_CIPHER_SPEC, BYTES(1) },
		TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "outer type handshake", TLS13, { .type = TLS_APPLICATION_DATA, .outer_type = TLS_HANDSHAKE, BYTES(1) },
		TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "outer type alert", TLS13, { .type = TLS_ALERT, .outer_type = TLS_ALERT, BYTES(2, 0) },
		TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "another version", TLS12, { .type = TLS_APPLICATION_DATA, .version = 0x0302, BYTES(1) },
		TLS_ALERT_PROTOCOL_VERSION },
	{ "an empty alert", BOTH, { .type = TLS_ALERT, ZEROS(0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "an empty handshake record", BOTH, { .type = TLS_HANDSHAKE, ZEROS(0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "half an alert", BOTH, { .type = TLS_ALERT, BYTES(1) }, TLS_ALERT_DECODE_ERROR },
	{ "two alerts in one record", BOTH, { .type = TLS_ALERT, BYTES(1, 90, 1, 0) }, TLS_ALERT_DECODE_ERROR },
	{ "an alert level of 3", TLS12, { .type = TLS_ALERT, BYTES(3, 0) }, TLS_ALERT_ILLEGAL_PARAMETER },
	{ "KeyUpdate of 2", TLS13, { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 1, 2) }, TLS_ALERT_ILLEGAL_PARAMETER },
	{ "KeyUpdate without a value", TLS13, { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 0) }, TLS_ALERT_DECODE_ERROR },
	{ "KeyUpdate of two bytes", TLS13, { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 2, 0, 0) },
		TLS_ALERT_DECODE_ERROR },
	{ "one byte of a Certificate", TLS13, { .type = TLS_HANDSHAKE, BYTES(11) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "two KeyUpdates in one record", TLS13, { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 1, 0, 24, 0, 0, 1, 0) },
		TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "a byte behind KeyUpdate", TLS13, { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 1, 0, 0) },
		TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "ClientHello", TLS13, { .type = TLS_HANDSHAKE, BYTES(1, 0, 0, 1, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "NewSessionTicket", BOTH, { .type = TLS_HANDSHAKE, BYTES(4, 0, 0, 1, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "Certificate", BOTH, { .type = TLS_HANDSHAKE, BYTES(11, 0, 0, 1, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "Finished", BOTH, { .type = TLS_HANDSHAKE, BYTES(20, 0, 0, 1, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "KeyUpdate", TLS12, { .type = TLS_HANDSHAKE, BYTES(24, 0, 0, 1, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "HelloRequest", TLS12, { .type = TLS_HANDSHAKE, BYTES(0, 0, 0, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "half a handshake header", TLS12, { .type = TLS_HANDSHAKE, BYTES(1, 0) }, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "a ClientHello without end", TLS12, { .type = TLS_HANDSHAKE, BYTES(1, 1, 0, 0, 3, 3) },
		TLS_ALERT_DECODE_ERROR },
	{ "something behind a ClientHello", TLS12, { .type = TLS_HANDSHAKE, BYTES(1, 0, 0, 2, 3, 3, 0, 0, 0, 0) },
		TLS_ALERT_UNEXPECTED_MESSAGE },
};
#define VIOLATIONS ((int)(sizeof(violations) / sizeof(violations[0])))

/* On the first record, and behind others. */
static void violate(const struct violation *v, const struct cipher_suite *suite, int behind)
{
	struct live_record got;

	start(suite->id);
	if (v->versions & (is_tls13() ? TLS13 : TLS12)) {
		for (int i = 0; i < behind; i++)
			ck_assert_int_eq(send_bytes("data", 4, TLS_APPLICATION_DATA, &got), 0);
		ck_assert_msg(send_record(&v->record, 0, &got) < 0, "%s was accepted", v->what);
		ck_assert_msg((int)live_alert_owed(pair.agent) == v->alert, "%s: alert %d, not %d", v->what,
			live_alert_owed(pair.agent), v->alert);
		ck_assert_int_eq(live_end_reason(pair.agent), END_RECORD_VIOLATION);
		check_ended_with(v->alert);
	}
	live_pair_stop(&pair);
}

START_TEST(each_violation_has_its_alert)
{
	unsigned count;
	const struct cipher_suite *all = cipher_suites(&count);

	for (unsigned s = 0; s < count; s++)
		for (int behind = 0; behind < 4; behind += 3)
			violate(&violations[_i], &all[s], behind);
}
END_TEST

/* Records in the clear. */
static const struct {
	const char *what;
	uint8_t bytes[8];
	size_t len;
	int alert12, alert13;
} plaintexts[] = {
	{ "change_cipher_spec", { 20, 3, 3, 0, 1, 1 }, 6, TLS_ALERT_UNEXPECTED_MESSAGE, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "an alert", { 21, 3, 3, 0, 2, 2, 40 }, 7, TLS_ALERT_BAD_RECORD_MAC, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "a handshake message", { 22, 3, 3, 0, 1, 0 }, 6, TLS_ALERT_BAD_RECORD_MAC, TLS_ALERT_UNEXPECTED_MESSAGE },
	{ "data", { 23, 3, 3, 0, 1, 'x' }, 6, TLS_ALERT_BAD_RECORD_MAC, TLS_ALERT_BAD_RECORD_MAC },
	{ "nothing", { 23, 3, 3, 0, 0 }, 5, TLS_ALERT_BAD_RECORD_MAC, TLS_ALERT_BAD_RECORD_MAC },
};

START_TEST(plaintext_after_the_handshake_is_refused)
{
	struct live_record got;

	start(suite_at(_i)->id);
	for (size_t i = 0; i < sizeof(plaintexts) / sizeof(plaintexts[0]); i++) {
		int expected = is_tls13() ? plaintexts[i].alert13 : plaintexts[i].alert12;
		struct live_position at = live_part_position(&pair.part);
		struct live *l;
		ck_assert_int_eq(live_create(pair.pool, &pair.part, pair.suite->id, &at, 1, LIVE_CONTINUES, &l), 0);
		memcpy(record, plaintexts[i].bytes, plaintexts[i].len);
		ck_assert_int_lt(live_open_bytes(l, record, plaintexts[i].len, 0, &got), 0);
		ck_assert_msg(
			(int)live_alert_owed(l) == expected, "%s: alert %d", plaintexts[i].what, live_alert_owed(l));
		live_destroy(l);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(every_flipped_bit_is_noticed)
{
	static uint8_t copy[256];
	struct live_record got;

	start(suite_at(_i)->id);
	ptrdiff_t n = record_forge_seal(pair.client,
		&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = zeros, .len = 40 }, record,
		sizeof(record));
	for (ptrdiff_t bit = 0; bit < n * 8; bit++) {
		struct live_position at = live_part_position(&pair.part);
		struct live *l;
		if (bit / 8 == 3 || bit / 8 == 4)
			continue; /* a length that is not the record's: the caller's scan sees it */
		ck_assert_int_eq(live_create(pair.pool, &pair.part, pair.suite->id, &at, 1, LIVE_CONTINUES, &l), 0);
		memcpy(copy, record, (size_t)n);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_lt(live_open_bytes(l, copy, (size_t)n, 0, &got), 0);
		live_destroy(l);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_replayed_record_is_noticed)
{
	static uint8_t copy[256];
	struct live_record got;

	start(suite_at(_i)->id);
	ptrdiff_t n = record_forge_seal(pair.client,
		&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = zeros, .len = 40 }, record,
		sizeof(record));
	memcpy(copy, record, (size_t)n);
	ck_assert_int_eq(live_open_bytes(pair.agent, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(live_open_bytes(pair.agent, copy, (size_t)n, 0, &got), CSSL_E_AUTH);
	check_ended_with(TLS_ALERT_BAD_RECORD_MAC);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(padding_is_taken_off)
{
	static const size_t lens[] = { 0, 1, 5, 4000, 16370 };
	struct live_record got;

	start(TLS13_AES_128);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct forged_record r = {
			.type = TLS_APPLICATION_DATA, .content = "data\0\0", .len = 6, .padding = lens[i]
		};
		ck_assert_int_eq(send_record(&r, 0, &got), 0);
		ck_assert_int_eq(got.content, LIVE_DATA);
		ck_assert_uint_eq(got.len, 6);
		ck_assert_mem_eq(got.data, "data\0\0", 6);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(max_fragment_length_binds_the_client)
{
	struct live_record got;

	ck_assert_int_eq(live_pair_start(&pair, suite_at(_i)->id, 512), 0);
	ck_assert_int_eq(send_bytes(zeros, 512, TLS_APPLICATION_DATA, &got), 0);
	ck_assert_int_lt(send_bytes(zeros, 513, TLS_APPLICATION_DATA, &got), 0);
	check_ended_with(TLS_ALERT_RECORD_OVERFLOW);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(data_behind_close_notify_is_ignored)
{
	static const uint8_t close_notify[] = { 1, 0 };
	struct live_record got;

	start(suite_at(_i)->id);
	ck_assert_int_eq(send_bytes(close_notify, 2, TLS_ALERT, &got), 0);
	ck_assert_int_eq(got.content, LIVE_CLOSE_NOTIFY);
	uint64_t at = live_position(pair.agent).read_sequence;
	ck_assert_int_eq(send_bytes("late", 4, TLS_APPLICATION_DATA, &got), 0);
	ck_assert_int_eq(got.content, LIVE_IGNORED);
	struct forged_record broken = {
		.type = is_tls13() ? 77 : TLS_APPLICATION_DATA, .content = "x", .len = 1, .tag = FORGED_TAG_WRONG
	};
	ck_assert_int_eq(send_record(&broken, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_IGNORED);
	ck_assert_uint_eq(live_position(pair.agent).read_sequence, at + 2);
	ck_assert_int_gt(live_seal(pair.agent, zeros, 100, record), 0); /* half closed */
	live_pair_stop(&pair);
}
END_TEST

/* Which alerts are what. */
static const struct {
	uint8_t level, description;
	enum live_content tls12, tls13;
} alerts[] = {
	{ 1, 0, LIVE_CLOSE_NOTIFY, LIVE_CLOSE_NOTIFY },
	{ 2, 0, LIVE_ALERT, LIVE_CLOSE_NOTIFY },                                   /* levels mean nothing in TLS 1.3 */
	{ 1, 90, LIVE_IGNORED, LIVE_IGNORED },                                     /* user_canceled */
	{ 2, 90, LIVE_ALERT, LIVE_IGNORED }, { 1, 100, LIVE_IGNORED, LIVE_ALERT }, /* no_renegotiation */
	{ 1, 42, LIVE_IGNORED, LIVE_ALERT }, { 2, 40, LIVE_ALERT, LIVE_ALERT },
	{ 0, 40, (enum live_content) - 1, LIVE_ALERT },
	{ 2, 255, LIVE_ALERT, LIVE_ALERT }, /* unknown ones are errors, too */
};

START_TEST(alerts_close_end_or_warn)
{
	const uint8_t bytes[2] = { alerts[_i].level, alerts[_i].description };

	for (int s = 0; s < 2; s++) {
		enum live_content expected = s == 0 ? alerts[_i].tls12 : alerts[_i].tls13;
		struct live_record got = { 0 };
		start(s == 0 ? TLS12_AES_128 : TLS13_AES_128);
		int r = send_bytes(bytes, 2, TLS_ALERT, &got);
		ck_assert_int_eq(r < 0, expected == (enum live_content) - 1);
		if (r == 0) {
			ck_assert_int_eq(got.content, expected);
			ck_assert_int_eq(got.alert, expected == LIVE_ALERT ? alerts[_i].description : 0);
			ck_assert_int_eq(
				live_end_reason(pair.agent), expected == LIVE_ALERT ? END_ALERT_RECEIVED : END_DONE);
			ck_assert_int_eq(send_bytes("x", 1, TLS_APPLICATION_DATA, &got),
				expected == LIVE_ALERT ? CSSL_E_STATE : 0);
		}
		live_pair_stop(&pair);
	}
}
END_TEST

/* Records that give the backend nothing to do. */
static const struct {
	struct forged_record record;
	int versions;
} dataless[] = {
	{ { .type = TLS_APPLICATION_DATA }, BOTH },
	{ { .type = TLS_APPLICATION_DATA, .padding = 16000 }, TLS13 },
	{ { .type = TLS_ALERT, .content = "\1\x5a", .len = 2 }, BOTH },
};

START_TEST(a_flood_of_records_without_data_ends)
{
	struct live_record got;

	for (int s = 0; s < 2; s++) {
		start(s == 0 ? TLS12_AES_128 : TLS13_AES_128);
		if (dataless[_i].versions & (is_tls13() ? TLS13 : TLS12)) {
			for (unsigned i = 0; i < LIVE_DATALESS_RECORDS_PER_S; i++)
				ck_assert_int_eq(send_record(&dataless[_i].record, 5000 + i, &got), 0);
			ck_assert_int_eq(send_record(&dataless[_i].record, 5999, &got), CSSL_E_EXHAUSTED);
			check_ended_with(TLS_ALERT_UNEXPECTED_MESSAGE);
		}
		live_pair_stop(&pair);
	}
}
END_TEST

START_TEST(a_slow_trickle_of_records_without_data_is_suffered)
{
	struct live_record got;

	start(TLS13_AES_128);
	for (uint64_t i = 0; i < 10 * LIVE_DATALESS_RECORDS_PER_S; i++)
		ck_assert_int_eq(send_record(&dataless[0].record, i * 1000 / LIVE_DATALESS_RECORDS_PER_S, &got), 0);
	live_pair_stop(&pair);
}
END_TEST

/* The client's next KeyUpdate, at @now_ms. */
static int update_keys(uint64_t now_ms)
{
	static const uint8_t update[] = { 24, 0, 0, 1, 1 };
	struct live_record got;
	int r = send_record(&(struct forged_record){ .type = TLS_HANDSHAKE, .content = update, .len = sizeof(update) },
		now_ms, &got);

	if (r == 0)
		ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	record_forge_step(pair.client);
	return r;
}

static void check_flooded(int r)
{
	ck_assert_int_eq(r, CSSL_E_EXHAUSTED);
	ck_assert_int_eq(live_end_reason(pair.agent), END_KEY_UPDATE_FLOOD);
	check_ended_with(TLS_ALERT_UNEXPECTED_MESSAGE);
	live_pair_stop(&pair);
}

/* Eight, and one that others wait for. */
static void update_keys_at_once(uint64_t now_ms)
{
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(update_keys(now_ms), 0);
	ck_assert_uint_eq(live_key_update_wait_ms(pair.agent, now_ms), 0);
	ck_assert_int_eq(update_keys(now_ms), 0);
	ck_assert_uint_eq(live_key_update_wait_ms(pair.agent, now_ms), 1000);
	ck_assert_uint_eq(live_key_update_wait_ms(pair.agent, now_ms + 400), 600);
}

START_TEST(a_flood_of_key_updates_ends)
{
	start(TLS13_AES_128);
	update_keys_at_once(5);
	check_flooded(update_keys(6));
}
END_TEST

START_TEST(a_flood_of_key_updates_ends_though_it_waits)
{
	uint64_t at_ms = 0;
	int r;

	start(TLS13_AES_128);
	update_keys_at_once(0);
	do
		at_ms += live_key_update_wait_ms(pair.agent, at_ms);
	while ((r = update_keys(at_ms)) == 0);
	ck_assert_uint_ge(at_ms, 4000);
	ck_assert_uint_le(at_ms, 11000);
	check_flooded(r);
}
END_TEST

START_TEST(silence_forgives_key_updates_behind_which_one_waits)
{
	uint64_t at_ms = 0;

	start(TLS13_AES_128);
	for (unsigned n = 0; n < 10; n++) {
		update_keys_at_once(at_ms);
		for (unsigned i = 0; i < 3; i++) {
			at_ms += live_key_update_wait_ms(pair.agent, at_ms);
			ck_assert_int_eq(update_keys(at_ms), 0);
		}
		at_ms += 9000;
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_key_update_a_second_is_suffered_for_ever)
{
	start(TLS13_AES_128);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(update_keys(1000 * i), 0);
	live_pair_stop(&pair);
}
END_TEST

/* They were opened late, so each of the next ones is a little early for ever. */
START_TEST(a_key_update_a_second_is_suffered_behind_late_ones)
{
	start(TLS13_AES_128);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(update_keys(50), 0);
	for (unsigned i = 1; i < 100; i++) {
		ck_assert_int_eq(update_keys(1000 * i), 0);
		ck_assert_uint_eq(live_key_update_wait_ms(pair.agent, 1000 * i), 50);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(two_key_updates_a_second_end_once_the_burst_is_used_up)
{
	unsigned taken = 0;
	int r;

	start(TLS13_AES_128);
	while ((r = update_keys(500 * taken)) == 0)
		taken++;
	ck_assert_uint_eq(taken, 17);
	check_flooded(r);
}
END_TEST

START_TEST(silence_gives_the_burst_of_key_updates_back_and_no_more)
{
	start(TLS13_AES_128);
	update_keys_at_once(0);
	update_keys_at_once(3600 * 1000);
	check_flooded(update_keys(3600 * 1000));
}
END_TEST

START_TEST(the_old_keys_open_nothing_after_a_key_update)
{
	static const uint8_t update[] = { 24, 0, 0, 1, 0 };
	struct live_record got;

	start(TLS13_AES_256);
	ck_assert_int_eq(send_bytes(update, 5, TLS_HANDSHAKE, &got), 0);
	ck_assert_int_eq(send_bytes("x", 1, TLS_APPLICATION_DATA, &got), CSSL_E_AUTH);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_renegotiation_is_refused_with_a_warning_and_the_connection_goes_on)
{
	static const uint8_t hello[] = { 1, 0, 0, 3, 3, 3, 0 };
	struct live_record got;

	start(TLS12_AES_128);
	ck_assert_int_eq(send_bytes(hello, sizeof(hello), TLS_HANDSHAKE, &got), 0);
	ck_assert_int_eq(got.content, LIVE_IGNORED);
	ck_assert_int_eq(live_due(pair.agent), LIVE_WARNING_DUE);
	ptrdiff_t n = live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION, record);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_IGNORED);
	ck_assert_int_eq(live_due(pair.agent), LIVE_NOTHING_DUE);
	ck_assert_int_eq(send_bytes("x", 1, TLS_APPLICATION_DATA, &got), 0);
	ck_assert_int_eq(got.content, LIVE_DATA);
	ck_assert_int_gt(live_seal(pair.agent, zeros, 10, record), 0);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_second_renegotiation_ends)
{
	static const uint8_t hello[] = { 1, 0, 0, 3, 3, 3, 0 };
	struct live_record got;

	start(TLS12_AES_128);
	ck_assert_int_eq(send_bytes(hello, sizeof(hello), TLS_HANDSHAKE, &got), 0);
	ck_assert_int_lt(send_bytes(hello, sizeof(hello), TLS_HANDSHAKE, &got), 0);
	ck_assert_int_eq(live_end_reason(pair.agent), END_RENEGOTIATION);
	ck_assert_int_eq(live_alert_owed(pair.agent), TLS_ALERT_UNEXPECTED_MESSAGE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_renegotiation_hello_in_pieces_is_read_past)
{
	static uint8_t hello[1500] = { 1, 0, (1500 - 4) >> 8, (1500 - 4) & 0xff };
	struct live_record got;

	start(TLS12_AES_128);
	for (size_t at = 0; at < sizeof(hello); at += 500) {
		ck_assert_int_eq(send_bytes(hello + at, 500, TLS_HANDSHAKE, &got), 0);
		ck_assert_int_eq(got.content, LIVE_IGNORED);
	}
	ck_assert_int_eq(send_bytes("x", 1, TLS_APPLICATION_DATA, &got), 0);
	live_pair_stop(&pair);
	/* data in the midst of it */
	start(TLS12_AES_128);
	ck_assert_int_eq(send_bytes(hello, 500, TLS_HANDSHAKE, &got), 0);
	ck_assert_int_lt(send_bytes("x", 1, TLS_APPLICATION_DATA, &got), 0);
	ck_assert_int_eq(live_alert_owed(pair.agent), TLS_ALERT_UNEXPECTED_MESSAGE);
	live_pair_stop(&pair);
}
END_TEST

UNIT(live_open)
{
	Suite *s = suite_create("live_open");
	TCase *t = tcase_create("violations");
	SRunner *r = srunner_create(s);
	unsigned count;
	cipher_suites(&count);
	int n = (int)count;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, each_violation_has_its_alert, 0, VIOLATIONS);
	tcase_add_loop_test(t, plaintext_after_the_handshake_is_refused, 0, n);
	tcase_add_loop_test(t, every_flipped_bit_is_noticed, 0, n);
	tcase_add_loop_test(t, a_replayed_record_is_noticed, 0, n);
	tcase_add_test(t, padding_is_taken_off);
	tcase_add_loop_test(t, max_fragment_length_binds_the_client, 0, n);
	tcase_add_loop_test(t, data_behind_close_notify_is_ignored, 0, n);
	tcase_add_loop_test(t, alerts_close_end_or_warn, 0, sizeof(alerts) / sizeof(alerts[0]));
	tcase_add_loop_test(t, a_flood_of_records_without_data_ends, 0, sizeof(dataless) / sizeof(dataless[0]));
	tcase_add_test(t, a_slow_trickle_of_records_without_data_is_suffered);
	tcase_add_test(t, a_flood_of_key_updates_ends);
	tcase_add_test(t, a_key_update_a_second_is_suffered_for_ever);
	tcase_add_test(t, a_flood_of_key_updates_ends_though_it_waits);
	tcase_add_test(t, silence_forgives_key_updates_behind_which_one_waits);
	tcase_add_test(t, a_key_update_a_second_is_suffered_behind_late_ones);
	tcase_add_test(t, two_key_updates_a_second_end_once_the_burst_is_used_up);
	tcase_add_test(t, silence_gives_the_burst_of_key_updates_back_and_no_more);
	tcase_add_test(t, the_old_keys_open_nothing_after_a_key_update);
	tcase_add_test(t, a_renegotiation_is_refused_with_a_warning_and_the_connection_goes_on);
	tcase_add_test(t, a_second_renegotiation_ends);
	tcase_add_test(t, a_renegotiation_hello_in_pieces_is_read_past);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
