/* test_position.c: facts of the authority on sequence numbers. */
#include "proto/error.h"
#include "ragent/connection/ownership/position.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct position p;

/* An owner's message, and what can be in it. */
static int claim(const Cssl__Position *said, int read_closed, int at_checkpoint)
{
	Cssl__LinkLive live = CSSL__LINK_LIVE__INIT;
	Cssl__Position copy = CSSL__POSITION__INIT;

	if (!said)
		return position_claim(&p, &live);
	copy.client_records = said->client_records;
	copy.read_sequence = said->read_sequence;
	copy.read_generation = said->read_generation;
	copy.offset = said->offset;
	copy.server_records = said->server_records;
	copy.write_sequence = said->write_sequence;
	copy.write_generation = said->write_generation;
	live.position = &copy;
	live.read_closed = read_closed;
	live.at_checkpoint = at_checkpoint;
	return position_claim(&p, &live);
}

static int claim_numbers(const Cssl__Position *said)
{
	return claim(said, 0, 0);
}

static void begin(void)
{
	position_init(&p);
}

/* The handshake ended: 5 records out, 3 in; the next to be sealed is number 2. */
static void begin_live(void)
{
	begin();
	ck_assert_int_eq(position_commit(&p, 0, 5, 500), 0);
	ck_assert_int_eq(
		claim_numbers(&(Cssl__Position){ .client_records = 3, .server_records = 5, .write_sequence = 2 }), 0);
}

static int consume(uint64_t records, uint32_t offset, uint32_t generation, uint64_t sequence, uint8_t flags)
{
	const struct frame_consumed c = {
		.client_records = records, .offset = offset, .read_generation = generation, .read_sequence = sequence
	};

	return position_consume(&p, &c, flags);
}

START_TEST(write_sequence_is_the_start_value_plus_what_was_committed)
{
	begin_live();
	ck_assert_int_eq(position_commit(&p, 0, 3, 300), 0);
	ck_assert_int_eq(position_commit(&p, FRAME_RESPONSE_BYTES, 1, 100), 0);
	ck_assert_uint_eq(p.write_sequence, 6);
	ck_assert_uint_eq(p.server_records, 9);
}
END_TEST

START_TEST(records_of_the_handshake_do_not_count_for_the_write_sequence)
{
	begin();
	ck_assert_int_eq(position_commit(&p, 0, 4, 400), 0);
	ck_assert_uint_eq(p.write_sequence, 0);
	ck_assert_uint_eq(p.server_records, 4);
}
END_TEST

START_TEST(a_key_update_ends_the_write_generation)
{
	begin_live();
	ck_assert_int_eq(position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 1, 27), 0);
	ck_assert_uint_eq(p.write_generation, 1);
	ck_assert_uint_eq(p.write_sequence, 0);
	ck_assert_int_eq(position_commit(&p, 0, 2, 200), 0);
	ck_assert_uint_eq(p.write_sequence, 2);
}
END_TEST

START_TEST(a_key_update_frame_holds_one_record_and_comes_after_the_handshake)
{
	begin();
	ck_assert_int_eq(position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 1, 27), CSSL_E_RANGE);
	begin_live();
	ck_assert_int_eq(position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 2, 54), CSSL_E_RANGE);
	ck_assert_uint_eq(p.write_generation, 0);
	ck_assert_uint_eq(p.server_records, 5);
}
END_TEST

START_TEST(sequences_end_before_2_to_the_48)
{
	begin();
	ck_assert_int_eq(claim_numbers(&(Cssl__Position){ .write_sequence = (UINT64_C(1) << 48) - 1 }), 0);
	ck_assert_int_eq(position_commit(&p, 0, 1, 100), 0);
	ck_assert_int_eq(position_commit(&p, 0, 1, 100), CSSL_E_RANGE);
}
END_TEST

START_TEST(consumed_never_goes_backward)
{
	begin_live();
	ck_assert_int_eq(consume(5, 10, 1, 4, 0), 0);
	ck_assert_int_eq(consume(4, 99, 1, 5, 0), CSSL_E_RANGE);
	ck_assert_int_eq(consume(5, 9, 1, 4, 0), CSSL_E_RANGE);
	ck_assert_int_eq(consume(6, 0, 0, 9, 0), CSSL_E_RANGE);
	ck_assert_int_eq(consume(6, 0, 1, 3, 0), CSSL_E_RANGE);
	ck_assert_uint_eq(p.now.client_records, 5);
	ck_assert_int_eq(consume(6, 0, 1, 5, 0), 0);
	ck_assert_int_eq(consume(7, 0, 2, 0, 0), 0);
}
END_TEST

