/* test_sealed_copy.c */
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/sealed_copy.h"
#include "tests/unit/proto/sess_obj_samples.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define COPY_MAX 4096u
#define LABEL    (1 + 2 + 1 + 3) /* with the id "new" */
#define NONCE    24u

#define HEX_1 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_2 "f0e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f"

/* A sealed copy, and all one needs to open it. */
struct copy {
	struct key_ring ring;
	struct sess_obj_sample sample;
	struct {
		struct connection_id connection;
		const char *listener;
		uint16_t epoch;
	} to; /* what it opens for */
	uint8_t bytes[COPY_MAX];
	size_t len;
};

static void ring_make(struct key_ring *ring, const char *text)
{
	unsigned line;

	ck_assert_int_eq(key_ring_parse(text, strlen(text), ring, &line), 0);
}

static void copy_prepare(struct copy *c, const struct cipher_suite *suite)
{
	ring_make(&c->ring, "new " HEX_1 "\nold " HEX_2 "\n");
	sess_obj_sample_fill(&c->sample, suite, SAMPLE_BOTH);
	c->to.connection = c->sample.live.connection;
	c->to.listener = c->sample.object.facts.listener;
	c->to.epoch = c->sample.live.epoch;
}

static void copy_seal(struct copy *c)
{
	ptrdiff_t len = sealed_copy_seal(&c->ring, &c->sample.object, c->bytes, sizeof(c->bytes));

	ck_assert_int_gt(len, 0);
	c->len = (size_t)len;
}

static void copy_make(struct copy *c)
{
	copy_prepare(c, cipher_suite_find(0x1301));
	copy_seal(c);
}

static int copy_open(const struct copy *c, uint32_t age_s, struct sess_obj *out)
{
	uint16_t epoch;

	return sealed_copy_open(&c->ring, &c->to.connection, c->to.listener, c->bytes, c->len, age_s, out, &epoch);
}

START_TEST(a_copy_of_every_suite_opens_without_the_resumption_part)
{
	struct copy c;
	struct sess_obj out;
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		uint16_t epoch = 0;
		copy_prepare(&c, &suites[i]);
		copy_seal(&c);
		ck_assert_int_eq(
			sealed_copy_open(&c.ring, &c.to.connection, c.to.listener, c.bytes, c.len, 0, &out, &epoch), 0);
		ck_assert_uint_eq(epoch, c.to.epoch);
		sess_obj_sample_fill(&c.sample, &suites[i], SAMPLE_LIVE);
		ck_assert(sess_obj_equal(&out, &c.sample.object));
		sess_obj_destroy(&out);
	}
}
END_TEST

START_TEST(a_copy_needs_all_of_its_room)
{
	struct copy c;
	uint8_t out[COPY_MAX];

	copy_make(&c);
	for (size_t cap = 0; cap < c.len; cap++)
		ck_assert_int_eq(sealed_copy_seal(&c.ring, &c.sample.object, out, cap), CSSL_E_TOO_LONG);
	ck_assert_int_eq(sealed_copy_seal(&c.ring, &c.sample.object, out, c.len), (ptrdiff_t)c.len);
}
END_TEST

START_TEST(a_flipped_bit_anywhere_is_refused)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	for (size_t bit = 0; bit < 8 * c.len; bit++) {
		c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		int error = copy_open(&c, 0, &out);
		ck_assert_int_lt(error, 0);
		if (bit / 8 >= LABEL)
			ck_assert_int_eq(error, CSSL_E_AUTH);
		c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_int_eq(copy_open(&c, 0, &out), 0);
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(a_cut_copy_is_refused)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	while (c.len-- > 0)
		ck_assert_int_eq(copy_open(&c, 0, &out), c.len < LABEL + NONCE + 16 ? CSSL_E_TRUNCATED : CSSL_E_AUTH);
}
END_TEST

START_TEST(another_connection_cannot_use_it)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	c.to.connection.bytes[15] ^= 1;
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_AUTH);
}
END_TEST

START_TEST(another_listener_cannot_use_it)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	c.to.listener = "shop2";
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_AUTH);
	c.to.listener = "sho";
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_AUTH);
	c.to.listener = "";
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_AUTH);
}
END_TEST

START_TEST(an_epoch_written_over_the_clear_one_is_refused)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	c.bytes[2]++;
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_AUTH);
	c.bytes[1] = c.bytes[2] = 0;
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_RANGE);
}
END_TEST

START_TEST(every_key_of_the_ring_opens_and_a_missing_one_does_not)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	ring_make(&c.ring, "newest " HEX_2 "\nnew " HEX_1 "\n");
	ck_assert_int_eq(copy_open(&c, 0, &out), 0);
	sess_obj_destroy(&out);
	ring_make(&c.ring, "newest " HEX_1 "\n");
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_KEY_UNKNOWN);
	ring_make(&c.ring, "new " HEX_2 "\n");
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_AUTH);
}
END_TEST

