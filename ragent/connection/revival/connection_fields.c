/* connection_fields.c: tables of the members of a connection that go to another process as numbers. Members of other
 * kinds have tags (connection_fields.h). tests/house checks that every member of struct connection is in one of the
 * two, or in the list of members that are made anew below. Times are those of the monotonic clock, which both
 * processes share.
 */
#include "ragent/connection/revival/connection_fields.h"

#include "ragent/connection/connection_preamble.h"

/* Made anew, and why: home, next, prev (another worker's list); busy, connection (it is not compact at first);
 * compact_due, deadline (armed by the state), waiter, partial (set again when records are sent and read); place,
 * holding (counted again); later, fin (waiting messages are sent at once); discard_began_ms (that time begins
 * again); order (its sender was told that the connection left); slot (the kernel tells its numbers); owed_end (all
 * output counts as owed); asked_ms, told (the agent is told again); kept.unit (by the state); again, resumes, asked,
 * log_again_ms, pace, unused (the stream gives these bytes again), account.frames_saved, account.stream,
 * note.former (of this process only). */

#define ROW(tag, kind, member, max) FIELD_OF(struct connection, tag, kind, member, max)
#define NOW(tag, kind, member, max) ROW(tag, kind, now.member, max)

const struct field connection_rows[] = {
	ROW(1, FIELD_BYTES, id.bytes, 0),
	ROW(2, FIELD_BYTES, endpoints.client.bytes, 0),
	ROW(3, FIELD_UINT, endpoints.client.len, 16),
	ROW(4, FIELD_BYTES, endpoints.server.bytes, 0),
	ROW(5, FIELD_UINT, endpoints.server.len, 16),
	ROW(6, FIELD_UINT, endpoints.client_port, FIELD_ANY),
	ROW(7, FIELD_UINT, endpoints.server_port, FIELD_ANY),
	NOW(8, FIELD_UINT, position.now.client_records, FIELD_ANY),
	NOW(9, FIELD_UINT, position.now.read_sequence, FIELD_ANY),
	NOW(10, FIELD_UINT, position.now.read_generation, FIELD_ANY),
	NOW(11, FIELD_UINT, position.now.offset, FIELD_ANY),
	NOW(12, FIELD_UINT, position.server_records, FIELD_ANY),
	NOW(13, FIELD_UINT, position.write_sequence, FIELD_ANY),
	NOW(14, FIELD_UINT, position.write_generation, FIELD_ANY),
	NOW(15, FIELD_UINT, position.stage, POSITION_LIVE),
	NOW(16, FIELD_UINT, position.response, POSITION_PARTLY_DELIVERED),
	NOW(17, FIELD_UINT, position.response_records, FIELD_ANY),
	NOW(18, FIELD_UINT, position.response_bytes, FIELD_ANY),
	NOW(24, FIELD_UINT, account.base, FIELD_ANY),
	NOW(25, FIELD_UINT, account.received, FIELD_ANY),
	NOW(26, FIELD_UINT, account.told, FIELD_ANY),
	NOW(77, FIELD_UINT, account.frames_told, FIELD_ANY),
	NOW(78, FIELD_UINT, account.frames, FIELD_ANY),
	NOW(27, FIELD_UINT, queued, FIELD_ANY),
	NOW(28, FIELD_UINT, client_bytes, FIELD_ANY),
	NOW(29, FIELD_UINT, client_types[0], FIELD_ANY),
	NOW(30, FIELD_UINT, client_types[1], FIELD_ANY),
	NOW(31, FIELD_UINT, client_types[2], FIELD_ANY),
	NOW(32, FIELD_UINT, client_types[3], FIELD_ANY),
	NOW(33, FIELD_UINT, server_types[0], FIELD_ANY),
	NOW(34, FIELD_UINT, server_types[1], FIELD_ANY),
	NOW(35, FIELD_UINT, server_types[2], FIELD_ANY),
	NOW(36, FIELD_UINT, server_types[3], FIELD_ANY),
	NOW(37, FIELD_UINT, accepted_ms, FIELD_ANY),
	NOW(38, FIELD_UINT, active_ms, FIELD_ANY),
	NOW(40, FIELD_UINT, copied_ms, FIELD_ANY),
	NOW(41, FIELD_UINT, moves, FIELD_ANY),
	NOW(42, FIELD_UINT, discarded, FIELD_ANY),
	NOW(43, FIELD_UINT, epoch, FIELD_ANY),
	NOW(44, FIELD_INT, handshake_agent, 0),
	NOW(45, FIELD_INT, owner, 0),
	NOW(46, FIELD_INT, affinity_agent, 0),
	NOW(47, FIELD_INT, handshaking_at, 0),
	NOW(48, FIELD_INT, move_target, 0),
	NOW(49, FIELD_UINT, state, CONNECTION_STATE_COUNT - 1), /* every state except CLOSING */
	NOW(50, FIELD_UINT, tail, TAIL_VIOLATION),
	NOW(51, FIELD_UINT, tail_told, TAIL_TOLD),
	NOW(52, FIELD_UINT, server_side, SERVER_SAID_LAST),
	NOW(53, FIELD_UINT, position.now.read_closed, 1),
	NOW(54, FIELD_UINT, reading, CLIENT_PAUSED),
	NOW(55, FIELD_UINT, attempts, FIELD_ANY),
	NOW(56, FIELD_UINT, restarts, FIELD_ANY),
	NOW(57, FIELD_UINT, cause, CSSL__CAUSE__CAUSE_REST),
	NOW(58, FIELD_UINT, backend, FIELD_ANY),
	NOW(59, FIELD_UINT, hello, FIELD_ANY),
	NOW(60, FIELD_UINT, source, SOURCE_COUNTED),
	NOW(61, FIELD_UINT, end_reason, END_REASON_COUNT - 1),
	NOW(63, FIELD_UINT, position.checkpoint.client_records, FIELD_ANY),
	NOW(64, FIELD_UINT, position.checkpoint.read_sequence, FIELD_ANY),
	NOW(65, FIELD_UINT, position.checkpoint.read_generation, FIELD_ANY),
	NOW(66, FIELD_UINT, position.checkpoint.offset, FIELD_ANY),
	NOW(67, FIELD_UINT, position.checkpoint.read_closed, 1),
};
const size_t connection_row_count = sizeof connection_rows / sizeof connection_rows[0];

