/* agent_link.c: connect, the opening as initiator, then frames. */
#include "tests/lib/hostile/agent_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <sodium.h>

#include "net/loop/timer.h"
#include "net/loop/wheel.h"
#include "net/memory/container_of.h"
#include "net/socket/address.h"
#include "net/stream/framed.h"
#include "net/stream/streams.h"
#include "proto/end_reason.h"

#define PING_MS  100u
#define AGAIN_MS 50u

enum link_stage { STAGE_DOWN, STAGE_OPENING, STAGE_GOING_UP, STAGE_UP, STAGE_ENDING };

struct agent_link {
	struct stream raw;
	struct framed framed;
	struct worker *worker;
	const struct key_ring *ring;
	const struct conf_agent *agent;
	struct link_hello hello;
	struct opening *opening;
	struct link_keys keys;
	struct streams streams;
	struct deadline again;
	uint32_t next_stream;
	unsigned times, handles, scribbled;
	enum link_stage stage;
	int memory;                     /* made for the next link; -1: none */
	uint8_t proof[FRAME_PROOF_LEN]; /* zeros: it shows none */
	uint8_t *rings;                 /* the memory of this link, to scribble into; NULL: none */
	size_t rings_len;
};

/* --- ends --- */

static void on_stream_lost(void *ctx, uint32_t id, void *hearer)
{
	struct hearer *h = hearer;

	h->on_lost(h);
}

static void ended(struct agent_link *l)
{
	struct streams lost = l->streams;

	if (l->stage == STAGE_ENDING || l->stage == STAGE_DOWN)
		return;
	l->stage = STAGE_ENDING;
	l->streams = (struct streams){ 0 };
	streams_each(&lost, on_stream_lost, l);
	streams_clear(&lost);
	stream_close(&l->raw);
	if (l->framed.ops)
		framed_close(&l->framed);
}

static void handle_closed(struct agent_link *l)
{
	if (--l->handles > 0 || l->stage == STAGE_UP)
		return;
	opening_destroy(l->opening);
	l->opening = NULL;
	if (l->memory >= 0)
		close(l->memory);
	if (l->rings)
		munmap(l->rings, l->rings_len);
	l->rings = NULL;
	l->memory = -1;
	l->stage = STAGE_DOWN;
	deadline_set(l->worker, &l->again, AGAIN_MS);
}

/* --- frames --- */

static struct agent_link *of_framed(struct framed *f)
{
	return container_of(f, struct agent_link, framed);
}

static int on_frame(struct framed *framed, const struct frame *f, uint8_t *payload)
{
	struct agent_link *l = of_framed(framed);
	struct hearer *h = f->stream ? streams_find(&l->streams, f->stream) : NULL;

	if (h)
		h->on_frame(h, l, f);
	if (f->type == FRAME_END) /* as any RAgent answers it */
		agent_link_send(l, f->stream, FRAME_CLOSE, 0, &(uint8_t){ END_DONE }, 1);
	return 0;
}

static void on_framed_end(struct framed *f, int error)
{
	ended(of_framed(f));
}

static void on_framed_closed(struct framed *f)
{
	f->ops = NULL;
	handle_closed(of_framed(f));
}

static const struct framed_ops framed_ops = {
	.on_frame = on_frame,
	.on_end = on_framed_end,
	.on_closed = on_framed_closed,
};

/* --- opening --- */

static struct agent_link *of_raw(struct stream *s)
{
	return container_of(s, struct agent_link, raw);
}

static void map_memory(struct agent_link *l)
{
	struct stat st;

	if (l->memory < 0 || fstat(l->memory, &st) < 0)
		return;
	l->rings_len = (size_t)st.st_size;
	void *rings = mmap(NULL, l->rings_len, PROT_READ | PROT_WRITE, MAP_SHARED, l->memory, 0);
	l->rings = rings == MAP_FAILED ? NULL : rings;
}