START_TEST(ragent_sees_epoch_and_key_id_and_nothing_else)
{
	struct copy c;
	struct sealed_copy_label label;

	copy_make(&c);
	ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &label), 0);
	ck_assert_uint_eq(label.epoch, c.to.epoch);
	ck_assert_str_eq(label.key_id, "new");
	ck_assert_ptr_null(memmem(c.bytes, c.len, c.sample.live.client_write.secret, 8));
	ck_assert_ptr_null(memmem(c.bytes, c.len, c.sample.object.facts.server_name, 8));
	ck_assert_ptr_null(memmem(c.bytes, c.len, c.sample.certificate, 8));
}
END_TEST

START_TEST(a_label_out_of_its_ranges_is_refused)
{
	struct copy c;
	struct sealed_copy_label label;

	copy_make(&c);
	c.bytes[0]++;
	ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &label), CSSL_E_VERSION);
	c.bytes[0]--;
	c.bytes[3] = 0;
	ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &label), CSSL_E_RANGE);
	c.bytes[3] = KEY_ID_MAX + 1;
	ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &label), CSSL_E_RANGE);
	c.bytes[3] = 3;
	c.bytes[5] = '\0';
	ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &label), CSSL_E_RANGE);
}
END_TEST

START_TEST(two_copies_of_one_object_have_nothing_sealed_in_common)
{
	struct copy a, b;

	copy_make(&a);
	copy_make(&b);
	ck_assert_mem_eq(a.bytes, b.bytes, LABEL);
	ck_assert_mem_ne(a.bytes + LABEL, b.bytes + LABEL, NONCE);
	for (size_t i = LABEL + ADOPT_TOKEN_LEN; i + 8 <= a.len; i++)
		ck_assert_mem_ne(a.bytes + i, b.bytes + i, 8);
}
END_TEST

START_TEST(the_nonce_begins_with_the_token)
{
	struct sealed_copy_label label;
	struct copy c;

	copy_make(&c);
	ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &label), 0);
	ck_assert_mem_eq(label.token, c.sample.live.token, ADOPT_TOKEN_LEN);
	ck_assert_mem_eq(c.bytes + LABEL, c.sample.live.token, ADOPT_TOKEN_LEN);
}
END_TEST

START_TEST(without_a_token_the_whole_nonce_is_random)
{
	struct sealed_copy_label labels[2];
	struct copy c;

	for (int i = 0; i < 2; i++) {
		copy_prepare(&c, cipher_suite_find(0x1301));
		memset(c.sample.live.token, 0, ADOPT_TOKEN_LEN);
		copy_seal(&c);
		ck_assert_int_eq(sealed_copy_peek(c.bytes, c.len, &labels[i]), 0);
	}
	ck_assert_mem_ne(labels[0].token, labels[1].token, ADOPT_TOKEN_LEN);
}
END_TEST

START_TEST(a_copy_grows_older_while_ragent_keeps_it)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	ck_assert_int_eq(copy_open(&c, 1000, &out), 0);
	ck_assert_uint_eq(out.live->remaining_s, c.sample.live.remaining_s - 1000);
	ck_assert_uint_eq(out.facts.family_age_s, c.sample.object.facts.family_age_s + 1000);
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(a_copy_expires_at_its_remaining_time)
{
	struct copy c;
	struct sess_obj out;

	copy_make(&c);
	ck_assert_int_eq(copy_open(&c, c.sample.live.remaining_s - 1, &out), 0);
	ck_assert_uint_eq(out.live->remaining_s, 1);
	sess_obj_destroy(&out);
	ck_assert_int_eq(copy_open(&c, c.sample.live.remaining_s, &out), CSSL_E_EXPIRED);
	ck_assert_int_eq(copy_open(&c, UINT32_MAX, &out), CSSL_E_EXPIRED);
}
END_TEST

START_TEST(the_age_of_a_family_does_not_wrap)
{
	struct copy c;
	struct sess_obj out;

	copy_prepare(&c, cipher_suite_find(0x1301));
	c.sample.object.facts.family_age_s = UINT32_MAX - 5;
	copy_seal(&c);
	ck_assert_int_eq(copy_open(&c, 100, &out), 0);
	ck_assert_uint_eq(out.facts.family_age_s, UINT32_MAX);
	sess_obj_destroy(&out);
}
END_TEST

START_TEST(an_object_without_a_live_part_is_not_sealed)
{
	struct copy c;

	copy_prepare(&c, cipher_suite_find(0x1301));
	c.sample.object.live = NULL;
	ck_assert_int_eq(sealed_copy_seal(&c.ring, &c.sample.object, c.bytes, sizeof(c.bytes)), CSSL_E_RANGE);
}
END_TEST

