/* test_link.c: facts of an agent's end of a link: what each frame does, what a malformed one ends, and what is lost
 * with a link. The test is the RAgent, byte by byte. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/frame.h"
#include "sslagent/carrier/link.h"
#include "tests/unit/sslagent/connection/connection_fixture.h"

#define FRAMES_MAX 64

/* A link as RAgent sees it, and a client behind it on one stream. */
struct peer {
	int fd; /* -1: closed */
	uint8_t in[1u << 20];
	size_t in_len;
	struct frame frames[FRAMES_MAX]; /* payloads are in @kept */
	uint8_t *kept[FRAMES_MAX];
	unsigned count;
	int ended;
	struct memory_client *client;
	uint8_t got[65536];
	size_t got_len;
};

static struct peer p, q;

/* --- what an agent's process would do --- */

static int agent_leaves;

static int is_leaving(const void *process)
{
	return agent_leaves;
}

static void say_load(void *process, Cssl__LinkLoad *out)
{
	out->ready = 1;
}

static void take_request(void *process, uint64_t link_number, Cssl__LinkRequest *request)
{
	cssl__link_request__free_unpacked(request, NULL);
}

static const struct carrier_process_ops process_ops = {
	.is_leaving = is_leaving, .load = say_load, .request = take_request
};
static struct carrier_home carriers = { .connections = &a1.worker, .ops = &process_ops };

/* --- RAgent's half --- */

static void peer_open(struct peer *x)
{
	struct link_arrival *a = calloc(1, sizeof *a);
	int fds[2];

	memset(x, 0, sizeof *x);
	socket_pair(OVER_UNIX, fds);
	a->fd = fds[0];
	a->memory = -1;
	a->keys.protection = LINK_TRUSTED;
	snprintf(a->peer.name, sizeof a->peer.name, "r1");
	x->fd = fds[1];
	link_begin(&carriers, a);
}

static void peer_close(struct peer *x)
{
	for (unsigned i = 0; i < x->count; i++)
		free(x->kept[i]);
	memory_client_destroy(x->client);
	if (x->fd >= 0)
		close(x->fd);
	memset(x, 0, sizeof *x);
	x->fd = -1;
}

static void feed_client(struct peer *x, const struct frame *f)
{
	ptrdiff_t n;

	if (!x->client || f->type != FRAME_DATA)
		return;
	memory_client_feed(x->client, f->payload, f->len);
	while (SSL_is_init_finished(memory_client_ssl(x->client)) &&
		(n = memory_client_read(x->client, x->got + x->got_len, sizeof x->got - x->got_len)) > 0)
		x->got_len += (size_t)n;
}

static void take_frames(struct peer *x)
{
	size_t used = 0;
	struct frame f;

	while (frame_parse(x->in + used, x->in_len - used, &f) == 0) {
		used += FRAME_HEADER_LEN + f.len;
		feed_client(x, &f);
		ck_assert_uint_lt(x->count, FRAMES_MAX);
		x->kept[x->count] = malloc(f.len + 1u);
		memcpy(x->kept[x->count], f.payload, f.len);
		f.payload = x->kept[x->count];
		x->frames[x->count++] = f;
	}
	memmove(x->in, x->in + used, x->in_len - used);
	x->in_len -= used;
}

static void send_frame(struct peer *x, uint32_t stream, enum frame_type type, const void *payload, size_t len)
{
	uint8_t header[FRAME_HEADER_LEN];

	frame_header_write(header, stream, type, 0, (uint16_t)len);
	write_all(x->fd, header, sizeof header);
	if (len)
		write_all(x->fd, payload, len);
}

static void send_client_records(struct peer *x, uint32_t stream)
{
	const uint8_t *data;
	size_t len;

	if (!x->client)
		return;
	if (!SSL_is_init_finished(memory_client_ssl(x->client)))
		memory_client_handshake(x->client);
	len = memory_client_output(x->client, &data);
	if (len) {
		send_frame(x, stream, FRAME_DATA, data, len);
		memory_client_output_taken(x->client, len);
	}
}

static void peer_turn(struct peer *x)
{
	int end = 0;

	if (x->fd < 0 || x->ended)
		return;
	ssize_t n = read_some(x->fd, x->in + x->in_len, sizeof x->in - x->in_len, &end);
	x->in_len += n > 0 ? (size_t)n : 0;
	x->ended = n < 0 || end;
	take_frames(x);
	if (!x->ended)
		send_client_records(x, 1);
}