START_TEST(an_owner_that_disagrees_about_committed_records_is_refused)
{
	begin_live();
	position_commit(&p, 0, 3, 300);
	const Cssl__Position right = { .client_records = 4, .server_records = 8, .write_sequence = 5 };
	Cssl__Position fewer = right, ahead = right, generation = right, backward = right, far = right;
	fewer.server_records = 7;
	ahead.write_sequence = 6;
	generation.write_generation = 1;
	backward.client_records = 2;
	far.offset = UINT16_MAX + 1;
	ck_assert_int_eq(claim(NULL, 0, 0), CSSL_E_TRUNCATED);
	ck_assert_int_eq(claim_numbers(&fewer), CSSL_E_MISMATCH);
	ck_assert_int_eq(claim_numbers(&ahead), CSSL_E_MISMATCH);
	ck_assert_int_eq(claim_numbers(&generation), CSSL_E_MISMATCH);
	ck_assert_int_eq(claim_numbers(&backward), CSSL_E_MISMATCH);
	ck_assert_int_eq(claim_numbers(&far), CSSL_E_MISMATCH);
	ck_assert_uint_eq(p.now.client_records, 3);
	ck_assert_int_eq(claim_numbers(&right), 0);
	ck_assert_uint_eq(p.now.client_records, 4);
}
END_TEST

START_TEST(response_bytes_leave_the_checkpoint_and_are_counted_until_the_next)
{
	begin_live();
	position_commit(&p, FRAME_CHECKPOINT, 1, 100);
	ck_assert_int_eq(p.response, POSITION_AT_CHECKPOINT);
	position_commit(&p, FRAME_RESPONSE_BYTES, 2, 200);
	position_commit(&p, FRAME_RESPONSE_BYTES, 1, 70);
	ck_assert_int_eq(p.response, POSITION_PARTLY_DELIVERED);
	ck_assert_uint_eq(p.response_records, 3);
	ck_assert_uint_eq(p.response_bytes, 270);
	position_commit(&p, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT, 1, 30);
	ck_assert_int_eq(p.response, POSITION_AT_CHECKPOINT);
	ck_assert_uint_eq(p.response_records, 0);
	ck_assert_uint_eq(p.response_bytes, 0);
}
END_TEST

START_TEST(a_ticket_or_a_repeated_consumed_does_not_leave_the_checkpoint)
{
	begin_live();
	ck_assert_int_eq(consume(4, 0, 0, 1, FRAME_CHECKPOINT), 0);
	position_commit(&p, 0, 1, 300);
	ck_assert_int_eq(consume(4, 0, 0, 1, 0), 0);
	ck_assert_int_eq(p.response, POSITION_AT_CHECKPOINT);
	ck_assert_int_eq(consume(5, 0, 0, 2, 0), 0);
	ck_assert_int_eq(p.response, POSITION_NOTHING_DELIVERED);
}
END_TEST

START_TEST(a_successor_begins_at_the_checkpoint_when_its_records_are_kept)
{
	begin_live();
	ck_assert_int_eq(consume(4, 20, 0, 1, FRAME_CHECKPOINT), 0);
	ck_assert_int_eq(consume(9, 0, 0, 6, 0), 0);
	ck_assert(position_replays_from(&p, 4));
	ck_assert(!position_replays_from(&p, 5));
	position_return(&p);
	ck_assert_uint_eq(p.now.client_records, 4);
	ck_assert_uint_eq(p.now.offset, 20);
	ck_assert_uint_eq(p.now.read_sequence, 1);
	ck_assert_int_eq(p.response, POSITION_NOTHING_DELIVERED);
	ck_assert_int_eq(consume(5, 0, 0, 2, 0), 0); /* the successor consumes them again */
}
END_TEST

START_TEST(the_last_record_of_an_answer_makes_a_checkpoint_of_all_that_is_consumed)
{
	begin_live();
	ck_assert_int_eq(consume(7, 0, 0, 4, 0), 0);
	ck_assert_uint_eq(p.checkpoint.client_records, 3);
	position_commit(&p, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT, 1, 30);
	ck_assert_uint_eq(p.checkpoint.client_records, 7);
	ck_assert_uint_eq(p.checkpoint.read_sequence, 4);
}
END_TEST

