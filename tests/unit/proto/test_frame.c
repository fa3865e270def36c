/* test_frame.c: facts of the frames on a link. */
#include <string.h>

#include "proto/error.h"
#include "proto/frame.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static uint8_t input[FRAME_HEADER_LEN + UINT16_MAX];

/* A frame with that header and a payload of the length in it. */
static int parse(uint32_t stream, uint8_t type, uint8_t flags, uint16_t len, struct frame *out)
{
	frame_header_write(input, stream, type, flags, len);
	return frame_parse(input, FRAME_HEADER_LEN + len, out);
}

/* The rules in the header's documentation for each type, written down a second time. */
static const struct {
	uint8_t type;
	const char *name;
	uint32_t stream;
	uint8_t flags;
	uint16_t len; /* one that it may have */
} types[] = {
	{ FRAME_DATA, "DATA", 1,
		FRAME_CHECKPOINT | FRAME_RESPONSE_BYTES | FRAME_LAST_OF_WRITE_GENERATION | FRAME_LAST_RECORD |
			FRAME_RECORDS_FOLLOW | FRAME_PLAINTEXT,
		6 },
	{ FRAME_FIN, "FIN", 1, FRAME_AUTHENTICATED, 0 },
	{ FRAME_PING, "PING", 0, 0, 8 },
	{ FRAME_PONG, "PONG", 0, 0, 8 },
	{ FRAME_OPEN, "OPEN", 1, 0, 50 },
	{ FRAME_SSL_ID, "SSL_ID", 1, 0, 50 },
	{ FRAME_ACCEPTED, "ACCEPTED", 1, 0, FRAME_ACCEPTED_LEN },
	{ FRAME_CLOSE, "CLOSE", 1, 0, 1 },
	{ FRAME_DETACH, "DETACH", 1, 0, 0 },
	{ FRAME_VIOLATION, "VIOLATION", 1, 0, FRAME_VIOLATION_LEN },
	{ FRAME_MOVE, "MOVE", 1, 0, 50 },
	{ FRAME_REQUEST, "REQUEST", 0, 0, 50 },
	{ FRAME_KEPT, "KEPT", 1, 0, 50 },
	{ FRAME_HANDED_OFF, "HANDED_OFF", 1, 0, 50 },
	{ FRAME_ADOPTED, "ADOPTED", 1, 0, 50 },
	{ FRAME_REFUSED, "REFUSED", 1, 0, 50 },
	{ FRAME_CONSUMED, "CONSUMED", 1, FRAME_CHECKPOINT | FRAME_CLIENT_WAITS, FRAME_CONSUMED_LEN },
	{ FRAME_COPY, "COPY", 1, 0, 50 },
	{ FRAME_END, "END", 1, FRAME_ABORT, 1 },
	{ FRAME_RESPONSE, "RESPONSE", 0, 0, 50 },
	{ FRAME_LOAD, "LOAD", 0, 0, 50 },
	{ FRAME_LEAVING, "LEAVING", 0, 0, 0 },
	{ FRAME_DOWNLOAD, "DOWNLOAD", 1, 0, 50 },
	{ FRAME_FINISH, "FINISH", 1, 0, 1 },
	{ FRAME_PREAMBLE, "PREAMBLE", 1, 0, 50 },
	{ FRAME_TAKEN, "TAKEN", 1, 0, 8 },
	{ FRAME_RELAYED, "RELAYED", 1, 0, 0 },
	{ FRAME_PROOF, "PROOF", 0, 0, FRAME_PROOF_LEN },
	{ FRAME_REATTACH, "REATTACH", 1, 0, FRAME_REATTACH_LEN },
	{ FRAME_REATTACHED, "REATTACHED", 1, 0, FRAME_REATTACHED_LEN },
};

START_TEST(a_header_is_eight_bytes_big_endian)
{
	uint8_t out[FRAME_HEADER_LEN];
	frame_header_write(out, 0x01020304, FRAME_DATA, FRAME_CHECKPOINT | FRAME_RESPONSE_BYTES, 0x0506);
	ck_assert_mem_eq(out, "\1\2\3\4\1\3\5\6", 8);
}
END_TEST

START_TEST(a_written_frame_parses)
{
	struct frame f;
	ck_assert_int_eq(parse(0xfffffffe, FRAME_DATA, FRAME_RESPONSE_BYTES, 1000, &f), 0);
	ck_assert_uint_eq(f.stream, 0xfffffffe);
	ck_assert_uint_eq(f.type, FRAME_DATA);
	ck_assert_uint_eq(f.flags, FRAME_RESPONSE_BYTES);
	ck_assert_uint_eq(f.len, 1000);
	ck_assert_ptr_eq(f.payload, input + FRAME_HEADER_LEN);
}
END_TEST