#define BUSY(tag, kind, member, max) FIELD_OF(struct busy_part, tag, kind, member, max)

/* These tags are in the same number range as those above. */
const struct field busy_rows[] = {
	BUSY(19, FIELD_UINT, kept.first_record, FIELD_ANY),
	BUSY(20, FIELD_UINT, kept.next_record, FIELD_ANY),
	BUSY(21, FIELD_UINT, bad.type, FIELD_ANY),
	BUSY(22, FIELD_UINT, bad.version, FIELD_ANY),
	BUSY(23, FIELD_UINT, bad.length, FIELD_ANY),
	BUSY(39, FIELD_UINT, move_began_ns, FIELD_ANY),
	BUSY(62, FIELD_UINT, kept.consumed_record, FIELD_ANY),
	BUSY(68, FIELD_UINT, exposure.records, FIELD_ANY),
	BUSY(69, FIELD_UINT, exposure.fate, PEER_DEAD),
	BUSY(70, FIELD_UINT, exposure.losses, FIELD_ANY),
	BUSY(71, FIELD_UINT, pause_began_ms, FIELD_ANY),
	BUSY(72, FIELD_UINT, wait_began_ms, FIELD_ANY),
	BUSY(73, FIELD_UINT, move_limit_ms, FIELD_ANY),
	BUSY(74, FIELD_UINT, move_answer, MOVE_ANSWER_OVERDUE),
	BUSY(75, FIELD_UINT, exposure.silent, FIELD_ANY),
	BUSY(76, FIELD_UINT, orders, FIELD_ANY),
};
const size_t busy_row_count = sizeof busy_rows / sizeof busy_rows[0];

#define AGREED(tag, kind, member, max) FIELD_OF(struct agreed, tag, kind, member, max)

const struct field agreed_rows[] = {
	AGREED(1, FIELD_UINT, protocol_version, FIELD_ANY),
	AGREED(2, FIELD_UINT, cipher_suite, FIELD_ANY),
	AGREED(3, FIELD_UINT, resumed, 1),
	AGREED(4, FIELD_UINT, session_id_len, SESSION_ID_LEN),
	AGREED(5, FIELD_BYTES, session_id, 0),
	AGREED(6, FIELD_BYTES, family_id, 0),
	AGREED(7, FIELD_BYTES, ja4, 0),
};
const size_t agreed_row_count = sizeof agreed_rows / sizeof agreed_rows[0];

#define PREAMBLE(tag, kind, member, max) FIELD_OF(struct preamble, tag, kind, now.member, max)

/* Within TAG_PREAMBLE. Its place is counted again. */
const struct field preamble_rows[] = {
	PREAMBLE(1, FIELD_UINT, wait_began_ms, FIELD_ANY),
	PREAMBLE(2, FIELD_UINT, hello_ms, FIELD_ANY),
	PREAMBLE(3, FIELD_UINT, said, PREAMBLE_PART_OF_REPLY),
	PREAMBLE(4, FIELD_UINT, finishing, PREAMBLE_FINISHING),
};
const size_t preamble_row_count = sizeof preamble_rows / sizeof preamble_rows[0];
