/* fake_agent.c: see fake_agent.h. */
#include "tests/unit/ragent/fake_agent.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/memory/container_of.h"
#include "net/socket/address.h"
#include "net/stream/framed.h"
#include "tests/unit/net/fixture.h"

struct fake_link {
	struct stream raw;
	struct framed framed;
	struct opening *opening;
	struct fake_agent *agent;
	int memory; /* came along; -1: none */
	unsigned handles;
	enum { FAKE_OPENING, FAKE_OPEN, FAKE_OVER } state;
};

struct fake_agent {
	struct listener *listener;
	struct fake_link *link; /* the current one */
	const struct key_ring *ring;
	struct link_hello hello;
	struct fake_frame *frames, **last;
	unsigned links, handles;
	int ready, silent;
	int pidfd; /* 0: it names no process */
};

/* --- link --- */

static void link_over(struct fake_link *l)
{
	if (l->agent->link == l)
		l->agent->link = NULL;
	l->state = FAKE_OVER;
	stream_close(&l->raw);
	if (l->framed.ops)
		framed_close(&l->framed);
}

static void handle_closed(struct fake_link *l)
{
	l->agent->handles--;
	if (--l->handles > 0 || l->state != FAKE_OVER)
		return;
	opening_destroy(l->opening);
	if (l->memory >= 0)
		close(l->memory);
	free(l);
}

static struct fake_link *of_framed(struct framed *f)
{
	return container_of(f, struct fake_link, framed);
}

static void answer_ping(struct fake_agent *a, const struct frame *f)
{
	Cssl__LinkLoad load = CSSL__LINK_LOAD__INIT;

	if (a->silent)
		return;
	load.ready = a->ready;
	fake_agent_send(a, 0, FRAME_PONG, 0, f->payload, f->len);
	fake_agent_say(a, 0, FRAME_LOAD, &load.base);
}

static int on_frame(struct framed *framed, const struct frame *f, uint8_t *payload)
{
	struct fake_agent *a = of_framed(framed)->agent;

	if (f->type == FRAME_PING) {
		answer_ping(a, f);
		return 0;
	}
	struct fake_frame *kept = malloc(sizeof *kept + f->len);
	ck_assert_ptr_nonnull(kept);
	*kept = (struct fake_frame){ .stream = f->stream, .type = f->type, .flags = f->flags, .len = f->len };
	memcpy(kept->payload, f->payload, f->len);
	*a->last = kept;
	a->last = &kept->next;
	return 0;
}

static void on_framed_end(struct framed *f, int error)
{
	link_over(of_framed(f));
}

static void on_framed_closed(struct framed *f)
{
	handle_closed(of_framed(f));
}

static const struct framed_ops framed_ops = {
	.on_frame = on_frame,
	.on_end = on_framed_end,
	.on_closed = on_framed_closed,
};

static struct fake_link *of_raw(struct stream *s)
{
	return container_of(s, struct fake_link, raw);
}

static void opening_is_done(struct fake_link *l, const uint8_t *early, size_t early_len)
{
	struct link_keys keys;
	int fd = stream_dup_fd(&l->raw);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(opening_result(l->opening, &keys), 0);
	if (l->agent->hello.bytes == LINK_BYTES_IN_MEMORY) {
		ck_assert_int_ge(l->memory, 0);
		early_len = 0; /* bells */
	}
	ck_assert_int_eq(framed_open(&l->framed, w, &framed_ops, fd, &keys, early, early_len), 0);
	if (l->memory >= 0)
		ck_assert_int_eq(framed_share(&l->framed, l->memory, RINGS_TAKER), 0);
	l->memory = -1;
	l->handles++;
	l->agent->handles++;
	l->state = FAKE_OPEN;
	l->agent->link = l;
	l->agent->links++;
	stream_close(&l->raw);
}

static size_t on_raw_data(struct stream *s, uint8_t *data, size_t len)
{
	struct fake_link *l = of_raw(s);
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t taken, out_len;
	int r = opening_step(l->opening, data, len, &taken, out, &out_len);

	if (r < 0) {
		link_over(l);
		return len;
	}
	if (out_len)
		ck_assert_int_eq(stream_write(s, out, out_len), 0);
	if (out_len && l->agent->pidfd)
		ck_assert_int_eq(stream_send_fd(s, l->agent->pidfd), 0);
	if (r == OPENING_DONE)
		opening_is_done(l, data + taken, len - taken);
	return taken;
}

static void on_raw_fd(struct stream *s, int fd)
{
	of_raw(s)->memory = fd;
}

static void on_raw_end(struct stream *s, enum stream_end end, int uv_error)
{
	link_over(of_raw(s));
}

static void on_raw_closed(struct stream *s)
{
	handle_closed(of_raw(s));
}

static const struct stream_ops raw_ops = {
	.on_data = on_raw_data,
	.on_fd = on_raw_fd,
	.on_end = on_raw_end,
	.on_closed = on_raw_closed,
};

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct fake_agent *a = ctx;
	struct fake_link *l = calloc(1, sizeof *l);

	ck_assert_ptr_nonnull(l);
	l->agent = a;
	l->memory = -1;
	if (a->hello.bytes == LINK_BYTES_IN_MEMORY || a->pidfd)
		stream_expect_fds(&l->raw);
	l->opening = opening_answer(a->ring, &a->hello, LINK_ROLE_RAGENT);
	ck_assert_ptr_nonnull(l->opening);
	ck_assert_int_eq(stream_open_fd(&l->raw, w, &raw_ops, fd), 0);
	l->handles++;
	a->handles++;
	stream_read_start(&l->raw);
}