START_TEST(every_type_parses_with_its_name_and_every_flag_it_has)
{
	struct frame f;
	for (size_t i = 0; i < SUITE_LEN(types); i++) {
		ck_assert_int_eq(parse(types[i].stream, types[i].type, types[i].flags, types[i].len, &f), 0);
		ck_assert_str_eq(frame_type_name(types[i].type), types[i].name);
	}
}
END_TEST

START_TEST(an_unknown_type_ends_the_link)
{
	struct frame f;
	unsigned known = 0;
	for (unsigned type = 0; type < 256; type++) {
		if (strcmp(frame_type_name((uint8_t)type), "?") != 0) {
			known++;
			continue;
		}
		ck_assert_int_eq(parse(1, (uint8_t)type, 0, 8, &f), CSSL_E_TYPE);
		ck_assert_int_eq(parse(0, (uint8_t)type, 0, 8, &f), CSSL_E_TYPE);
	}
	ck_assert_uint_eq(known, SUITE_LEN(types));
}
END_TEST

START_TEST(a_type_of_the_link_has_no_stream_and_the_reverse)
{
	struct frame f;
	for (size_t i = 0; i < SUITE_LEN(types); i++)
		ck_assert_int_eq(parse(!types[i].stream, types[i].type, 0, types[i].len, &f), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_flag_that_a_type_does_not_have_ends_the_link)
{
	struct frame f;
	for (size_t i = 0; i < SUITE_LEN(types); i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			uint8_t flag = (uint8_t)(1u << bit);
			int r = parse(types[i].stream, types[i].type, flag, types[i].len, &f);
			ck_assert_int_eq(r, types[i].flags & flag ? 0 : CSSL_E_RANGE);
		}
	}
}
END_TEST

START_TEST(a_fixed_payload_has_exactly_its_length)
{
	static const uint8_t fixed[] = { FRAME_FIN, FRAME_PING, FRAME_PONG, FRAME_CLOSE, FRAME_DETACH, FRAME_VIOLATION,
		FRAME_CONSUMED, FRAME_END, FRAME_LEAVING, FRAME_PROOF, FRAME_REATTACH, FRAME_REATTACHED };
	struct frame f;
	for (size_t i = 0; i < SUITE_LEN(types); i++) {
		if (!memchr(fixed, types[i].type, sizeof(fixed)))
			continue;
		uint16_t len = types[i].len;
		ck_assert_int_eq(parse(types[i].stream, types[i].type, 0, len + 1, &f), CSSL_E_TOO_LONG);
		if (len > 0)
			ck_assert_int_eq(parse(types[i].stream, types[i].type, 0, len - 1, &f), CSSL_E_TRUNCATED);
	}
}
END_TEST

