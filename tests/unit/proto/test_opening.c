/* test_opening.c: facts of openings between two honest sides: what they agree on, and where they cannot agree. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/opening_pair.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(both_sides_have_the_same_keys_crosswise_and_agree_on_all)
{
	struct both b = both();
	struct message m[3];
	struct link_keys i, r;

	both_begin(&b);
	run(&b, m);
	ck_assert_int_eq(opening_result(b.initiator, &i), 0);
	ck_assert_int_eq(opening_result(b.responder, &r), 0);
	ck_assert_mem_eq(i.send, r.receive, KEY_LEN);
	ck_assert_mem_eq(i.receive, r.send, KEY_LEN);
	ck_assert_mem_ne(i.send, i.receive, KEY_LEN);
	ck_assert_mem_eq(i.transcript, r.transcript, sizeof(i.transcript));
	ck_assert_uint_eq(i.version, LINK_VERSION);
	ck_assert_uint_eq(r.version, LINK_VERSION);
	ck_assert_int_eq(i.protection, LINK_SEALED);
	ck_assert_int_eq(r.protection, LINK_SEALED);
	ck_assert_int_eq(i.aead, AEAD_AES_256_GCM);
	ck_assert_int_eq(r.aead, AEAD_AES_256_GCM);
	both_end(&b);
}
END_TEST

START_TEST(each_opening_has_keys_of_its_own)
{
	struct link_keys first, second;
	struct message m[3];

	for (unsigned n = 0; n < 2; n++) {
		struct both b = both();
		both_begin(&b);
		run(&b, m);
		ck_assert_int_eq(opening_result(b.initiator, n ? &second : &first), 0);
		both_end(&b);
	}
	ck_assert_mem_ne(first.send, second.send, KEY_LEN);
	ck_assert_mem_ne(first.transcript, second.transcript, sizeof(first.transcript));
}
END_TEST

START_TEST(each_side_learns_who_the_other_is)
{
	struct both b = both();
	struct message m[3];

	both_begin(&b);
	ck_assert_ptr_null(opening_peer(b.initiator));
	ck_assert_ptr_null(opening_peer(b.responder));
	run(&b, m);
	ck_assert_str_eq(opening_peer(b.initiator)->name, "agent-1");
	ck_assert_str_eq(opening_peer(b.responder)->name, "ragent-1");
	ck_assert_uint_eq(opening_peer(b.responder)->boot_id, LINK_ROLE_RAGENT);
	ck_assert_uint_eq(opening_peer(b.responder)->target_worker, 1);
	both_end(&b);
}
END_TEST

START_TEST(the_id_check_key_goes_from_an_answering_agent_to_ragent_only)
{
	static const uint8_t zero[SESSION_ID_CHECK_KEY_LEN];
	struct both b = both(), agents = both();
	struct message m[3];

	both_begin(&b);
	run(&b, m);
	ck_assert_mem_eq(opening_peer(b.initiator)->id_check_key, b.agent.id_check_key, sizeof(zero));
	ck_assert_mem_eq(opening_peer(b.responder)->id_check_key, zero, sizeof(zero));
	both_end(&b);

	agents.ragent.role = agents.expected_by_agent = LINK_ROLE_AGENT;
	both_begin(&agents);
	run(&agents, m);
	ck_assert_mem_eq(opening_peer(agents.initiator)->id_check_key, zero, sizeof(zero));
	ck_assert_mem_eq(opening_peer(agents.responder)->id_check_key, zero, sizeof(zero));
	both_end(&agents);
}
END_TEST

START_TEST(nothing_but_the_key_id_stands_in_clear)
{
	struct both b = both();
	struct message m[3];

	both_begin(&b);
	run(&b, m);
	ck_assert_ptr_nonnull(memmem(m[0].bytes, m[0].len, "k1", 2));
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_ptr_null(memmem(m[i].bytes, m[i].len, "agent-1", 7));
		ck_assert_ptr_null(memmem(m[i].bytes, m[i].len, b.agent.id_check_key, 8));
	}
	both_end(&b);
}
END_TEST

START_TEST(bytes_may_come_one_by_one)
{
	struct both b = both();
	struct message m[3] = { 0 }, out;
	struct opening *to[3];
	int result = 0;

	both_begin(&b);
	to[0] = to[2] = b.responder;
	to[1] = b.initiator;
	ck_assert_int_eq(give(b.initiator, &nothing, &m[0]), OPENING_MORE);
	for (unsigned n = 0; n < 3; n++) {
		for (size_t i = 0; i < m[n].len; i++) {
			size_t taken = 0;
			result = opening_step(to[n], m[n].bytes, i + 1, &taken, out.bytes, &out.len);
			ck_assert_uint_eq(taken, i + 1 == m[n].len ? i + 1 : 0);
			ck_assert_int_eq(result, i + 1 == m[n].len && n > 0 ? OPENING_DONE : OPENING_MORE);
			ck_assert(out.len == 0 || i + 1 == m[n].len);
		}
		if (n < 2)
			m[n + 1] = out;
	}
	both_end(&b);
}
END_TEST

START_TEST(bytes_behind_the_last_message_are_left_for_the_link)
{
	struct both b = both();
	struct message m[3], out;
	size_t taken;

	both_begin(&b);
	ck_assert_int_eq(give(b.initiator, &nothing, &m[0]), OPENING_MORE);
	ck_assert_int_eq(give(b.responder, &m[0], &m[1]), OPENING_MORE);
	ck_assert_int_eq(give(b.initiator, &m[1], &m[2]), OPENING_DONE);
	int result = opening_step(b.responder, m[2].bytes, m[2].len + 100, &taken, out.bytes, &out.len);
	ck_assert_int_eq(result, OPENING_DONE);
	ck_assert_uint_eq(taken, m[2].len);
	both_end(&b);
}
END_TEST

START_TEST(a_link_key_cannot_open_an_agent_link)
{
	struct both b = both(), same_id = both();

	/* an agent's listener for agents has agents.key, whatever role the caller claims */
	b.ragent.role = b.expected_by_agent = LINK_ROLE_AGENT;
	ring_make(&b.agent_ring, "agents1 " HEX_2 "\n");
	ck_assert_int_eq(refusal(&b), CSSL_E_KEY_UNKNOWN);
	same_id.ragent.role = same_id.expected_by_agent = LINK_ROLE_AGENT;
	ring_make(&same_id.agent_ring, "k1 " HEX_2 "\n");
	ck_assert_int_eq(refusal(&same_id), CSSL_E_AUTH);
}
END_TEST

