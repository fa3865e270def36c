/* test_connection_replay.c: facts of a request, or an answer, whose agent is lost: what its successor gets. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/link/link_internal.h"
#include "tests/unit/ragent/lost_owner.h"
#include "tests/unit/unit.h"

START_TEST(a_request_without_an_answer_is_replayed_from_the_checkpoint)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_TAKEOVER);
	ck_assert_uint_eq(id->epoch, 3);
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_uint_eq(id->position->read_sequence, 0);
	ck_assert_uint_eq(id->exposed_records, 3);
	ck_assert_int_eq(id->fate, CSSL__FATE__FATE_UNKNOWN); /* fake agents are this process */
	forget(id);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	adopted_say(&l, 3);
	consumed(3, 0, 0); /* once more */
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_adopted), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_request_that_nobody_reported_is_exposed_all_the_same)
{
	begin_owned();
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_uint_eq(id->exposed_records, 3);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_process_known_dead_is_said_to_be)
{
	begin_owned();
	request(60);
	call_dead(l.agent);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->fate, CSSL__FATE__FATE_DEAD);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(an_agent_that_died_together_with_the_owner_is_no_successor)
{
	begin_owned();
	int other = (l.agent + 1) % AGENTS, third = (l.agent + 2) % AGENTS;
	request(60);
	call_dead(l.agent);
	call_dead(other);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(l.agent, third);
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	forget(id);
	wait_until(!fake_agent_linked(d.agents[other]) || fake_agent_links(d.agents[other]) == 2);
	close(l.fd);
}
END_TEST

START_TEST(an_answer_that_began_goes_on_with_what_its_owner_left_for_that)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	leave_download("sealed");
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	server_send(&l, TLS_APPLICATION_DATA, 200, 7, FRAME_RESPONSE_BYTES);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED);
	ck_assert_uint_eq(id->response_records, 2);
	ck_assert_uint_eq(id->response_bytes, RECORD_OF(100) + RECORD_OF(200));
	ck_assert_uint_eq(id->sealed_download.len, 6);
	ck_assert_mem_eq(id->sealed_download.data, "sealed", 6);
	ck_assert_uint_eq(id->position->client_records, 2);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_download_that_is_lost_twice_counts_the_bytes_of_both_owners)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	leave_download("sealed");
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	forget(lose_owner());
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 300, 8, FRAME_RESPONSE_BYTES);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED);
	ck_assert_uint_eq(id->response_records, 2);
	ck_assert_uint_eq(id->response_bytes, RECORD_OF(100) + RECORD_OF(300));
	ck_assert_uint_eq(id->sealed_download.len, 6);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_note_for_an_answer_goes_with_it)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	leave_download("sealed");
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	ck_assert_ptr_null(connection_only()->busy->note.current);
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_uint_eq(id->sealed_download.len, 0);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_blob_of_unheard_of_size_ends_the_link)
{
	static char blob[COPY_MAX_LEN + 2];

	begin_owned();
	memset(blob, 'x', sizeof blob - 1);
	leave_download(blob);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(l.fd);
}
END_TEST

START_TEST(half_an_answer_that_cannot_go_on_is_adopted_for_its_alert)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED);
	ck_assert_uint_eq(id->sealed_download.len, 0);
	forget(id);
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 19, 1, 0);
	fake_agent_end(d.agents[l.agent], l.stream, END_AGENT_LOST, 0);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(half_an_answer_ends_with_a_reset_and_never_a_fin_while_no_agent_is_up)
{
	begin_owned();
	for (int i = 0; i < AGENTS; i++)
		if (i != l.agent)
			fake_agent_die(d.agents[i]);
	wait_until(agents_up() == 1);
	request(60);
	consumed(3, 0, 0);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_ended), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_request_without_an_answer_waits_for_an_agent_to_come_up)
{
	begin_owned();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	request(60);
	consumed(3, 0, 0);
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	no_frame(FRAME_SSL_ID);
	fake_agent_ready(d.agents[l.agent], 1);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1); /* the same agent, on another link */
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_request_longer_than_what_is_kept_is_not_replayable)
{
	const struct dispatcher_wish wish = { .limits = "  replay: 1KiB\n" };

	begin_owned_with(&wish);
	request(900);
	consumed(3, 0, 0);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), RECORD_OF(900));
	request(900);
	consumed(4, 0, 0);
	ck_assert_ptr_null(connection_only()->busy->kept.data);
	request(70);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE);
	ck_assert_uint_eq(id->position->client_records, 4);
	ck_assert_uint_eq(id->position->read_sequence, 2);
	ck_assert_uint_eq(id->exposed_records, 5);
	forget(id);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(70));
	close(l.fd);
}
END_TEST

