/* test_opening_attacks.c: facts of openings with messages that are changed, cut, replayed or forged. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/noise.h"
#include "tests/unit/proto/opening_pair.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"
#include "proto/wire.h"

/* Message @n of an opening with one bit flipped. Returns the receiver's result. */
static int flipped(unsigned n, size_t bit)
{
	struct both b = both();
	struct message m[3] = { 0 }, out;
	int result;

	both_begin(&b);
	give(b.initiator, &nothing, &m[0]);
	if (n > 0)
		give(b.responder, &m[0], &m[1]);
	if (n > 1)
		give(b.initiator, &m[1], &m[2]);
	m[n].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	result = give(n == 1 ? b.initiator : b.responder, &m[n], &out);
	ck_assert_uint_eq(out.len, 0);
	both_end(&b);
	return result;
}

static size_t message_len(unsigned n)
{
	struct both b = both();
	struct message m[3];

	both_begin(&b);
	run(&b, m);
	both_end(&b);
	return m[n].len;
}

/* A flipped bit in the length may make a message longer than the received bytes: then there is no answer, and
 * nothing is accepted. */
START_TEST(a_flipped_bit_anywhere_is_refused)
{
	for (unsigned n = 0; n < 3; n++) {
		size_t bits = 8 * message_len(n);
		for (size_t bit = 0; bit < bits; bit++) {
			int result = flipped(n, bit);
			ck_assert(result < 0 || (result == OPENING_MORE && bit < 16));
		}
	}
}
END_TEST

START_TEST(a_cut_message_is_refused)
{
	for (unsigned n = 0; n < 3; n++) {
		size_t whole = message_len(n);
		for (size_t len = 2; len < whole; len++) {
			struct both b = both();
			struct message m[3] = { 0 }, out;
			both_begin(&b);
			give(b.initiator, &nothing, &m[0]);
			if (n > 0)
				give(b.responder, &m[0], &m[1]);
			if (n > 1)
				give(b.initiator, &m[1], &m[2]);
			m[n].len = len;
			wire_store_u16(m[n].bytes, (uint16_t)(len - 2));
			ck_assert_int_lt(give(n == 1 ? b.initiator : b.responder, &m[n], &out), 0);
			both_end(&b);
		}
	}
}
END_TEST

START_TEST(a_message_that_says_it_is_too_long_is_refused_at_once)
{
	struct both b = both();
	struct message in = { .len = 2 }, out;

	both_begin(&b);
	wire_store_u16(in.bytes, OPENING_MESSAGE_MAX - 1);
	ck_assert_int_eq(give(b.responder, &in, &out), CSSL_E_TOO_LONG);
	both_end(&b);
}
END_TEST

START_TEST(replayed_first_message_opens_nothing)
{
	struct both recorded = both(), later = both();
	struct message m[3], answer, none;
	struct link_keys keys;

	both_begin(&recorded);
	run(&recorded, m);
	both_begin(&later);
	ck_assert_int_eq(give(later.responder, &m[0], &answer), OPENING_MORE);
	ck_assert_int_eq(opening_result(later.responder, &keys), CSSL_E_STATE);
	ck_assert_mem_ne(answer.bytes, m[1].bytes, m[1].len);
	ck_assert_int_eq(give(later.responder, &m[2], &none), CSSL_E_AUTH);
	ck_assert_int_eq(opening_result(later.responder, &keys), CSSL_E_STATE);
	both_end(&recorded);
	both_end(&later);
}
END_TEST

START_TEST(a_replayed_answer_opens_nothing)
{
	struct both recorded = both(), later = both();
	struct message m[3], first, none;
	struct link_keys keys;

	both_begin(&recorded);
	run(&recorded, m);
	both_begin(&later);
	ck_assert_int_eq(give(later.initiator, &nothing, &first), OPENING_MORE);
	ck_assert_int_eq(give(later.initiator, &m[1], &none), CSSL_E_AUTH);
	ck_assert_int_eq(opening_result(later.initiator, &keys), CSSL_E_STATE);
	both_end(&recorded);
	both_end(&later);
}
END_TEST

START_TEST(a_message_sent_back_to_its_sender_opens_nothing)
{
	struct both b = both();
	struct message m, none;

	both_begin(&b);
	ck_assert_int_eq(give(b.initiator, &nothing, &m), OPENING_MORE);
	ck_assert_int_eq(give(b.initiator, &m, &none), CSSL_E_AUTH);
	both_end(&b);
}
END_TEST