static void show_proof(struct agent_link *l)
{
	if (!sodium_is_zero(l->proof, sizeof l->proof))
		agent_link_send(l, 0, FRAME_PROOF, 0, l->proof, sizeof l->proof);
}

static void go_up(struct agent_link *l)
{
	const int fd = stream_dup_fd(&l->raw);

	if (fd < 0 || opening_result(l->opening, &l->keys) < 0) {
		ended(l);
		return;
	}
	const size_t early = l->memory < 0 ? stream_kept(&l->raw) : 0;
	if (framed_open(&l->framed, l->worker, &framed_ops, fd, &l->keys, stream_kept_data(&l->raw), early) < 0) {
		l->framed.ops = NULL;
		ended(l);
		return;
	}
	l->handles++;
	map_memory(l);
	if (l->memory >= 0)
		framed_share(&l->framed, l->memory, RINGS_MAKER);
	l->memory = -1;
	l->next_stream = 1;
	l->scribbled = 0;
	l->times++;
	l->stage = STAGE_UP;
	show_proof(l);
	stream_close(&l->raw);
}

static int send_last(struct agent_link *l)
{
	if (l->hello.bytes != LINK_BYTES_IN_MEMORY || opening_peer(l->opening)->bytes != LINK_BYTES_IN_MEMORY)
		return 0;
	l->memory = rings_make();
	return l->memory < 0 ? l->memory : stream_send_fd(&l->raw, l->memory);
}

static size_t advance(struct agent_link *l, const uint8_t *in, size_t len)
{
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t taken = 0, out_len = 0;
	int r = opening_step(l->opening, in, len, &taken, out, &out_len);
	const int done = r == OPENING_DONE;

	if (r >= 0 && out_len)
		r = stream_write(&l->raw, out, out_len);
	if (r >= 0 && done)
		r = send_last(l);
	if (r >= 0 && done) {
		stream_read_stop(&l->raw);
		l->stage = STAGE_GOING_UP;
	}
	if (r < 0)
		ended(l);
	return taken;
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	return advance(of_raw(s), data, len);
}

static void on_written(struct stream *s, size_t len)
{
	struct agent_link *l = of_raw(s);

	if (l->stage == STAGE_GOING_UP && stream_pending(s) == 0)
		go_up(l);
}

static void on_fd(struct stream *s, int fd)
{
	close(fd); /* the agent's process: of no use here */
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	ended(of_raw(s));
}

static void on_connected(struct stream *s, int uv_error)
{
	struct agent_link *l = of_raw(s);

	if (uv_error == 0)
		l->opening = opening_start(l->ring, 0, &l->hello, LINK_ROLE_AGENT);
	if (!l->opening) {
		ended(l);
		return;
	}
	stream_read_start(s);
	advance(l, NULL, 0);
}

static void on_raw_closed(struct stream *s)
{
	handle_closed(of_raw(s));
}

static const struct stream_ops raw_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_written = on_written,
	.on_connected = on_connected,
	.on_closed = on_raw_closed,
	.on_fd = on_fd,
};

static void begin(struct agent_link *l)
{
	memset(&l->raw, 0, sizeof l->raw);
	if (l->agent->link.ss_family == AF_UNIX)
		stream_expect_fds(&l->raw);
	if (stream_connect(&l->raw, l->worker, &raw_ops, (const struct sockaddr *)&l->agent->link, NULL) < 0) {
		deadline_set(l->worker, &l->again, AGAIN_MS);
		return;
	}
	l->handles = 1;
	l->stage = STAGE_OPENING;
}

static void on_again(struct deadline *d)
{
	begin(container_of(d, struct agent_link, again));
}

static void on_ping(void *ctx)
{
	agent_link_send(ctx, 0, FRAME_PING, 0, "hostile!", 8);
}

