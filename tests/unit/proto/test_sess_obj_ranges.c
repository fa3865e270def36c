/* test_sess_obj_ranges.c: values that neither export nor import takes. */
#include <string.h>

#include "proto/error.h"
#include "proto/sess_obj.pb-c.h"
#include "tests/unit/proto/sess_obj_bytes.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* Objects that neither side may send: a change to a good object, and the error of export. */
struct bad_object {
	const char *what;
	uint16_t suite;
	void (*spoil)(struct sess_obj_sample *s);
	int error;
};

#define BAD(name, statement)                                                                                           \
	static void name(struct sess_obj_sample *s)                                                                    \
	{                                                                                                              \
		statement;                                                                                             \
	}

BAD(unknown_suite, s->object.facts.cipher_suite = 0x1304)
BAD(suite_of_other_version, s->object.facts.protocol_version = 0x0303)
BAD(unknown_version, s->object.facts.protocol_version = 0x0302)
BAD(epoch_zero, s->live.epoch = 0)
BAD(short_session_id, s->object.facts.session_id_len = 31)
BAD(session_without_id, s->object.facts.session_id_len = 0)
BAD(empty_session, s->object.session_len = 0)
BAD(long_session, s->object.session_len = SESSION_DER_MAX + 1)
BAD(long_lifetime, s->object.session_remaining_s = SESSION_LIFETIME_MAX_S + 1)
BAD(no_origin, s->object.facts.origin[0] = '\0')
BAD(no_listener, s->object.facts.listener[0] = '\0')
BAD(unterminated_origin, memset(s->object.facts.origin, 'x', sizeof(s->object.facts.origin)))
BAD(unterminated_listener, memset(s->object.facts.listener, 'x', sizeof(s->object.facts.listener)))
BAD(unterminated_name, memset(s->object.facts.server_name, 'x', sizeof(s->object.facts.server_name)))
BAD(unterminated_alpn, memset(s->object.facts.alpn, 'x', sizeof(s->object.facts.alpn)))
BAD(address_of_five, s->object.facts.client.len = 5)
BAD(context_too_long, s->object.facts.context_len = 33)
BAD(huge_verify_result, s->object.facts.verify_result = INT64_C(1) << 31)
BAD(tiny_verify_result, s->object.facts.verify_result = -(INT64_C(1) << 31) - 1)
BAD(long_certificate, s->object.certificate_len = CERTIFICATE_MAX + 1)
BAD(empty_certificate, s->object.certificate_len = 0)
BAD(tiny_fragment, s->live.max_fragment = 63)
BAD(huge_fragment, s->live.max_fragment = 16385)
BAD(last_read_sequence, s->live.read_sequence = UINT64_MAX)
BAD(last_write_sequence, s->live.write_sequence = UINT64_MAX)
BAD(read_sequence_in_epoch, s->live.read_sequence = UINT64_C(1) << 48)
BAD(write_sequence_in_epoch, s->live.write_sequence = UINT64_C(1) << 48)
BAD(read_generation, s->live.read_generation = 1)
BAD(write_generation, s->live.write_generation = 1)
BAD(update_owed, s->live.key_update = KEY_UPDATE_OWED)
BAD(short_secret, s->live.client_write.secret_len--)
BAD(long_secret, s->live.server_write.secret_len++)
BAD(key_beside_secret, s->live.server_write.key_len = 16)
BAD(iv_beside_secret, s->live.client_write.iv_len = 12)
BAD(secret_beside_key, s->live.server_write.secret_len = 32)
BAD(short_key, s->live.server_write.key_len = 15)
BAD(key_of_other_suite, s->live.client_write.key_len = 32)
BAD(whole_iv, s->live.client_write.iv_len = 12)
BAD(salt_only, s->live.server_write.iv_len = 4)
BAD(short_randoms, s->live.randoms.len = 31)
BAD(short_exporter, s->live.randoms.secret_len = 16)
BAD(short_master, s->live.randoms.secret_len = 32)

#define ROW(suite, name, error)                                                                                        \
	{                                                                                                              \
#name, suite, name, error                                                                              \
	}

