/* link_peer.c: frames over a socket pair, by hand, and a client of OpenSSL behind them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/sslagent/carrier/link_peer.h"

#include "proto/scratch.h"

struct peer p, q;

int agent_leaves;

static bool is_leaving(const void *process)
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
struct carrier_home carriers = { .connections = &a1.worker, .ops = &process_ops };

enum transport peer_over = OVER_UNIX;

void peer_open(struct peer *x)
{
	struct link_arrival *a = calloc(1, sizeof *a);
	int fds[2];

	memset(x, 0, sizeof *x);
	socket_pair(peer_over, fds);
	a->fd = fds[0];
	a->memory = -1;
	a->keys.protection = LINK_TRUSTED;
	snprintf(a->peer.name, sizeof a->peer.name, "r1");
	x->fd = fds[1];
	a->home = &carriers;
	carrier_link_begin(a);
}

void peer_forget_frames(struct peer *x)
{
	for (unsigned i = 0; i < x->count; i++)
		free(x->kept[i]);
	x->count = 0;
}

void peer_close(struct peer *x)
{
	peer_forget_frames(x);
	memory_client_destroy(x->client);
	if (x->fd >= 0)
		close(x->fd);
	memset(x, 0, sizeof *x);
	x->fd = -1;
}

void feed_client(struct peer *x, const struct frame *f)
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

void send_frame(struct peer *x, uint32_t stream, enum frame_type type, const void *payload, size_t len)
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

void peer_turn(struct peer *x)
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

unsigned count_of(const struct peer *x, enum frame_type type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < x->count; i++)
		n += x->frames[i].type == type;
	return n;
}

const struct frame *last_of(const struct peer *x, enum frame_type type)
{
	for (unsigned i = x->count; i > 0; i--)
		if (x->frames[i - 1].type == type)
			return &x->frames[i - 1];
	ck_abort_msg("no %s came", frame_type_name((uint8_t)type));
	return NULL;
}

void send_message(struct peer *x, uint32_t stream, enum frame_type type, const ProtobufCMessage *m)
{
	uint8_t bytes[4096];

	ck_assert_uint_le(protobuf_c_message_get_packed_size(m), sizeof bytes);
	send_frame(x, stream, type, bytes, protobuf_c_message_pack(m, bytes));
}

uint8_t id_bytes[CONNECTION_ID_LEN];
const uint8_t proof[FRAME_PROOF_LEN] = "one RAgent, whichever process";

void fill_open(Cssl__LinkOpen *open, const char *listener)
{
	cssl__link_open__init(open);
	id_bytes[0]++;
	open->connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	open->listener = (char *)listener;
	open->endpoints = fake_endpoints();
}

void send_open(struct peer *x, uint32_t stream, const char *listener)
{
	Cssl__LinkOpen open;

	fill_open(&open, listener);
	send_message(x, stream, FRAME_OPEN, &open.base);
	cssl__endpoints__free_unpacked(open.endpoints, NULL);
}

void begin_client(struct peer *x)
{
	x->client = memory_client_create(TLS13);
	send_open(x, 1, "http");
	peers_until(count_of(x, FRAME_KEPT) == 1);
}

void open_peers(void)
{
	ck_assert_int_eq(carrier_home_open(&carriers), 0);
	q.fd = -1;
	peer_open(&p);
}

void open_proven_peers(void)
{
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
}

void close_peers(void)
{
	peer_close(&p);
	peer_close(&q);
	wait_until(carriers.links == NULL && carriers.parked == NULL);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	carrier_home_release(&carriers);
}

void send_reattach(struct peer *x, uint32_t epoch)
{
	struct frame_reattach wanted = { .stream = 1, .epoch = epoch };
	uint8_t payload[FRAME_REATTACH_LEN];

	memcpy(wanted.connection_id, id_bytes, sizeof wanted.connection_id);
	frame_reattach_write(payload, &wanted);
	send_frame(x, 1, FRAME_REATTACH, payload, sizeof payload);
}

void set_lost_ms(uint32_t ms)
{
	((struct conf *)a1.worker.conf)->ragents[0].health.lost_ms = ms;
}