static void fill_hello(struct link_hello *h, const struct conf_agent *agent, const char *name)
{
	*h = (struct link_hello){ .version_min = LINK_VERSION,
		.version_max = LINK_VERSION,
		.role = LINK_ROLE_RAGENT,
		.protection = agent->link_protection,
		.aead = aead_preferred(),
		.boot_id = AGENT_LINK_BOOT_ID,
		.workers = 1,
		.bytes = agent->link.ss_family == AF_UNIX ? agent->link_bytes : LINK_BYTES_ON_SOCKET };
	snprintf(h->name, sizeof h->name, "%s", name);
}

struct agent_link *agent_link_create(
	struct worker *w, const struct key_ring *ring, const struct conf_agent *agent, const char *name)
{
	struct agent_link *l = calloc(1, sizeof *l);

	if (!l)
		exit(EXIT_FAILURE);
	l->worker = w;
	l->ring = ring;
	l->agent = agent;
	l->memory = -1;
	l->again.fn = on_again;
	fill_hello(&l->hello, agent, name);
	timer_start(w, on_ping, l, PING_MS, PING_MS);
	begin(l);
	return l;
}

const char *agent_link_name(const struct agent_link *l)
{
	return l->agent->name;
}

int agent_link_is_up(const struct agent_link *l)
{
	return l->stage == STAGE_UP;
}

unsigned agent_link_times(const struct agent_link *l)
{
	return l->times;
}

/* --- what is said --- */

uint32_t agent_link_begin(struct agent_link *l, struct hearer *h)
{
	return streams_add(&l->streams, l->next_stream, h) < 0 ? 0 : l->next_stream++;
}

void agent_link_hand(struct agent_link *l, uint32_t stream, struct hearer *h)
{
	streams_remove(&l->streams, stream);
	streams_add(&l->streams, stream, h);
}

void agent_link_send(
	struct agent_link *l, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	if (l->stage == STAGE_UP)
		framed_send(&l->framed, stream, type, flags, payload, len);
}

void agent_link_say(struct agent_link *l, uint32_t stream, enum frame_type type, const ProtobufCMessage *m)
{
	uint8_t packed[FRAME_PAYLOAD_MAX];

	if (protobuf_c_message_get_packed_size(m) <= sizeof packed)
		agent_link_send(l, stream, type, 0, packed, protobuf_c_message_pack(m, packed));
}

void agent_link_prove(struct agent_link *l, const uint8_t *proof)
{
	memcpy(l->proof, proof, sizeof l->proof);
	show_proof(l);
}

void agent_link_drop(struct agent_link *l)
{
	if (l->stage == STAGE_UP)
		ended(l);
}

unsigned agent_link_scribble(struct agent_link *l, unsigned count)
{
	if (l->stage != STAGE_UP || !l->rings)
		return 0;
	for (unsigned i = 0; i < count; i++) /* the positions, at the begin, are the more interesting half */
		l->rings[randombytes_uniform(i % 2 ? 4096 : (uint32_t)l->rings_len)] = (uint8_t)randombytes_random();
	l->scribbled += count;
	return count;
}

int agent_link_is_scribbled(const struct agent_link *l)
{
	return l->scribbled != 0;
}

int agent_link_half_open(const struct key_ring *ring, const struct conf_agent *agent, const char *name)
{
	const struct sockaddr *to = (const struct sockaddr *)&agent->link;
	const socklen_t to_len = to->sa_family == AF_UNIX ? sizeof(struct sockaddr_un) : address_len(to);
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t taken, len = 0;
	struct link_hello hello;

	fill_hello(&hello, agent, name);
	struct opening *o = opening_start(ring, 0, &hello, LINK_ROLE_AGENT);
	if (fd < 0 || !o || connect(fd, to, to_len) < 0 || opening_step(o, NULL, 0, &taken, out, &len) < 0 ||
		write(fd, out, len) != (ssize_t)len) {
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	opening_destroy(o);
	return fd;
}