START_TEST(any_key_of_both_rings_opens)
{
	struct both b = both();
	struct message m[3];

	ring_make(&b.ragent_ring, "k2 " HEX_2 "\nk1 " HEX_1 "\n");
	for (b.key = 0; b.key < 2; b.key++) {
		ring_make(&b.agent_ring, "k1 " HEX_1 "\nk2 " HEX_2 "\n");
		both_begin(&b);
		run(&b, m);
		both_end(&b);
	}
}
END_TEST

START_TEST(an_unexpected_role_is_refused_by_either_side)
{
	struct both initiator = both(), responder = both();
	struct message m[3] = { 0 }, none;

	responder.expected_by_agent = LINK_ROLE_AGENT;
	ck_assert_int_eq(refusal(&responder), CSSL_E_MISMATCH);

	initiator.expected_by_ragent = LINK_ROLE_RAGENT;
	both_begin(&initiator);
	give(initiator.initiator, &nothing, &m[0]);
	give(initiator.responder, &m[0], &m[1]);
	ck_assert_int_eq(give(initiator.initiator, &m[1], &none), CSSL_E_MISMATCH);
	ck_assert_uint_eq(none.len, 0);
	ck_assert_str_eq(opening_peer(initiator.initiator)->name, "agent-1"); /* for the log */
	both_end(&initiator);
}
END_TEST

START_TEST(sealed_and_trusted_do_not_open)
{
	struct both one = both(), other = both();

	one.ragent.protection = LINK_TRUSTED;
	ck_assert_int_eq(refusal(&one), CSSL_E_MISMATCH);
	other.agent.protection = LINK_TRUSTED;
	ck_assert_int_eq(refusal(&other), CSSL_E_MISMATCH);
}
END_TEST

START_TEST(the_worker_that_was_asked_for_answers)
{
	struct both b = both();
	struct message m[3];

	both_begin(&b);
	run(&b, m);
	ck_assert_uint_eq(opening_peer(b.initiator)->worker, 1);
	both_end(&b);
}
END_TEST

START_TEST(a_worker_that_does_not_exist_opens_nothing)
{
	struct both b = both();

	b.ragent.target_worker = 2;
	ck_assert_int_eq(refusal(&b), CSSL_E_MISMATCH);
}
END_TEST

START_TEST(both_trusted_opens_and_says_so)
{
	struct both b = both();
	struct message m[3];
	struct link_keys keys;

	b.ragent.protection = b.agent.protection = LINK_TRUSTED;
	both_begin(&b);
	run(&b, m);
	ck_assert_int_eq(opening_result(b.responder, &keys), 0);
	ck_assert_int_eq(keys.protection, LINK_TRUSTED);
	both_end(&b);
}
END_TEST

