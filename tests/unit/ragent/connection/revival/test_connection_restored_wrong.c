/* test_connection_restored_wrong.c: facts of numbers and bytes that a dead process has left and that cannot be: the
 * connection is reset and counted, and the one beside it in the same table goes on. test_connection_restored_places.c
 * has the addresses.
 */
#include <string.h>

#include "tests/unit/ragent/wrong.h"
#include "tests/unit/unit.h"

/* --- numbers --- */

START_TEST(an_owned_one_with_a_wrong_number_is_reset)
{
	static const struct wrong rows[] = {
		MEMBER(slot.front, 5),
		MEMBER(slot.front, UINT16_MAX),
		NOW(state, CONNECTION_CLOSING),
		NOW(state, CONNECTION_STATE_COUNT),
		NOW(state, UINT8_MAX),
		NOW(epoch, 0),
		NOW(owner, NO_AGENT),
		NOW(owner, AGENTS),
		NOW(owner, -2),
		NOW(handshake_agent, AGENTS),
		NOW(affinity_agent, AGENTS),
		NOW(move_target, AGENTS),
		NOW(account.stream.agent, AGENTS),
		NOW(account.stream.agent, NO_AGENT),
		NOW(tail, TAIL_VIOLATION),
		NOW(server_side, SERVER_SAID_LAST + 1),
		NOW(position.stage, POSITION_HANDSHAKE),
		NOW(position.stage, POSITION_LIVE + 1),
		NOW(position.response, POSITION_PARTLY_DELIVERED + 1),
		NOW(position.now.read_closed, 2),
		NOW(position.now.client_records, 1),
		NOW(position.now.client_records, 4),
		NOW(source, SOURCE_COUNTED + 1),
		NOW(end_reason, END_REASON_COUNT),
		MEMBER(endpoints.client.len, 5),
		MEMBER(endpoints.client.len, 17),
		MEMBER(endpoints.server.len, 5),
		IMAGE(exposure.fate, PEER_DEAD + 1),
		IMAGE(first_record, 3),
		IMAGE(first_record, 0),
		IMAGE(first_byte, 0),
		IMAGE(first_byte, 10000),
		IMAGE(first_byte, UINT64_MAX),
	};

	each_is_reset(make_owned, rows, FACTS_LEN(rows));
}
END_TEST

static void resumes_as_it_is(struct connection *c)
{
	left_by(c)->state = CONNECTION_REATTACHING;
	image_left_by(c)->resumes = CONNECTION_REATTACHING;
}

static void resumes_as_nothing(struct connection *c)
{
	left_by(c)->state = CONNECTION_REATTACHING;
	image_left_by(c)->resumes = UINT8_MAX;
}

START_TEST(one_amid_its_handshake_with_a_wrong_number_is_reset)
{
	static const struct wrong rows[] = {
		NOW(epoch, 0),
		NOW(position.stage, POSITION_LIVE),
		NOW(handshaking_at, AGENTS),
		NOW(account.stream.agent, -2),
		NOW(copies.current, 64),
		NOW(agreed, 64),
		NOW(state, CONNECTION_RELAYED),
		WRITTEN(resumes_as_it_is),
		WRITTEN(resumes_as_nothing),
	};

	each_is_reset(make_handshake, rows, FACTS_LEN(rows));
}
END_TEST

START_TEST(one_that_has_no_agent_yet_with_a_wrong_number_is_reset)
{
	static const struct wrong rows[] = {
		NOW(position.stage, POSITION_LIVE),
		NOW(position.server_records, 1),
		NOW(copies.current, 64),
		NOW(agreed, 64),
		NOW(queued, 1),
		NOW(tail, TAIL_VIOLATION),
	};

	each_is_reset(make_hello, rows, FACTS_LEN(rows));
}
END_TEST

START_TEST(one_at_rest_with_a_wrong_number_is_reset)
{
	static const struct wrong rows[] = {
		NOW(epoch, 0),
		NOW(position.stage, POSITION_HANDSHAKE),
		NOW(copies.current, 0),
		NOW(server_side, SERVER_FIN),
		NOW(queued, 0),
		NOW(state, CONNECTION_PREAMBLE),
		NOW(state, CONNECTION_REATTACHING),
		NOW(state, CONNECTION_HANDSHAKING),
		MEMBER(endpoints.client.len, 5),
	};

	each_is_reset(make_resting, rows, FACTS_LEN(rows));
}
END_TEST

START_TEST(one_at_its_adopter_with_a_wrong_number_is_reset)
{
	static const struct wrong rows[] = {
		NOW(epoch, 0),
		NOW(position.stage, POSITION_HANDSHAKE),
		NOW(copies.current, 0),
		NOW(account.stream.agent, INT16_MAX),
	};

	each_is_reset(make_adopting, rows, FACTS_LEN(rows));
}
END_TEST

/* --- bytes --- */

/* One that could be. */
static void a_copy(struct connection *c)
{
	left_by(c)->copies.current = (struct sealed_blob *)end_of_table(4096);
	left_by(c)->copies.current->len = 1;
}

static void owed_nothing(struct connection *c)
{
	trail_of(c)->owed.first = NULL;
}

static void owed_more_than_there_is(struct connection *c)
{
	atomic_fetch_add(&trail_of(c)->owed.end, 1);
}

static void owed_more_than_ever(struct connection *c)
{
	atomic_store(&trail_of(c)->owed.end, UINT64_MAX);
}

static void owed_at_another_place(struct connection *c)
{
	trail_of(c)->owed.first->base += 60000;
}