START_TEST(a_request_across_a_key_update_is_not_replayable)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	request(22);
	consumed(4, 1, 0);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE);
	ck_assert_uint_eq(id->position->client_records, 4);
	ck_assert_uint_eq(id->position->read_generation, 1);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(more_than_a_window_is_never_kept)
{
	begin_owned(); /* the window is 64 KiB, and so is what may be kept */
	for (unsigned i = 0; i < 3; i++)
		request(16000);
	consumed(5, 0, 0);
	request(16000);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), 3 * RECORD_OF(16000));
	request(16000);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), 0);
	ck_assert_uint_eq(kept_len(&connection_only()->busy->kept), 2 * RECORD_OF(16000));
	ck_assert_uint_le(connection_only()->busy->kept.cap, 2 * 64 * 1024);
	close(l.fd);
}
END_TEST

START_TEST(what_is_sent_again_takes_the_room_of_what_comes)
{
	begin_owned();
	for (uint64_t i = 0; i < 4; i++) {
		request(16000);
		consumed(3 + i, 0, 0);
	}
	ck_assert_int_eq(connection_only()->now.reading, CLIENT_READING);
	forget(lose_owner());
	ck_assert_int_eq(connection_only()->now.reading, CLIENT_PAUSED);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == 4 * RECORD_OF(16000));
	adopted_say(&l, 3);
	consumed(6, 0, 0);
	ck_assert_int_eq(connection_only()->now.reading, CLIENT_READING);
	close(l.fd);
}
END_TEST

START_TEST(a_request_that_meets_two_losses_is_named_poison_and_a_third_ends_it)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	forget(id);
	adopted_say(&l, 3);
	id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_POISONED);
	forget(id);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_poisoned), 1);
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(agents_that_die_before_they_adopt_prove_nothing)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	forget(lose_owner());
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_poisoned), 0);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(behind_close_notify_a_lost_owner_leaves_a_fin)
{
	begin_owned();
	server_send(&l, TLS_APPLICATION_DATA, 19, 7, FRAME_LAST_RECORD);
	fake_agent_die(d.agents[l.agent]);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_DONE]), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_answer_between_two_losses_makes_them_no_poison)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	forget(lose_owner());
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_poisoned), 0);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_move_goes_on_where_it_stood_and_its_loss_goes_back_to_the_checkpoint)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	l.client_records = 3;
	l.write_sequence = 0;
	/* an owner that drains passes its backend */
	live_say(&l, FRAME_HANDED_OFF, 0, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_uint_eq(id->position->client_records, 3);
	ck_assert_int_eq(id->backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
	forget(id);
	adopted_say(&l, 3);
	id = lose_owner();
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_int_eq(id->backend, CSSL__BACKEND_HALF__BACKEND_NONE);
	ck_assert_uint_eq(id->exposed_records, 3);
	forget(id);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	close(l.fd);
}
END_TEST

UNIT(connection_replay)
{
	const TTest *const facts[] = {
		a_request_without_an_answer_is_replayed_from_the_checkpoint,
		a_request_that_nobody_reported_is_exposed_all_the_same,
		a_process_known_dead_is_said_to_be,
		an_agent_that_died_together_with_the_owner_is_no_successor,
		an_answer_that_began_goes_on_with_what_its_owner_left_for_that,
		a_download_that_is_lost_twice_counts_the_bytes_of_both_owners,
		a_note_for_an_answer_goes_with_it,
		a_blob_of_unheard_of_size_ends_the_link,
		half_an_answer_that_cannot_go_on_is_adopted_for_its_alert,
		half_an_answer_ends_with_a_reset_and_never_a_fin_while_no_agent_is_up,
		a_request_without_an_answer_waits_for_an_agent_to_come_up,
		a_request_longer_than_what_is_kept_is_not_replayable,
		a_request_across_a_key_update_is_not_replayable,
		more_than_a_window_is_never_kept,
		what_is_sent_again_takes_the_room_of_what_comes,
		a_request_that_meets_two_losses_is_named_poison_and_a_third_ends_it,
		agents_that_die_before_they_adopt_prove_nothing,
		behind_close_notify_a_lost_owner_leaves_a_fin,
		an_answer_between_two_losses_makes_them_no_poison,
		a_move_goes_on_where_it_stood_and_its_loss_goes_back_to_the_checkpoint,
	};

	return dispatcher_suite_run("connection_replay", facts, sizeof facts / sizeof facts[0]);
}