/* Seal @plain like an agent that has the key and lies about the contents. */
static void copy_forge(struct copy *c, const uint8_t *plain, size_t len)
{
	uint8_t bound[LABEL + CONNECTION_ID_LEN + 64], key[KEY_LEN];
	size_t listener_len = strlen(c->to.listener);
	unsigned long long sealed_len;

	memcpy(bound, c->bytes, LABEL);
	memcpy(bound + LABEL, c->to.connection.bytes, CONNECTION_ID_LEN);
	memcpy(bound + LABEL + CONNECTION_ID_LEN, c->to.listener, listener_len);
	key_ring_subkey(&c->ring, 0, SUBKEY_SEALED_COPY, key, sizeof(key));
	crypto_aead_xchacha20poly1305_ietf_encrypt(c->bytes + LABEL + NONCE, &sealed_len, plain, len, bound,
		LABEL + CONNECTION_ID_LEN + listener_len, NULL, c->bytes + LABEL, key);
	c->len = LABEL + NONCE + (size_t)sealed_len;
}

START_TEST(an_object_inside_that_is_not_the_bindings_is_refused)
{
	struct copy c;
	struct sess_obj out;
	uint8_t plain[COPY_MAX];
	struct sess_obj *o = &c.sample.object;

	copy_make(&c);
	copy_forge(&c, plain, (size_t)sess_obj_encode(o, plain, sizeof(plain)));
	ck_assert_int_eq(copy_open(&c, 0, &out), 0);
	sess_obj_destroy(&out);

	c.sample.live.epoch++;
	copy_forge(&c, plain, (size_t)sess_obj_encode(o, plain, sizeof(plain)));
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_MISMATCH);
	o->live = NULL;
	copy_forge(&c, plain, (size_t)sess_obj_encode(o, plain, sizeof(plain)));
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_RANGE);
	copy_forge(&c, plain, 0);
	ck_assert_int_eq(copy_open(&c, 0, &out), CSSL_E_VERSION);
}
END_TEST

/* Whatever the suite, exporters, names, and how long the connection lives. */
START_TEST(a_copy_of_the_longest_facts_is_one_that_ragent_takes)
{
	static uint8_t certificate[SEALED_COPY_FACTS_MAX];
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		struct copy c;
		uint8_t copy[SEALED_COPY_MAX];
		copy_prepare(&c, &suites[i]);
		ring_make(&c.ring, "sixteen_letters1 " HEX_1 "\n");
		struct sess_obj *o = &c.sample.object;
		struct live_part *live = &c.sample.live;
		const int is_12 = suites[i].protocol_version == 0x0303;
		memset(o->facts.server_name, 'n', NAME_MAX_LEN);
		memset(o->facts.alpn, 'a', NAME_MAX_LEN);
		o->certificate = certificate;
		o->live = NULL;
		o->session = NULL;
		o->session_len = 0;
		o->session_remaining_s = 0;
		o->certificate_len = 6500;
		ck_assert_int_gt(sess_obj_encoded_len(o), 6500);
		while (sess_obj_encoded_len(o) < (ptrdiff_t)SEALED_COPY_FACTS_MAX)
			o->certificate_len++;
		ck_assert_int_eq(sess_obj_encoded_len(o), SEALED_COPY_FACTS_MAX);
		o->facts.family_age_s = UINT32_MAX;
		o->live = live;
		live->epoch = UINT16_MAX;
		live->max_fragment = 16384;
		live->remaining_s = UINT32_MAX;
		live->read_generation = live->write_generation = is_12 ? 0 : UINT32_MAX;
		live->read_sequence = live->write_sequence = is_12 ? (UINT64_C(1) << 48) - 1 : UINT64_MAX - 1;
		live->key_update = is_12 ? KEY_UPDATE_NOT_OWED : KEY_UPDATE_OWED;
		live->exported = EXPORT_AT_FREEZE;
		live->made_ms = INT64_MAX;
		live->randoms.len = RANDOM_LEN;
		live->randoms.secret_len = is_12 ? 48 : suites[i].hash_len;
		ck_assert_int_gt(sealed_copy_seal(&c.ring, o, copy, sizeof copy), 0);
	}
}
END_TEST

UNIT(sealed_copy)
{
	const TTest *const facts[] = {
		a_copy_of_every_suite_opens_without_the_resumption_part,
		a_copy_needs_all_of_its_room,
		a_flipped_bit_anywhere_is_refused,
		a_cut_copy_is_refused,
		another_connection_cannot_use_it,
		another_listener_cannot_use_it,
		an_epoch_written_over_the_clear_one_is_refused,
		every_key_of_the_ring_opens_and_a_missing_one_does_not,
		ragent_sees_epoch_and_key_id_and_nothing_else,
		a_label_out_of_its_ranges_is_refused,
		two_copies_of_one_object_have_nothing_sealed_in_common,
		the_nonce_begins_with_the_token,
		without_a_token_the_whole_nonce_is_random,
		a_copy_grows_older_while_ragent_keeps_it,
		a_copy_expires_at_its_remaining_time,
		the_age_of_a_family_does_not_wrap,
		an_object_without_a_live_part_is_not_sealed,
		an_object_inside_that_is_not_the_bindings_is_refused,
		a_copy_of_the_longest_facts_is_one_that_ragent_takes,
	};
	return suite_run("sealed_copy", facts, SUITE_LEN(facts));
}