START_TEST(one_that_has_ended_with_a_wrong_number_is_reset)
{
	static const struct wrong rows[] = {
		WRITTEN(a_copy),
		NOW(queued, 0),
		WRITTEN(owed_nothing),
		WRITTEN(owed_more_than_there_is),
		WRITTEN(owed_more_than_ever),
		WRITTEN(owed_at_another_place),
	};

	each_is_reset(make_lingering, rows, FACTS_LEN(rows));
}
END_TEST

static struct byte_log *log_of(struct connection *c)
{
	return &trail_of(c)->log;
}

static uint8_t *record_of(struct connection *c)
{
	struct byte_log *log = log_of(c);

	return log->first->data + (image_left_by(c)->first_byte - log->first->base);
}

static void log_beyond_what_was_read(struct connection *c)
{
	atomic_fetch_add(&log_of(c)->end, 1);
}

static void log_without_blocks(struct connection *c)
{
	log_of(c)->first = NULL;
}

static void log_at_a_later_byte(struct connection *c)
{
	log_of(c)->first->base = image_left_by(c)->first_byte + 1;
}

static void log_whose_block_has_no_room(struct connection *c)
{
	log_of(c)->first->cap = 0;
}

static void bytes_that_no_buffer_has(struct connection *c)
{
	atomic_fetch_sub(&log_of(c)->end, 1);
}

static void record_that_is_none(struct connection *c)
{
	memset(record_of(c), 0xff, TLS_RECORD_HEADER_LEN);
}

static void consumed_record_that_is_none(struct connection *c)
{
	record_that_is_none(c);
	image_left_by(c)->first_record--;
}

static void consumed_record_that_has_no_end(struct connection *c)
{
	record_of(c)[4]++;
	image_left_by(c)->first_record--;
}

START_TEST(one_whose_bytes_are_not_there_is_reset)
{
	static const struct wrong rows[] = {
		WRITTEN(log_beyond_what_was_read),
		WRITTEN(log_without_blocks),
		WRITTEN(log_at_a_later_byte),
		WRITTEN(log_whose_block_has_no_room),
		WRITTEN(bytes_that_no_buffer_has),
		WRITTEN(record_that_is_none),
		WRITTEN(consumed_record_that_is_none),
		WRITTEN(consumed_record_that_has_no_end),
	};

	each_is_reset(make_owned, rows, FACTS_LEN(rows));
}
END_TEST

/* --- many bytes --- */

static uint8_t buffer[WORKER_READ_BUFFER_LEN];

static void use_upload(const struct live_connection *l)
{
	static uint8_t taken[RECORD_OF(8000)];
	const struct frame_consumed c = { .client_records = l->client_records, .read_sequence = l->client_records - 2 };

	fake_agent_take_data(d.agents[l->agent], l->stream, taken, sizeof taken);
	fake_agent_consumed(d.agents[l->agent], l->stream, &c, FRAME_CHECKPOINT);
	wait_until(connection_newest()->now.position.now.client_records == l->client_records);
}

/* The client has sent more than a read buffer has room for. Its owner has used all of it but the last record. */
static void make_upload(struct live_connection *l)
{
	connection_keep(l, "sf", 1);
	while (1) {
		client_send_record(l->fd, TLS_APPLICATION_DATA, 8000, 9);
		wait_until(fake_agent_data_len(d.agents[l->agent], l->stream) == RECORD_OF(8000));
		if (l->client_records * 8000 > sizeof buffer + 2 * 8000)
			break;
		l->client_records++;
		use_upload(l);
	}
}

/* The last byte is in no log. The read buffer has those that count from @used on. */
static void last_byte_in_the_buffer(struct connection *c, uint64_t used)
{
	d.shared.notes->outliving.read_buffers = buffer;
	atomic_fetch_sub(&log_of(c)->end, 1);
	c->slot.bytes_read = used;
}

static void used_more_than_was_logged(struct connection *c)
{
	last_byte_in_the_buffer(c, byte_log_end(&trail_of(c)->log));
}

static void used_less_than_a_buffer_has(struct connection *c)
{
	last_byte_in_the_buffer(c, 0);
}

static void used_so_little_that_the_buffer_is_full(struct connection *c)
{
	last_byte_in_the_buffer(c, byte_log_end(&trail_of(c)->log) - 1 - sizeof buffer);
}

static void read_more_than_a_buffer_has(struct connection *c)
{
	const uint64_t first = byte_log_end(log_of(c)) - sizeof buffer - 1;

	d.shared.notes->outliving.read_buffers = buffer;
	image_left_by(c)->first_byte = first;
	atomic_store(&log_of(c)->end, first);
}

START_TEST(one_whose_bytes_are_in_no_buffer_is_reset)
{
	static const struct wrong rows[] = {
		WRITTEN(used_more_than_was_logged),
		WRITTEN(used_less_than_a_buffer_has),
		WRITTEN(used_so_little_that_the_buffer_is_full),
		WRITTEN(read_more_than_a_buffer_has),
	};

	each_is_reset(make_upload, rows, FACTS_LEN(rows));
}
END_TEST

UNIT(connection_restored_wrong)
{
	const TTest *const facts[] = {
		an_owned_one_with_a_wrong_number_is_reset,
		one_amid_its_handshake_with_a_wrong_number_is_reset,
		one_that_has_no_agent_yet_with_a_wrong_number_is_reset,
		one_at_rest_with_a_wrong_number_is_reset,
		one_at_its_adopter_with_a_wrong_number_is_reset,
		one_that_has_ended_with_a_wrong_number_is_reset,
		one_whose_bytes_are_not_there_is_reset,
		one_whose_bytes_are_in_no_buffer_is_reset,
	};

	return dispatcher_suite_run("connection_restored_wrong", facts, FACTS_LEN(facts));
}