START_TEST(the_highest_common_version_is_agreed)
{
	struct both b = both();
	struct message m[3];
	struct link_keys i, r;

	b.ragent.version_max = 4;
	b.agent.version_min = 2;
	b.agent.version_max = 3;
	both_begin(&b);
	run(&b, m);
	ck_assert_int_eq(opening_result(b.initiator, &i), 0);
	ck_assert_int_eq(opening_result(b.responder, &r), 0);
	ck_assert_uint_eq(i.version, 3);
	ck_assert_uint_eq(r.version, 3);
	both_end(&b);
}
END_TEST

START_TEST(without_a_common_version_nothing_opens)
{
	struct both b = both();

	b.agent.version_min = b.agent.version_max = LINK_VERSION + 1;
	ck_assert_int_eq(refusal(&b), CSSL_E_VERSION);
}
END_TEST

START_TEST(chacha_is_agreed_when_either_side_lacks_aes)
{
	for (unsigned i = 0; i < 3; i++) {
		struct both b = both();
		struct message m[3];
		struct link_keys initiator, responder;

		b.ragent.aead = i != 1 ? AEAD_CHACHA20_POLY1305 : AEAD_AES_256_GCM;
		b.agent.aead = i != 0 ? AEAD_CHACHA20_POLY1305 : AEAD_AES_256_GCM;
		both_begin(&b);
		run(&b, m);
		ck_assert_int_eq(opening_result(b.initiator, &initiator), 0);
		ck_assert_int_eq(opening_result(b.responder, &responder), 0);
		ck_assert_int_eq(initiator.aead, AEAD_CHACHA20_POLY1305);
		ck_assert_int_eq(responder.aead, AEAD_CHACHA20_POLY1305);
		both_end(&b);
	}
}
END_TEST

START_TEST(after_its_end_an_opening_does_nothing_more)
{
	struct both b = both(), refused = both();
	struct message m[3], none;
	struct link_keys keys;

	both_begin(&b);
	run(&b, m);
	ck_assert_int_eq(give(b.responder, &m[2], &none), CSSL_E_STATE);
	ck_assert_int_eq(opening_result(b.responder, &keys), 0);
	ck_assert_int_eq(opening_result(b.responder, &keys), CSSL_E_STATE);
	ck_assert_int_eq(give(b.responder, &m[2], &none), CSSL_E_STATE);
	both_end(&b);

	both_begin(&refused);
	m[0].bytes[10] ^= 1;
	ck_assert_int_eq(give(refused.responder, &m[0], &none), CSSL_E_AUTH);
	m[0].bytes[10] ^= 1;
	ck_assert_int_eq(give(refused.responder, &m[0], &none), CSSL_E_STATE);
	both_end(&refused);
	opening_destroy(NULL);
}
END_TEST

START_TEST(a_hello_of_ours_out_of_its_ranges_is_not_said)
{
	struct both b = both();
	struct message none;

	b.ragent.name[0] = '\0';
	both_begin(&b);
	ck_assert_int_eq(give(b.initiator, &nothing, &none), CSSL_E_RANGE);
	ck_assert_uint_eq(none.len, 0);
	both_end(&b);
}
END_TEST

UNIT(opening)
{
	const TTest *const facts[] = {
		both_sides_have_the_same_keys_crosswise_and_agree_on_all,
		each_opening_has_keys_of_its_own,
		each_side_learns_who_the_other_is,
		the_id_check_key_goes_from_an_answering_agent_to_ragent_only,
		nothing_but_the_key_id_stands_in_clear,
		bytes_may_come_one_by_one,
		bytes_behind_the_last_message_are_left_for_the_link,
		a_link_key_cannot_open_an_agent_link,
		any_key_of_both_rings_opens,
		an_unexpected_role_is_refused_by_either_side,
		sealed_and_trusted_do_not_open,
		the_worker_that_was_asked_for_answers,
		a_worker_that_does_not_exist_opens_nothing,
		both_trusted_opens_and_says_so,
		the_highest_common_version_is_agreed,
		without_a_common_version_nothing_opens,
		chacha_is_agreed_when_either_side_lacks_aes,
		after_its_end_an_opening_does_nothing_more,
		a_hello_of_ours_out_of_its_ranges_is_not_said,
	};

	return suite_run("opening", facts, SUITE_LEN(facts));
}