static void on_listener_closed(void *ctx)
{
	struct fake_agent *a = ctx;

	a->handles--;
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };

/* --- agent --- */

struct fake_agent *fake_agent_start(
	const char *name, const char *path, const struct key_ring *ring, enum link_protection protection)
{
	struct fake_agent *a = calloc(1, sizeof *a);
	struct sockaddr_storage address;
	char text[ADDRESS_TEXT_MAX];
	int r;

	ck_assert_ptr_nonnull(a);
	a->ring = ring;
	a->last = &a->frames;
	a->ready = 1;
	a->hello = (struct link_hello){ .version_min = LINK_VERSION,
		.version_max = LINK_VERSION,
		.role = LINK_ROLE_AGENT,
		.protection = protection,
		.aead = aead_preferred(),
		.boot_id = (uint64_t)(uintptr_t)a,
		.workers = 1 };
	snprintf(a->hello.name, sizeof a->hello.name, "%s", name);
	snprintf(text, sizeof text, "unix:%s", path);
	ck_assert_int_eq(address_parse(text, &address), 0);
	a->listener = listener_create(w, (struct sockaddr *)&address, 16, 0, &listener_ops, a, &r);
	ck_assert_ptr_nonnull(a->listener);
	a->handles++;
	return a;
}

void fake_agent_stop(struct fake_agent *a)
{
	if (!a)
		return;
	fake_agent_die(a);
	wait_until(a->handles == 0);
	while (a->frames) {
		struct fake_frame *f = a->frames;
		a->frames = f->next;
		free(f);
	}
	if (a->pidfd)
		close(a->pidfd);
	free(a);
}

void fake_agent_share(struct fake_agent *a)
{
	a->hello.bytes = LINK_BYTES_IN_MEMORY;
}

void fake_agent_name_itself(struct fake_agent *a)
{
	a->pidfd = pidfd_open(getpid(), 0);
	ck_assert_int_ge(a->pidfd, 0);
}

void fake_agent_ready(struct fake_agent *a, int ready)
{
	a->ready = ready;
}

void fake_agent_silent(struct fake_agent *a)
{
	a->silent = 1;
}

void fake_agent_cut(struct fake_agent *a)
{
	if (a->link)
		link_over(a->link);
}

void fake_agent_die(struct fake_agent *a)
{
	listener_close(a->listener);
	a->listener = NULL;
	fake_agent_cut(a);
}

int fake_agent_linked(const struct fake_agent *a)
{
	return a->link != NULL;
}

unsigned fake_agent_links(const struct fake_agent *a)
{
	return a->links;
}

static struct fake_frame *unlink_frame(struct fake_agent *a, struct fake_frame **at)
{
	struct fake_frame *f = *at;

	*at = f->next;
	if (!f->next)
		a->last = at;
	return f;
}

struct fake_frame *fake_agent_take(struct fake_agent *a, enum frame_type type)
{
	for (struct fake_frame **at = &a->frames; *at; at = &(*at)->next)
		if ((*at)->type == type)
			return unlink_frame(a, at);
	return NULL;
}

unsigned fake_agent_count(const struct fake_agent *a, enum frame_type type)
{
	unsigned count = 0;

	for (const struct fake_frame *f = a->frames; f; f = f->next)
		count += f->type == type;
	return count;
}

size_t fake_agent_data_len(const struct fake_agent *a, uint32_t stream)
{
	size_t len = 0;

	for (const struct fake_frame *f = a->frames; f; f = f->next)
		if (f->type == FRAME_DATA && (stream == 0 || f->stream == stream))
			len += f->len;
	return len;
}

size_t fake_agent_take_data(struct fake_agent *a, uint32_t stream, uint8_t *out, size_t cap)
{
	struct fake_frame **at = &a->frames;
	size_t len = 0;

	while (*at) {
		if ((*at)->type != FRAME_DATA || (*at)->stream != stream) {
			at = &(*at)->next;
			continue;
		}
		struct fake_frame *f = unlink_frame(a, at);
		ck_assert_uint_le(len + f->len, cap);
		memcpy(out + len, f->payload, f->len);
		len += f->len;
		free(f);
	}
	return len;
}

void fake_agent_send(
	struct fake_agent *a, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	ck_assert_ptr_nonnull(a->link);
	ck_assert_int_eq(framed_send(&a->link->framed, stream, type, flags, payload, len), 0);
}

void fake_agent_say(struct fake_agent *a, uint32_t stream, enum frame_type type, const ProtobufCMessage *message)
{
	static uint8_t packed[FRAME_PAYLOAD_MAX];
	size_t len = protobuf_c_message_get_packed_size(message);

	ck_assert_uint_le(len, sizeof packed);
	protobuf_c_message_pack(message, packed);
	fake_agent_send(a, stream, type, 0, packed, len);
}

void fake_agent_consumed(struct fake_agent *a, uint32_t stream, const struct frame_consumed *consumed, uint8_t flags)
{
	uint8_t payload[FRAME_CONSUMED_LEN];

	frame_consumed_write(payload, consumed);
	fake_agent_send(a, stream, FRAME_CONSUMED, flags, payload, sizeof payload);
}

void fake_agent_end(struct fake_agent *a, uint32_t stream, uint8_t reason, uint8_t flags)
{
	fake_agent_send(a, stream, FRAME_END, flags, &reason, 1);
}