static const struct bad_object bad_objects[] = {
	ROW(TLS13_AES_128, unknown_suite, CSSL_E_TYPE),
	ROW(TLS13_AES_128, suite_of_other_version, CSSL_E_TYPE),
	ROW(TLS13_AES_128, unknown_version, CSSL_E_TYPE),
	ROW(TLS13_AES_128, epoch_zero, CSSL_E_RANGE),
	ROW(TLS13_AES_128, short_session_id, CSSL_E_RANGE),
	ROW(TLS13_AES_128, session_without_id, CSSL_E_RANGE),
	ROW(TLS13_AES_128, empty_session, CSSL_E_RANGE),
	ROW(TLS13_AES_128, long_session, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, long_lifetime, CSSL_E_RANGE),
	ROW(TLS13_AES_128, no_origin, CSSL_E_RANGE),
	ROW(TLS13_AES_128, no_listener, CSSL_E_RANGE),
	ROW(TLS13_AES_128, unterminated_origin, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, unterminated_listener, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, unterminated_name, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, unterminated_alpn, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, address_of_five, CSSL_E_RANGE),
	ROW(TLS13_AES_128, context_too_long, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, huge_verify_result, CSSL_E_RANGE),
	ROW(TLS13_AES_128, tiny_verify_result, CSSL_E_RANGE),
	ROW(TLS13_AES_128, long_certificate, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, empty_certificate, CSSL_E_RANGE),
	ROW(TLS13_AES_128, tiny_fragment, CSSL_E_RANGE),
	ROW(TLS13_AES_128, huge_fragment, CSSL_E_RANGE),
	ROW(TLS13_AES_128, last_read_sequence, CSSL_E_RANGE),
	ROW(TLS13_AES_128, last_write_sequence, CSSL_E_RANGE),
	ROW(TLS12_AES_128, read_sequence_in_epoch, CSSL_E_RANGE),
	ROW(TLS12_CHACHA, write_sequence_in_epoch, CSSL_E_RANGE),
	ROW(TLS12_AES_128, read_generation, CSSL_E_RANGE),
	ROW(TLS12_AES_128, write_generation, CSSL_E_RANGE),
	ROW(TLS12_AES_128, update_owed, CSSL_E_RANGE),
	ROW(TLS13_AES_128, short_secret, CSSL_E_RANGE),
	ROW(TLS13_AES_128, long_secret, CSSL_E_RANGE),
	ROW(TLS13_AES_128, key_beside_secret, CSSL_E_RANGE),
	ROW(TLS13_AES_128, iv_beside_secret, CSSL_E_RANGE),
	ROW(TLS12_AES_128, secret_beside_key, CSSL_E_RANGE),
	ROW(TLS12_AES_128, short_key, CSSL_E_RANGE),
	ROW(TLS12_AES_128, key_of_other_suite, CSSL_E_RANGE),
	ROW(TLS12_AES_128, whole_iv, CSSL_E_RANGE),
	ROW(TLS12_CHACHA, salt_only, CSSL_E_RANGE),
	ROW(TLS13_AES_128, short_randoms, CSSL_E_RANGE),
	ROW(TLS13_AES_128, short_exporter, CSSL_E_RANGE),
	ROW(TLS12_AES_128, short_master, CSSL_E_RANGE),
};

START_TEST(export_refuses_what_import_would)
{
	struct sess_obj_sample s;
	uint8_t blob[BLOB_MAX];

	for (size_t i = 0; i < SUITE_LEN(bad_objects); i++) {
		const struct bad_object *bad = &bad_objects[i];
		sample(&s, bad->suite);
		bad->spoil(&s);
		ck_assert_msg(sess_obj_encode(&s.object, blob, sizeof(blob)) == bad->error, "%s", bad->what);
		ck_assert_msg(sess_obj_encoded_len(&s.object) == bad->error, "%s", bad->what);
	}
}
END_TEST

/* Messages that a peer could send: a change to a good message, and the error of import. */
struct bad_message {
	const char *what;
	uint16_t suite;
	void (*spoil)(Cssl__SessObj *m);
	int error;
};

static uint8_t spare[SESS_OBJ_LEN_MAX];

static ProtobufCBinaryData text(const char *t, size_t len)
{
	return (ProtobufCBinaryData){ .data = (uint8_t *)t, .len = len };
}