START_TEST(the_responder_gives_no_keys_before_the_third_message)
{
	struct both b = both();
	struct message m[3];
	struct link_keys keys;

	both_begin(&b);
	ck_assert_int_eq(give(b.initiator, &nothing, &m[0]), OPENING_MORE);
	ck_assert_int_eq(give(b.responder, &m[0], &m[1]), OPENING_MORE);
	ck_assert_int_eq(opening_result(b.responder, &keys), CSSL_E_STATE);
	both_end(&b);
}
END_TEST

/* Message 1 as the header of opening.c describes it, with a chosen point. Made by an attacker who has the key. */
static void forge_first(const struct both *b, const uint8_t point[static 32], struct message *out)
{
	struct noise n;
	uint8_t psk[NOISE_KEY_LEN], plain[LINK_HELLO_LEN_MAX], sealed[LINK_HELLO_LEN_MAX + NOISE_TAG_LEN];
	struct wire_writer w = wire_writer(out->bytes, sizeof(out->bytes));

	noise_init(&n, "CSSL link, Noise NNpsk0, X25519 ChaChaPoly BLAKE2b");
	noise_mix_hash(&n, (const uint8_t[]){ 1, 2 }, 2);
	noise_mix_hash(&n, (const uint8_t *)"k1", 2);
	key_ring_subkey(&b->ragent_ring, 0, SUBKEY_OPENING, psk, sizeof(psk));
	noise_mix_psk(&n, psk);
	noise_mix_hash(&n, point, 32);
	noise_mix_key(&n, point, 32);
	size_t len = (size_t)link_hello_write(&b->ragent, plain);
	noise_seal(&n, plain, len, sealed);
	wire_put_u16(&w, (uint16_t)(4 + 32 + len + NOISE_TAG_LEN));
	wire_put_bytes(&w, (const uint8_t[]){ 1, 2, 'k', '1' }, 4);
	wire_put_bytes(&w, point, 32);
	wire_put_bytes(&w, sealed, len + NOISE_TAG_LEN);
	out->len = (size_t)wire_writer_len(&w);
}

START_TEST(the_first_message_is_as_described_and_never_changes)
{
	static const uint8_t base_point[32] = { 9 };
	struct both b = both();
	struct message first, answer;

	both_begin(&b);
	forge_first(&b, base_point, &first);
	ck_assert_int_eq(give(b.responder, &first, &answer), OPENING_MORE);
	ck_assert_str_eq(opening_peer(b.responder)->name, "ragent-1");
	both_end(&b);
}
END_TEST

START_TEST(a_point_that_makes_the_shared_secret_zero_is_refused)
{
	static const uint8_t low_order[][32] = { { 0 }, { 1 } };
	struct message first, none;

	for (size_t i = 0; i < SUITE_LEN(low_order); i++) {
		struct both b = both();
		both_begin(&b);
		forge_first(&b, low_order[i], &first);
		ck_assert_int_eq(give(b.responder, &first, &none), CSSL_E_AUTH);
		ck_assert_uint_eq(none.len, 0);
		both_end(&b);
	}
}
END_TEST

START_TEST(another_version_of_the_opening_is_refused)
{
	struct both b = both();
	struct message first, none;

	both_begin(&b);
	ck_assert_int_eq(give(b.initiator, &nothing, &first), OPENING_MORE);
	first.bytes[2]++;
	ck_assert_int_eq(give(b.responder, &first, &none), CSSL_E_VERSION);
	both_end(&b);
}
END_TEST

UNIT(opening_attacks)
{
	const TTest *const facts[] = {
		a_flipped_bit_anywhere_is_refused,
		a_cut_message_is_refused,
		a_message_that_says_it_is_too_long_is_refused_at_once,
		replayed_first_message_opens_nothing,
		a_replayed_answer_opens_nothing,
		a_message_sent_back_to_its_sender_opens_nothing,
		the_responder_gives_no_keys_before_the_third_message,
		the_first_message_is_as_described_and_never_changes,
		a_point_that_makes_the_shared_secret_zero_is_refused,
		another_version_of_the_opening_is_refused,
	};

	return suite_run("opening_attacks", facts, SUITE_LEN(facts));
}