START_TEST(nothing_is_replayed_across_a_key_update_of_the_client)
{
	begin_live();
	ck_assert_int_eq(consume(4, 0, 0, 1, FRAME_CHECKPOINT), 0);
	ck_assert_int_eq(consume(6, 0, 1, 0, 0), 0);
	ck_assert(!position_replays_from(&p, 4));
	ck_assert_int_eq(consume(7, 0, 1, 1, FRAME_CHECKPOINT), 0);
	ck_assert(position_replays_from(&p, 7));
}
END_TEST

START_TEST(the_end_of_the_handshake_is_the_earliest_place_to_begin_at)
{
	begin_live();
	ck_assert_uint_eq(p.checkpoint.client_records, 3);
	ck_assert(!position_replays_from(&p, 0));
}
END_TEST

START_TEST(an_end_of_the_client_behind_the_checkpoint_is_open_again_after_a_replay)
{
	begin_live();
	ck_assert_int_eq(consume(4, 0, 0, 1, FRAME_CHECKPOINT), 0);
	const Cssl__Position moved = {
		.client_records = 6, .read_sequence = 3, .server_records = 5, .write_sequence = 2
	};
	ck_assert_int_eq(claim(&moved, 1, 0), 0);
	ck_assert_uint_eq(p.now.read_closed, 1);
	position_return(&p);
	ck_assert_uint_eq(p.now.read_closed, 0);
}
END_TEST

START_TEST(an_owner_claims_what_its_message_says)
{
	begin();
	ck_assert_int_eq(position_commit(&p, 0, 5, 500), 0);
	ck_assert_int_eq(claim(&(Cssl__Position){ .client_records = 1,
				       .offset = 2,
				       .read_generation = 3,
				       .read_sequence = 4,
				       .server_records = 5,
				       .write_generation = 6,
				       .write_sequence = 7 },
				 1, 1),
		0);
	ck_assert_uint_eq(p.now.client_records, 1);
	ck_assert_uint_eq(p.now.offset, 2);
	ck_assert_uint_eq(p.now.read_generation, 3);
	ck_assert_uint_eq(p.now.read_sequence, 4);
	ck_assert_uint_eq(p.write_generation, 6);
	ck_assert_uint_eq(p.write_sequence, 7);
	ck_assert_uint_eq(p.now.read_closed, 1);
	ck_assert_uint_eq(p.response, POSITION_AT_CHECKPOINT);
}
END_TEST

START_TEST(generations_are_reached_when_both_are)
{
	begin_live();
	ck_assert(position_reached(&p, 0, 0));
	ck_assert(!position_reached(&p, 1, 0));
	consume(4, 0, 1, 0, 0);
	ck_assert(position_reached(&p, 1, 0));
	ck_assert(!position_reached(&p, 1, 1));
	position_commit(&p, FRAME_LAST_OF_WRITE_GENERATION, 1, 27);
	ck_assert(position_reached(&p, 1, 1));
}
END_TEST

UNIT(position)
{
	const TTest *const facts[] = {
		write_sequence_is_the_start_value_plus_what_was_committed,
		records_of_the_handshake_do_not_count_for_the_write_sequence,
		a_key_update_ends_the_write_generation,
		a_key_update_frame_holds_one_record_and_comes_after_the_handshake,
		sequences_end_before_2_to_the_48,
		consumed_never_goes_backward,
		an_owner_that_disagrees_about_committed_records_is_refused,
		response_bytes_leave_the_checkpoint_and_are_counted_until_the_next,
		a_ticket_or_a_repeated_consumed_does_not_leave_the_checkpoint,
		a_successor_begins_at_the_checkpoint_when_its_records_are_kept,
		the_last_record_of_an_answer_makes_a_checkpoint_of_all_that_is_consumed,
		nothing_is_replayed_across_a_key_update_of_the_client,
		the_end_of_the_handshake_is_the_earliest_place_to_begin_at,
		an_end_of_the_client_behind_the_checkpoint_is_open_again_after_a_replay,
		an_owner_claims_what_its_message_says,
		generations_are_reached_when_both_are,
	};

	return suite_run("position", facts, SUITE_LEN(facts));
}
