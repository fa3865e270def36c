/* test_link_malformed.c: facts of frames that end their link, and no other. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/scratch.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

#define RECORD         "\x17\x03\x03\x00\x01x"
#define FIVE_RECORDS   RECORD RECORD RECORD RECORD RECORD
#define TWENTY_RECORDS FIVE_RECORDS FIVE_RECORDS FIVE_RECORDS FIVE_RECORDS

static struct {
	const char *name;
	enum frame_type type;
	uint32_t stream;
	uint8_t payload[128];
	size_t len;
} const malformed[] = {
	{ "a frame that only agents send", FRAME_KEPT, 1, "", 0 },
	{ "half a PONG", FRAME_PONG, 0, "1234", 4 },
	{ "OPEN that is no message", FRAME_OPEN, 9, "\xff\xff\xff\xff", 4 },
	{ "OPEN without anything", FRAME_OPEN, 9, "", 0 },
	{ "OPEN on a stream in use", FRAME_OPEN, 1, "", 0 },
	{ "SSL_ID that is no message", FRAME_SSL_ID, 9, "\xff\xff\xff\xff", 4 },
	{ "SSL_ID without endpoints", FRAME_SSL_ID, 9, "", 0 },
	{ "SSL_ID on a stream in use", FRAME_SSL_ID, 1, "", 0 },
	{ "half a record", FRAME_DATA, 1, "\x17\x03\x03\x00\x09half", 9 },
	{ "a record and a half", FRAME_DATA, 1, "\x17\x03\x03\x00\x01x\x17\x03\x03", 9 },
	{ "twenty records and a half", FRAME_DATA, 1, TWENTY_RECORDS "\x17\x03\x03", 123 },
	{ "no record", FRAME_DATA, 1, "GET / HTTP/1.1", 14 },
	{ "half an ACCEPTED", FRAME_ACCEPTED, 1, "1234", 4 },
	{ "more taken than was sent", FRAME_ACCEPTED, 1, "12345678\0\0\0\0\0\1\0\0\0\0\0\0", FRAME_ACCEPTED_LEN },
	{ "CLOSE without a reason", FRAME_CLOSE, 1, "", 0 },
	{ "DETACH with something", FRAME_DETACH, 1, "x", 1 },
	{ "FIN with something", FRAME_FIN, 1, "x", 1 },
	{ "half a VIOLATION", FRAME_VIOLATION, 1, "\x17", 1 },
	{ "MOVE that is no message", FRAME_MOVE, 1, "\xff\xff\xff\xff", 4 },
	{ "MOVE to no epoch", FRAME_MOVE, 1, "", 0 },
	{ "REQUEST that is no message", FRAME_REQUEST, 0, "\xff\xff\xff\xff", 4 },
	{ "REQUEST on a stream", FRAME_REQUEST, 1, "", 0 },
	{ "FINISH without a reason", FRAME_FINISH, 1, "", 0 },
	{ "FINISH for no reason there is", FRAME_FINISH, 1, "\xfe", 1 },
	{ "half a PING", FRAME_PING, 0, "1234", 4 },
	{ "PING on a stream", FRAME_PING, 1, "12345678", 8 },
	{ "OPEN of the link", FRAME_OPEN, 0, "", 0 },
	{ "a type that is none", (enum frame_type)0x7f, 1, "", 0 },
};

START_TEST(a_malformed_frame_ends_its_link_and_nothing_else)
{
	open_peers();
	begin_client(&p);
	peer_open(&q);
	begin_client(&q);
	send_frame(&p, malformed[_i].stream, malformed[_i].type, malformed[_i].payload, malformed[_i].len);
	peers_until(p.ended);
	ck_assert_msg(a1.worker.table.count == 1, "%s", malformed[_i].name);
	ck_assert_uint_eq(counted(COUNT_LINKS_LOST), 1);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 1);
	ck_assert(!q.ended);
	memory_client_write(q.client, GET, strlen(GET));
	peers_until(backend_waits());
	close_peers();
}
END_TEST

/* Endpoints that no address can have. */
START_TEST(a_client_that_took_less_than_before_ends_the_link)
{
	uint8_t taken[FRAME_ACCEPTED_LEN] = { 0 };

	open_peers();
	begin_client(&p);
	taken[15] = 100;
	send_frame(&p, 1, FRAME_ACCEPTED, taken, sizeof taken);
	send_frame(&p, 1, FRAME_ACCEPTED, taken, sizeof taken);
	turns(4);
	peer_turn(&p);
	ck_assert(!p.ended);
	taken[15] = 99;
	send_frame(&p, 1, FRAME_ACCEPTED, taken, sizeof taken);
	peers_until(p.ended);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 1);
	close_peers();
}
END_TEST

START_TEST(endpoints_that_make_no_sense_end_the_link)
{
	Cssl__LinkOpen open;
	uint8_t long_id[PROXY_UNIQUE_ID_MAX + 1] = { 0 };

	open_peers();
	fill_open(&open, "http");
	size_t address_len = open.endpoints->client_address.len;
	switch (_i) {
	case 0: open.endpoints->client_address.len = 3; break;
	case 1: open.endpoints->server_address.len = 1; break;
	case 2: open.endpoints->client_port = 65536; break;
	case 3: open.endpoints->server_port = UINT32_MAX; break;
	case 4: open.endpoints->unique_id = (ProtobufCBinaryData){ sizeof long_id, long_id }; break;
	case 5: open.connection_id.len--; break;
	}
	send_message(&p, 1, FRAME_OPEN, &open.base);
	peers_until(p.ended);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	open.endpoints->client_address.len = open.endpoints->server_address.len = address_len;
	open.endpoints->unique_id = (ProtobufCBinaryData){ 0, NULL };
	cssl__endpoints__free_unpacked(open.endpoints, NULL);
	close_peers();
}
END_TEST

START_TEST(frames_behind_a_malformed_one_are_not_looked_at)
{
	open_peers();
	send_frame(&p, 1, FRAME_KEPT, NULL, 0);
	send_open(&p, 1, "http");
	peers_until(p.ended);
	ck_assert_uint_eq(counted(COUNT_CONNECTIONS_OPENED), 0);
	close_peers();
}
END_TEST

UNIT(link_malformed)
{
	const struct connection_fact facts[] = {
		{ a_malformed_frame_ends_its_link_and_nothing_else, FACTS_LEN(malformed) },
		{ a_client_that_took_less_than_before_ends_the_link, 1 },
		{ endpoints_that_make_no_sense_end_the_link, 6 },
		{ frames_behind_a_malformed_one_are_not_looked_at, 0 },
	};

	return connection_suite_run("link_malformed", facts, FACTS_LEN(facts));
}