#define peers_until(condition)                                                                                         \
	do {                                                                                                           \
		uint64_t limit_ = now_ms() + WAIT_LIMIT_MS;                                                            \
		while (peer_turn(&p), peer_turn(&q), !(condition)) {                                                   \
			ck_assert_msg(now_ms() < limit_, "never: %s", #condition);                                     \
			turn();                                                                                        \
		}                                                                                                      \
	} while (0)

static unsigned count_of(const struct peer *x, enum frame_type type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < x->count; i++)
		n += x->frames[i].type == type;
	return n;
}

static const struct frame *last_of(const struct peer *x, enum frame_type type)
{
	for (unsigned i = x->count; i > 0; i--)
		if (x->frames[i - 1].type == type)
			return &x->frames[i - 1];
	ck_abort_msg("no %s came", frame_type_name((uint8_t)type));
	return NULL;
}

static void send_message(struct peer *x, uint32_t stream, enum frame_type type, const ProtobufCMessage *m)
{
	uint8_t bytes[4096];

	ck_assert_uint_le(protobuf_c_message_get_packed_size(m), sizeof bytes);
	send_frame(x, stream, type, bytes, protobuf_c_message_pack(m, bytes));
}

static uint8_t id_bytes[CONNECTION_ID_LEN];

static void fill_open(Cssl__LinkOpen *open, const char *listener)
{
	cssl__link_open__init(open);
	id_bytes[0]++;
	open->connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	open->listener = (char *)listener;
	open->endpoints = fake_endpoints();
}

static void send_open(struct peer *x, uint32_t stream, const char *listener)
{
	Cssl__LinkOpen open;

	fill_open(&open, listener);
	send_message(x, stream, FRAME_OPEN, &open.base);
	cssl__endpoints__free_unpacked(open.endpoints, NULL);
}

/* A client behind stream 1 that has shaken hands. */
static void begin_client(struct peer *x)
{
	x->client = memory_client_create(TLS13);
	send_open(x, 1, "http");
	peers_until(count_of(x, FRAME_KEPT) == 1);
}

static void open_peers(void)
{
	q.fd = -1;
	peer_open(&p);
}

static void close_peers(void)
{
	peer_close(&p);
	peer_close(&q);
	wait_until(carriers.links == NULL);
	ck_assert_uint_eq(a1.worker.table.count, 0);
}

/* --- the link itself --- */