static ProtobufCBinaryData zeros(size_t len)
{
	return (ProtobufCBinaryData){ .data = spare, .len = len };
}

static Cssl__Live__SessionKeys no_keys = CSSL__LIVE__SESSION_KEYS__INIT;
static Cssl__Live__RandomValues no_randoms = CSSL__LIVE__RANDOM_VALUES__INIT;
static Cssl__Resumption no_resumption = CSSL__RESUMPTION__INIT;

#define SAY(name, statement)                                                                                           \
	static void name(Cssl__SessObj *m)                                                                             \
	{                                                                                                              \
		statement;                                                                                             \
	}

SAY(say_no_format, m->format = 0)
SAY(say_later_format, m->format = SESS_OBJ_FORMAT_NEXT + 1)
SAY(say_version_of_17_bits, m->protocol_version |= 1 << 16)
SAY(say_suite_of_17_bits, m->cipher_suite |= 1 << 16)
SAY(say_suite_of_other_version, m->cipher_suite = TLS12_AES_128)
SAY(say_no_family, m->family_id.len = 0)
SAY(say_long_family, m->family_id = zeros(17))
SAY(say_long_session_id, m->session_id = zeros(33))
SAY(say_nul_in_origin, m->origin = text("a\0b", 3))
SAY(say_nul_in_listener, m->listener = text("shop\0", 5))
SAY(say_nul_in_server_name, m->server_name = text("good.example\0.evil.example", 26))
SAY(say_nul_in_alpn, m->alpn = text("\0h2", 3))
SAY(say_no_origin, m->origin.len = 0)
SAY(say_no_listener, m->listener.len = 0)
SAY(say_long_origin, m->origin = text("0123456789012345678901234567890123456789012345678901234567890123", 64))
SAY(say_long_server_name, (memset(spare, 'x', 256), m->server_name = zeros(256)))
SAY(say_long_address, m->client_address = zeros(17))
SAY(say_odd_address, m->client_address = zeros(6))
SAY(say_long_context, m->session_id_context = zeros(33))
SAY(say_long_certificate, m->client_certificate = zeros(CERTIFICATE_MAX + 1))
SAY(say_empty_resumption, m->resumption = &no_resumption)
SAY(say_long_session, m->resumption->session = zeros(SESSION_DER_MAX + 1))
SAY(say_long_lifetime, m->resumption->remaining_s = UINT32_MAX)
SAY(say_no_connection, m->live->connection_id.len = 0)
SAY(say_long_connection, m->live->connection_id = zeros(17))
SAY(say_epoch_zero, m->live->epoch = 0)
SAY(say_epoch_of_17_bits, m->live->epoch = 1 << 16)
SAY(say_epoch_of_17_bits_and_one, m->live->epoch = (1 << 16) + 1)
SAY(say_fragment_of_17_bits, m->live->max_fragment = (1 << 16) + 4096)
SAY(say_no_keys, m->live->session_keys = NULL)
SAY(say_empty_keys, m->live->session_keys = &no_keys)
SAY(say_long_secret, m->live->session_keys->server_write_secret = zeros(49))
SAY(say_secret_of_sha384, m->live->session_keys->client_write_secret = zeros(48))
SAY(say_key_too, m->live->session_keys->client_write_key = zeros(16))
SAY(say_long_key, m->live->session_keys->server_write_key = zeros(33))
SAY(say_long_iv, m->live->session_keys->server_write_iv = zeros(13))
SAY(say_last_sequence, m->live->write_sequence = UINT64_MAX)
SAY(say_sequence_in_epoch, m->live->write_sequence = UINT64_C(1) << 48)
SAY(say_generation, m->live->read_generation = 1)
SAY(say_update_owed, m->live->key_update_owed = 1)
SAY(say_nonce, m->live->record_nonce = zeros(8))
SAY(say_no_nonce, m->live->record_nonce.len = 0)
SAY(say_short_nonce, m->live->record_nonce.len = 7)
SAY(say_short_token, m->live->adopt_token = zeros(15))
SAY(say_long_token, m->live->adopt_token = zeros(17))
SAY(say_time_before_all, m->live->made_ms = -1)
SAY(say_one_random, m->live->random_values->client_random.len = 0)
SAY(say_long_random, m->live->random_values->server_random = zeros(33))
SAY(say_master_in_tls13, m->live->random_values->master_secret = zeros(48))
SAY(say_exporter_in_tls12, m->live->exporter_secret = zeros(32))
SAY(say_master_of_32, m->live->random_values->master_secret = zeros(32))
SAY(say_exporter_of_16, m->live->random_values = &no_randoms; m->live->exporter_secret = zeros(16))