START_TEST(data_is_never_empty)
{
	struct frame f;
	ck_assert_int_eq(parse(1, FRAME_DATA, 0, 0, &f), CSSL_E_TRUNCATED);
	ck_assert_int_eq(parse(1, FRAME_DATA, FRAME_CHECKPOINT, 0, &f), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(a_payload_fits_a_batch)
{
	struct frame f;
	ck_assert_int_eq(parse(1, FRAME_DATA, 0, FRAME_PAYLOAD_MAX, &f), 0);
	ck_assert_int_eq(parse(1, FRAME_DATA, 0, FRAME_PAYLOAD_MAX + 1, &f), CSSL_E_TOO_LONG);
	ck_assert_int_eq(parse(1, FRAME_KEPT, 0, FRAME_PAYLOAD_MAX + 1, &f), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(a_frame_is_whole_with_its_last_byte)
{
	struct frame f;
	frame_header_write(input, 1, FRAME_DATA, 0, 100);
	for (size_t len = 0; len < FRAME_HEADER_LEN + 100; len++)
		ck_assert_int_eq(frame_parse(input, len, &f), FRAME_INCOMPLETE);
	ck_assert_int_eq(frame_parse(input, FRAME_HEADER_LEN + 100, &f), 0);
}
END_TEST

START_TEST(a_bad_header_is_refused_before_its_payload_is_there)
{
	struct frame f;
	frame_header_write(input, 0, FRAME_DATA, 0, 100);
	ck_assert_int_eq(frame_parse(input, FRAME_HEADER_LEN, &f), CSSL_E_RANGE);
}
END_TEST

START_TEST(consumed_reads_as_written)
{
	const struct frame_consumed c = { .client_records = UINT64_MAX - 1,
		.read_sequence = 0x0102030405060708,
		.read_generation = 0x090a0b0c,
		.offset = 16383 };
	struct frame_consumed out;
	struct frame f = { .payload = input, .len = FRAME_CONSUMED_LEN };
	frame_consumed_write(input, &c);
	ck_assert_int_eq(frame_consumed_read(&f, &out), 0);
	ck_assert_uint_eq(out.client_records, c.client_records);
	ck_assert_uint_eq(out.read_sequence, c.read_sequence);
	ck_assert_uint_eq(out.read_generation, c.read_generation);
	ck_assert_uint_eq(out.offset, c.offset);
}
END_TEST

START_TEST(accepted_reads_as_written)
{
	struct frame_accepted a = { .server_records = 7, .drained = UINT64_C(1) << 40, .write_generation = 3 };
	for (unsigned says = 0; says < 2; says++) {
		struct frame_accepted out;
		struct frame f = { .payload = input, .len = says ? FRAME_ACCEPTED_MAX : FRAME_ACCEPTED_LEN };
		a.received = says ? UINT64_MAX : 0;
		ck_assert_uint_eq(frame_accepted_write(input, &a), f.len);
		ck_assert_int_eq(frame_accepted_read(&f, &out), 0);
		ck_assert_uint_eq(out.server_records, a.server_records);
		ck_assert_uint_eq(out.drained, a.drained);
		ck_assert_uint_eq(out.write_generation, a.write_generation);
		ck_assert_uint_eq(out.received, a.received);
	}
}
END_TEST

START_TEST(reattach_reads_as_written)
{
	const struct frame_reattach r = { .connection_id = "a connection id", .stream = 0xfffffffe, .epoch = 65535 };
	struct frame_reattach out;
	struct frame f = { .payload = input, .len = FRAME_REATTACH_LEN };
	frame_reattach_write(input, &r);
	ck_assert_int_eq(frame_reattach_read(&f, &out), 0);
	ck_assert_mem_eq(out.connection_id, r.connection_id, sizeof r.connection_id);
	ck_assert_uint_eq(out.stream, r.stream);
	ck_assert_uint_eq(out.epoch, r.epoch);
}
END_TEST

START_TEST(reattached_reads_as_written)
{
	const struct frame_reattached r = { .frame = 9, .bytes = UINT64_C(1) << 41, .client_records = UINT64_MAX };
	struct frame_reattached out;
	struct frame f = { .payload = input, .len = FRAME_REATTACHED_LEN };
	frame_reattached_write(input, &r);
	ck_assert_int_eq(frame_reattached_read(&f, &out), 0);
	ck_assert_uint_eq(out.frame, r.frame);
	ck_assert_uint_eq(out.bytes, r.bytes);
	ck_assert_uint_eq(out.client_records, r.client_records);
}
END_TEST

START_TEST(violation_reads_as_written)
{
	const struct frame_violation v = { .type = 0x18, .version = 0x0302, .length = 0x4801 };
	struct frame_violation out;
	struct frame f = { .payload = input, .len = FRAME_VIOLATION_LEN };
	frame_violation_write(input, &v);
	ck_assert_int_eq(frame_violation_read(&f, &out), 0);
	ck_assert_uint_eq(out.type, v.type);
	ck_assert_uint_eq(out.version, v.version);
	ck_assert_uint_eq(out.length, v.length);
}
END_TEST

START_TEST(fixed_payloads_are_read_at_their_length_only)
{
	struct frame_consumed c;
	struct frame_accepted a;
	struct frame_violation v;
	struct frame_reattach again;
	struct frame_reattached answer;
	for (uint16_t len = 0; len < 40; len++) {
		struct frame f = { .payload = input, .len = len };
		ck_assert_int_eq(frame_consumed_read(&f, &c) == 0, len == FRAME_CONSUMED_LEN);
		ck_assert_int_eq(
			frame_accepted_read(&f, &a) == 0, len == FRAME_ACCEPTED_LEN || len == FRAME_ACCEPTED_MAX);
		ck_assert_int_eq(frame_violation_read(&f, &v) == 0, len == FRAME_VIOLATION_LEN);
		ck_assert_int_eq(frame_reattach_read(&f, &again) == 0, len == FRAME_REATTACH_LEN);
		ck_assert_int_eq(frame_reattached_read(&f, &answer) == 0, len == FRAME_REATTACHED_LEN);
	}
}
END_TEST

UNIT(frame)
{
	const TTest *facts[] = {
		a_header_is_eight_bytes_big_endian,
		a_written_frame_parses,
		every_type_parses_with_its_name_and_every_flag_it_has,
		an_unknown_type_ends_the_link,
		a_type_of_the_link_has_no_stream_and_the_reverse,
		a_flag_that_a_type_does_not_have_ends_the_link,
		a_fixed_payload_has_exactly_its_length,
		data_is_never_empty,
		a_payload_fits_a_batch,
		a_frame_is_whole_with_its_last_byte,
		a_bad_header_is_refused_before_its_payload_is_there,
		consumed_reads_as_written,
		accepted_reads_as_written,
		reattach_reads_as_written,
		reattached_reads_as_written,
		violation_reads_as_written,
		fixed_payloads_are_read_at_their_length_only,
	};
	return suite_run("frame", facts, SUITE_LEN(facts));
}