START_TEST(a_link_says_its_load_at_once_and_after_each_ping)
{
	uint8_t token[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	open_peers();
	peers_until(count_of(&p, FRAME_LOAD) == 1);
	send_frame(&p, 0, FRAME_PING, token, sizeof token);
	peers_until(count_of(&p, FRAME_LOAD) == 2);
	ck_assert_mem_eq(last_of(&p, FRAME_PONG)->payload, token, sizeof token);
	Cssl__LinkLoad *load =
		cssl__link_load__unpack(NULL, last_of(&p, FRAME_LOAD)->len, last_of(&p, FRAME_LOAD)->payload);
	ck_assert(load && load->ready);
	cssl__link_load__free_unpacked(load, NULL);
	close_peers();
}
END_TEST

START_TEST(leaving_is_said)
{
	open_peers();
	link_say_leaving(carriers.links);
	peers_until(count_of(&p, FRAME_LEAVING) == 1);
	close_peers();
}
END_TEST

START_TEST(bytes_that_came_behind_the_opening_are_frames)
{
	struct link_arrival *a = calloc(1, sizeof *a);
	int fds[2];

	q.fd = -1;
	memset(&p, 0, sizeof p);
	socket_pair(OVER_UNIX, fds);
	p.fd = fds[1];
	a->fd = fds[0];
	a->memory = -1;
	a->keys.protection = LINK_TRUSTED;
	a->early_len = FRAME_HEADER_LEN + 8;
	a->early = calloc(1, a->early_len);
	frame_header_write(a->early, 0, FRAME_PING, 0, 8);
	link_begin(&carriers, a);
	peers_until(count_of(&p, FRAME_PONG) == 1);
	close_peers();
}
END_TEST

START_TEST(numbers_of_links_are_not_used_again)
{
	open_peers();
	uint64_t first = link_number(carriers.links);
	ck_assert_ptr_eq(carrier_home_find_link(&carriers, first), carriers.links);
	close_peers();
	ck_assert_ptr_null(carrier_home_find_link(&carriers, first));
	open_peers();
	ck_assert_uint_ne(link_number(carriers.links), first);
	close_peers();
}
END_TEST

/* --- streams --- */

START_TEST(a_stream_carries_a_connection_to_its_end)
{
	open_peers();
	begin_client(&p);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	memory_client_write(p.client, GET, strlen(GET));
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(p.got_len == strlen(ANSWER));
	ck_assert_mem_eq(p.got, ANSWER, strlen(ANSWER));
	send_frame(&p, 1, FRAME_FIN, NULL, 0);
	peers_until(count_of(&p, FRAME_END) == 1);
	ck_assert_uint_eq(last_of(&p, FRAME_END)->payload[0], END_DONE);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

/* More records than a carrier takes in one go. */
START_TEST(a_frame_may_hold_many_small_records)
{
	open_peers();
	begin_client(&p);
	for (const char *at = GET; *at; at++)
		memory_client_write(p.client, at, 1);
	ck_assert_uint_gt(strlen(GET), 2 * TLS_RECORD_BATCH);
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	close_peers();
}
END_TEST

START_TEST(finish_says_goodbye_with_its_reason)
{
	uint8_t reason = END_DRAIN_TIMEOUT;

	open_peers();
	begin_client(&p);
	send_frame(&p, 1, FRAME_FINISH, &reason, 1);
	peers_until(count_of(&p, FRAME_END) == 1);
	ck_assert_uint_eq(last_of(&p, FRAME_END)->payload[0], END_DRAIN_TIMEOUT);
	peers_until(memory_client_read(p.client, p.got, sizeof p.got) <= 0);
	ck_assert_int_eq(memory_client_end(p.client), CLIENT_CLOSE_NOTIFY);
	close_peers();
}
END_TEST

START_TEST(close_forgets_a_stream_without_an_answer)
{
	uint8_t reason = END_CLIENT_RESET;

	open_peers();
	begin_client(&p);
	send_frame(&p, 1, FRAME_CLOSE, &reason, 1);
	peers_until(a1.worker.table.count == 0);
	ck_assert_uint_eq(a1.cluster.gone, 1);
	turns(4);
	peer_turn(&p);
	ck_assert_uint_eq(count_of(&p, FRAME_END), 0);
	close_peers();
}
END_TEST

START_TEST(what_comes_for_a_stream_that_ended_is_counted_and_ignored)
{
	uint8_t record[] = { 0x17, 3, 3, 0, 1, 0 }, reason = END_DONE, accepted[FRAME_ACCEPTED_LEN] = { 0 };

	open_peers();
	send_frame(&p, 7, FRAME_DATA, record, sizeof record);
	send_frame(&p, 7, FRAME_ACCEPTED, accepted, sizeof accepted);
	send_frame(&p, 7, FRAME_FIN, NULL, 0);
	send_frame(&p, 7, FRAME_DETACH, NULL, 0);
	send_frame(&p, 7, FRAME_CLOSE, &reason, 1);
	begin_client(&p);
	ck_assert(!p.ended);
	ck_assert_uint_eq(counted(COUNT_FRAMES_STALE), 5);
	close_peers();
}
END_TEST

START_TEST(a_listener_nobody_knows_is_refused_and_the_link_goes_on)
{
	open_peers();
	send_open(&p, 5, "unknown");
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	const struct frame *f = last_of(&p, FRAME_REFUSED);
	Cssl__LinkRefused *refused = cssl__link_refused__unpack(NULL, f->len, f->payload);
	ck_assert_uint_eq(f->stream, 5);
	ck_assert_int_eq(refused->reason, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER);
	cssl__link_refused__free_unpacked(refused, NULL);
	begin_client(&p);
	close_peers();
}
END_TEST

START_TEST(an_agent_that_leaves_takes_nothing_new)
{
	open_peers();
	agent_leaves = 1;
	send_open(&p, 5, "http");
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	agent_leaves = 0;
	close_peers();
}
END_TEST

START_TEST(a_link_that_comes_while_it_leaves_is_told)
{
	agent_leaves = 1;
	open_peers();
	peers_until(count_of(&p, FRAME_LEAVING) == 1);
	agent_leaves = 0;
	close_peers();
}
END_TEST

static void send_ssl_id(struct peer *x, uint32_t stream)
{
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;

	m.connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	m.epoch = 2;
	m.cause = CSSL__CAUSE__CAUSE_MOVE;
	m.position = &position;
	m.listener = (char *)"http";
	m.endpoints = fake_endpoints();
	send_message(x, stream, FRAME_SSL_ID, &m.base);
	cssl__endpoints__free_unpacked(m.endpoints, NULL);
}

static Cssl__LinkRefused__Reason reason_of(const struct frame *f)
{
	Cssl__LinkRefused *refused = cssl__link_refused__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(refused);
	Cssl__LinkRefused__Reason reason = refused->reason;
	cssl__link_refused__free_unpacked(refused, NULL);
	return reason;
}

START_TEST(an_agent_that_leaves_adopts_only_what_froze_here)
{
	Cssl__LinkMove move = CSSL__LINK_MOVE__INIT;

	open_peers();
	begin_client(&p);
	move.target = (char *)"a2";
	move.next_epoch = 2;
	send_message(&p, 1, FRAME_MOVE, &move.base);
	peers_until(count_of(&p, FRAME_HANDED_OFF) == 1);
	agent_leaves = 1;
	send_ssl_id(&p, 7); /* it shows nothing of what froze, but it is looked at */
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	ck_assert_int_eq(reason_of(last_of(&p, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	id_bytes[1]++;
	send_ssl_id(&p, 9);
	peers_until(count_of(&p, FRAME_REFUSED) == 2);
	ck_assert_int_eq(reason_of(last_of(&p, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__LEAVING);
	agent_leaves = 0;
	close_peers();
}
END_TEST

/* --- what is lost with a link --- */

START_TEST(a_lost_link_loses_its_streams_and_no_others)
{
	open_peers();
	begin_client(&p);
	peer_open(&q);
	begin_client(&q);
	ck_assert_uint_eq(a1.worker.table.count, 2);
	close(p.fd);
	p.fd = -1;
	peers_until(a1.worker.table.count == 1);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 0);
	ck_assert_uint_eq(a1.cluster.gone, 0); /* its successor will want the live part */
	memory_client_write(q.client, GET, strlen(GET));
	peers_until(backend_waits());
	close_peers();
}
END_TEST

START_TEST(a_lost_link_resets_the_backends_of_its_streams)
{
	open_peers();
	begin_client(&p);
	memory_client_write(p.client, GET, strlen(GET));
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	close(p.fd);
	p.fd = -1;
	ck_assert_int_eq(read_to_end(backend), -1);
	close_peers();
}
END_TEST

#define RECORD         "\x17\x03\x03\x00\x01x"
#define FIVE_RECORDS   RECORD RECORD RECORD RECORD RECORD
#define TWENTY_RECORDS FIVE_RECORDS FIVE_RECORDS FIVE_RECORDS FIVE_RECORDS

/* --- malformed frames --- */

static struct {
	const char *name;
	enum frame_type type;
	uint32_t stream;
	uint8_t payload[128];
	size_t len;
} const malformed[] = {
	{ "a frame that only agents send", FRAME_KEPT, 1, "", 0 },
	{ "an answer nobody asked for", FRAME_PONG, 0, "12345678", 8 },
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

int main(void)
{
	const struct connection_fact facts[] = {
		{ a_link_says_its_load_at_once_and_after_each_ping, 0 },
		{ leaving_is_said, 0 },
		{ bytes_that_came_behind_the_opening_are_frames, 0 },
		{ numbers_of_links_are_not_used_again, 0 },
		{ a_stream_carries_a_connection_to_its_end, 0 },
		{ a_frame_may_hold_many_small_records, 0 },
		{ finish_says_goodbye_with_its_reason, 0 },
		{ close_forgets_a_stream_without_an_answer, 0 },
		{ what_comes_for_a_stream_that_ended_is_counted_and_ignored, 0 },
		{ a_listener_nobody_knows_is_refused_and_the_link_goes_on, 0 },
		{ an_agent_that_leaves_takes_nothing_new, 0 },
		{ a_link_that_comes_while_it_leaves_is_told, 0 },
		{ an_agent_that_leaves_adopts_only_what_froze_here, 0 },
		{ a_lost_link_loses_its_streams_and_no_others, 0 },
		{ a_lost_link_resets_the_backends_of_its_streams, 0 },
		{ a_malformed_frame_ends_its_link_and_nothing_else, FACTS_LEN(malformed) },
		{ endpoints_that_make_no_sense_end_the_link, 6 },
		{ frames_behind_a_malformed_one_are_not_looked_at, 0 },
	};

	return connection_suite_run("link", facts, FACTS_LEN(facts));
}