static const struct bad_message bad_messages[] = {
	ROW(TLS13_AES_128, say_no_format, CSSL_E_VERSION),
	ROW(TLS13_AES_128, say_later_format, CSSL_E_VERSION),
	ROW(TLS13_AES_128, say_version_of_17_bits, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_suite_of_17_bits, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_suite_of_other_version, CSSL_E_RANGE), /* the missing nonce is seen first */
	ROW(TLS13_AES_128, say_no_family, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_family, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_session_id, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_nul_in_origin, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_nul_in_listener, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_nul_in_server_name, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_nul_in_alpn, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_no_origin, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_no_listener, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_origin, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_long_server_name, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_long_address, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_odd_address, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_context, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_long_certificate, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_empty_resumption, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_session, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_long_lifetime, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_no_connection, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_connection, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_epoch_zero, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_epoch_of_17_bits, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_epoch_of_17_bits_and_one, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_fragment_of_17_bits, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_short_token, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_token, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_time_before_all, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_no_keys, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_empty_keys, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_secret, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_secret_of_sha384, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_key_too, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_long_key, CSSL_E_TOO_LONG),
	ROW(TLS12_CHACHA, say_long_iv, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_last_sequence, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_sequence_in_epoch, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_generation, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_update_owed, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_nonce, CSSL_E_RANGE),
	ROW(TLS12_CHACHA, say_nonce, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_no_nonce, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_short_nonce, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_one_random, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_long_random, CSSL_E_TOO_LONG),
	ROW(TLS13_AES_128, say_master_in_tls13, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_exporter_in_tls12, CSSL_E_RANGE),
	ROW(TLS12_AES_128, say_master_of_32, CSSL_E_RANGE),
	ROW(TLS13_AES_128, say_exporter_of_16, CSSL_E_RANGE),
};

/* A good message, spoilt, packed again. */
static size_t spoilt(const struct bad_message *bad, uint8_t *out, size_t cap)
{
	struct sess_obj_sample s;
	uint8_t blob[BLOB_MAX];

	sample(&s, bad->suite);
	Cssl__SessObj *m = cssl__sess_obj__unpack(NULL, encoded(&s.object, blob), blob);
	ck_assert_ptr_nonnull(m);
	Cssl__SessObj shallow = *m;
	Cssl__Live live = *m->live;
	Cssl__Live__SessionKeys keys = *live.session_keys;
	Cssl__Live__RandomValues randoms = *live.random_values;
	Cssl__Resumption resumption = *m->resumption;
	shallow.live = &live;
	shallow.resumption = &resumption;
	live.session_keys = &keys;
	live.random_values = &randoms;
	bad->spoil(&shallow);
	ck_assert_uint_le(cssl__sess_obj__get_packed_size(&shallow), cap);
	size_t len = cssl__sess_obj__pack(&shallow, out);
	cssl__sess_obj__free_unpacked(m, NULL);
	return len;
}

START_TEST(import_refuses_each_value_out_of_its_range)
{
	static uint8_t blob[2 * SESS_OBJ_LEN_MAX];

	for (size_t i = 0; i < SUITE_LEN(bad_messages); i++) {
		const struct bad_message *bad = &bad_messages[i];
		struct sess_obj out;
		size_t len = spoilt(bad, blob, sizeof(blob));
		int error = sess_obj_decode(blob, len, &out);
		ck_assert_msg(error == bad->error, "%s: %d", bad->what, error);
	}
}
END_TEST

UNIT(sess_obj_ranges)
{
	const TTest *const facts[] = {
		export_refuses_what_import_would,
		import_refuses_each_value_out_of_its_range,
	};

	return suite_run("sess_obj_ranges", facts, SUITE_LEN(facts));
}
