/* h2_follower.c: the effect of each frame on the streams. Each direction has a table with one row for each frame
 * type. A frame that a row does not understand passes: the backend or the client judges whether it is allowed.
 */
#include <string.h>

#include "sslagent/service/h2/h2_follower.h"

/* A field that no request may have (RFC 9113 8.3): a literal that no header table keeps. The backend reads the block,
 * because later blocks may refer to it, and handles no request. nginx answers it with 400: clients pass over an answer
 * whose stream was refused, as they do after a cancelled one. (RST_STREAM behind the block does not stop nginx, and
 * HAProxy ends the connection for it.) */
static const uint8_t spoiler[] = { 0, 2, ':', 'x', 0 };

static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
_Static_assert(sizeof preface - 1 == H2_PREFACE_LEN, "its length is known");

struct row {
	void (*begins)(struct h2_follower *h, const struct h2_frame *f);
	size_t wants; /* so many first bytes of the payload, for says() */
	void (*says)(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes);
};

struct h2_follower *h2_follower_create(struct slabs *from)
{
	struct h2_follower *h = slabs_take(from);

	if (h)
		*h = (struct h2_follower){ .goaway = H2_NO_GOAWAY, .allowed = H2_STREAMS_MAX, .phase = H2_BEGINS };
	return h;
}

void h2_follower_destroy(struct slabs *from, struct h2_follower *h)
{
	if (h) {
		h2_streams_clear(&h->streams);
		h2_streams_clear(&h->refused);
	}
	slabs_give(from, h);
}

/* --- both directions --- */

/* SETTINGS or PING: an acknowledgement that the sender owed, or the other side owes one. */
static void h2_owe(const struct h2_frame *f, uint32_t *sender, uint32_t *other)
{
	if (!(f->flags & H2_ACK))
		++*other;
	else if (*sender > 0)
		--*sender;
}

static void h2_reset(struct h2_follower *h, const struct h2_frame *f)
{
	h2_streams_close(&h->streams, f->stream);
	h2_streams_close(&h->refused, f->stream);
}

/* --- the client's frames --- */

static void client_data(struct h2_follower *h, const struct h2_frame *f)
{
	if (f->flags & H2_END_STREAM)
		h2_streams_end(&h->streams, f->stream, H2_CLIENT_HALF);
}

/* After a GOAWAY that excludes the request, no answer is due. */
static void h2_begin_stream(struct h2_follower *h, uint32_t id)
{
	bool has_room = h->streams.count < H2_STREAMS_MAX;

	h->newest = id;
	if (id > h->goaway)
		return;
	h->block = has_room ? H2_TAKEN : H2_REFUSED;
	if (h2_streams_open(has_room ? &h->streams : &h->refused, id) < 0)
		h->phase = H2_LOST;
}

/* A request, or its trailers. */
static void client_headers(struct h2_follower *h, const struct h2_frame *f)
{
	h->client_block = f->stream;
	if ((f->stream & 1) && f->stream > h->newest)
		h2_begin_stream(h, f->stream);
	client_data(h, f);
}

static void client_settings(struct h2_follower *h, const struct h2_frame *f)
{
	h2_owe(f, &h->client_owes.settings, &h->backend_owes.settings);
}

/* Acknowledgements come in the order of the PINGs. */
static void client_ping(struct h2_follower *h, const struct h2_frame *f)
{
	h2_owe(f, &h->client_owes.pings, &h->backend_owes.pings);
	if (!(f->flags & H2_ACK) || h->own_ping == 0 || --h->own_ping > 0)
		return;
	h->fate = H2_DROPPED;
	if (h->leaving == H2_PROBED)
		h->leaving = H2_LEAVES;
}

static const struct row client_rows[H2_TYPE_COUNT] = {
	[H2_DATA] = { .begins = client_data },
	[H2_HEADERS] = { .begins = client_headers },
	[H2_RST_STREAM] = { .begins = h2_reset },
	[H2_SETTINGS] = { .begins = client_settings },
	[H2_PING] = { .begins = client_ping },
};

/* --- the client's frames when no backend has the conversation --- */

/* All earlier streams were over at the checkpoint. */
static void stranded_headers(struct h2_follower *h, const struct h2_frame *f)
{
	if (!(f->stream & 1)) {
		h->phase = H2_LOST;
		return;
	}
	if (h->newest == 0)
		h->last = f->stream > 2 ? f->stream - 2 : 0;
	if (f->stream > h->newest && h2_streams_open(&h->refused, f->stream) == 0)
		h->newest = f->stream;
}

static const struct row stranded_rows[H2_TYPE_COUNT] = {
	[H2_HEADERS] = { .begins = stranded_headers },
};

/* --- the backend's frames --- */

static void backend_data(struct h2_follower *h, const struct h2_frame *f)
{
	if (f->flags & H2_END_STREAM)
		h2_streams_end(&h->streams, f->stream, H2_BACKEND_HALF);
}

static void backend_headers(struct h2_follower *h, const struct h2_frame *f)
{
	h->backend_block = f->stream;
	backend_data(h, f);
}

static void backend_settings(struct h2_follower *h, const struct h2_frame *f)
{
	h2_owe(f, &h->backend_owes.settings, &h->client_owes.settings);
	if (h->held_len == H2_FRAME_HEAD_LEN && h2_is_settings(h->held))
		h->limit = H2_LIMIT_COMES;
}

static void h2_setting(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	uint32_t value = wire_load_u32(bytes + 2);

	if (wire_load_u16(bytes) == H2_SETTING_STREAMS && !(f->flags & H2_ACK))
		h->allowed = value < H2_STREAMS_MAX ? value : H2_STREAMS_MAX;
	h2_frames_want(&h->backend, H2_SETTING_LEN);
}

/* The client's open streams are cut off, and the client has done nothing wrong. */
static void lose_by_backend(struct h2_follower *h)
{
	h->phase = H2_LOST;
	h->lost_by = H2_BACKEND;
}

static void promise_begins(struct h2_follower *h, const struct h2_frame *f)
{
	h->backend_block = f->stream;
	if (f->flags & H2_PADDED) /* the length of the padding comes first */
		h2_frames_want(&h->backend, 5);
}

static void h2_promise(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	uint32_t id = wire_load_u32(bytes + (f->flags & H2_PADDED ? 1 : 0)) & H2_STREAM_MAX;

	if (id == 0 || (id & 1) || h->streams.count >= H2_STREAMS_MAX || h2_streams_open(&h->streams, id) < 0)
		lose_by_backend(h);
}

static void backend_ping(struct h2_follower *h, const struct h2_frame *f)
{
	h2_owe(f, &h->backend_owes.pings, &h->client_owes.pings);
}

static void backend_pinged(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	if ((f->flags & H2_ACK) || memcmp(bytes, h2_own_ping, H2_PING_LEN) != 0)
		return;
	h->own_ping = h->client_owes.pings;
	if (h->leaving == H2_PROBES)
		h->leaving = H2_PROBED;
}

static void h2_goaway(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	uint32_t last = wire_load_u32(bytes) & H2_STREAM_MAX;

	if (last < h->goaway)
		h->goaway = last;
	if (wire_load_u32(bytes + 4) != H2_NO_ERROR)
		h->health = H2_FAILED;
	h2_streams_close_above(&h->streams, last);
}

static const struct row backend_rows[H2_TYPE_COUNT] = {
	[H2_DATA] = { .begins = backend_data },
	[H2_HEADERS] = { .begins = backend_headers },
	[H2_RST_STREAM] = { .begins = h2_reset },
	[H2_SETTINGS] = { .begins = backend_settings, .wants = H2_SETTING_LEN, .says = h2_setting },
	[H2_PUSH_PROMISE] = { .begins = promise_begins, .wants = 4, .says = h2_promise },
	[H2_PING] = { .begins = backend_ping, .wants = H2_PING_LEN, .says = backend_pinged },
	[H2_GOAWAY] = { .wants = 8, .says = h2_goaway },
};

/* --- bytes --- */

static void frame_begins(
	struct h2_follower *h, struct h2_frames *frames, const struct row *row, const struct h2_frame *f)
{
	if (row->wants)
		h2_frames_want(frames, row->wants);
	if (row->begins)
		row->begins(h, f);
}

/* Takes bytes of [data, data + len) up to the next event, and handles it. */
static size_t h2_step(
	struct h2_follower *h, struct h2_frames *frames, const struct row *rows, const uint8_t *data, size_t len)
{
	static const struct row unknown = { 0 };
	enum h2_event event;
	size_t n = h2_frames_take(frames, data, len, &event);

	if (event == H2_NOTHING)
		return n;
	struct h2_frame f = h2_frames_head(frames);
	const struct row *row = f.type < H2_TYPE_COUNT ? &rows[f.type] : &unknown;
	if (event == H2_HEAD)
		frame_begins(h, frames, row, &f);
	else
		row->says(h, &f, frames->gathered);
	return n;
}

static bool leaves_block_open(const struct h2_frame *f)
{
	return (f->type == H2_HEADERS || f->type == H2_PUSH_PROMISE || f->type == H2_CONTINUATION) &&
	       !(f->flags & H2_END_HEADERS);
}

/* The frame is the last one of a refused block: one more follows it. */
static bool gets_spoiler(const struct h2_follower *h, const struct h2_frame *f)
{
	return h->block == H2_REFUSED && h->client_block != 0 && !leaves_block_open(f);
}

static void h2_spoil(struct h2_follower *h, struct service_outgoing *out)
{
	struct wire_writer w = wire_writer(h->to_backend + out->words_len, H2_TO_BACKEND_MAX - out->words_len);

	h2_put_head(&w, &(struct h2_frame){ .len = sizeof spoiler,
				.type = H2_CONTINUATION,
				.flags = H2_END_HEADERS,
				.stream = h->client_block });
	wire_put_bytes(&w, spoiler, sizeof spoiler);
	out->words = h->to_backend;
	out->words_len += (size_t)wire_writer_len(&w);
}

static void client_frame_ended(struct h2_follower *h, struct service_outgoing *out)
{
	struct h2_frame f = h2_frames_head(&h->client);

	h->fate = H2_PASSES;
	if (leaves_block_open(&f))
		return;
	if (gets_spoiler(h, &f))
		h2_spoil(h, out);
	if (h->client_block > h->last && h->client_block == h->newest && h->phase == H2_FOLLOWS)
		h->last = h->newest;
	h->client_block = 0;
	h->block = H2_TAKEN;
}

/* A header goes on when it is complete. @n bytes of it have come, and @before earlier. */
static void pass_head(struct h2_follower *h, size_t n, size_t before, struct service_outgoing *out)
{
	struct h2_frame f = h2_frames_head(&h->client);
	struct wire_writer w = wire_writer(h->to_backend, H2_TO_BACKEND_MAX);
	const bool is_spoiled = gets_spoiler(h, &f);

	if (n + before < H2_FRAME_HEAD_LEN || h->fate == H2_DROPPED)
		return;
	if (before == 0 && !is_spoiled) {
		out->len += n;
		return;
	}
	wire_put_bytes(&w, h->client.head, H2_FRAME_HEAD_LEN);
	if (is_spoiled)
		h->to_backend[4] &= (uint8_t)~H2_END_HEADERS;
	out->words = h->to_backend;
	out->words_len = H2_FRAME_HEAD_LEN;
}

static size_t follow_client(struct h2_follower *h, const uint8_t *data, size_t len, struct service_outgoing *out)
{
	const size_t before = h->client.head_len;

	if (before == 0 && h->client_block == 0)
		h->unit++;
	size_t n = h2_step(h, &h->client, h->phase == H2_FOLLOWS ? client_rows : stranded_rows, data, len);
	if (before < H2_FRAME_HEAD_LEN)
		pass_head(h, n, before, out);
	else if (h->fate == H2_PASSES)
		out->len += n;
	if (h->client.head_len == 0)
		client_frame_ended(h, out);
	return n;
}

static size_t follow_preface(struct h2_follower *h, const uint8_t *data, size_t len, struct service_outgoing *out)
{
	size_t n = H2_PREFACE_LEN - h->preface_len;

	n = n < len ? n : len;
	if (memcmp(data, preface + h->preface_len, n) != 0) {
		h->phase = H2_LOST;
		return n;
	}
	out->len += n;
	h->preface_len = (uint8_t)(h->preface_len + n);
	if (h->preface_len == H2_PREFACE_LEN)
		h->phase = H2_FOLLOWS;
	return n;
}

size_t h2_from_client(struct h2_follower *h, const uint8_t *data, size_t len, struct service_outgoing *out)
{
	size_t used = 0;

	*out = (struct service_outgoing){ 0 };
	while (used < len && used == out->len && out->words_len == 0 && h->phase != H2_LOST)
		used += h->phase == H2_BEGINS ? follow_preface(h, data + used, len - used, out)
					      : follow_client(h, data + used, len - used, out);
	return h->phase == H2_LOST ? len : used;
}

static void backend_frame_ended(struct h2_follower *h)
{
	struct h2_frame f = h2_frames_head(&h->backend);

	h->limit = H2_NO_LIMIT;
	if (!leaves_block_open(&f))
		h->backend_block = 0;
}

static void h2_greet(struct h2_follower *h)
{
	struct h2_frame f = h2_frames_head(&h->backend);

	h->greeting = H2_GREETED;
	if (h->phase != H2_STRANDED && (f.type != H2_SETTINGS || (f.flags & H2_ACK)))
		lose_by_backend(h);
}

void h2_from_backend(struct h2_follower *h, const uint8_t *data, size_t len)
{
	for (size_t used = 0; used < len;) {
		used += h2_step(h, &h->backend, backend_rows, data + used, len - used);
		if (h->greeting == H2_NOT_GREETED && h->backend.head_len % H2_FRAME_HEAD_LEN == 0)
			h2_greet(h);
		if (h->held_len == H2_FRAME_HEAD_LEN && h->backend.head_len % H2_FRAME_HEAD_LEN == 0)
			h->held_len = 0;
		if (h->backend.head_len == 0)
			backend_frame_ended(h);
	}
}

/* --- what is known --- */

static bool owes_nothing(const struct h2_owed *owed)
{
	return owed->settings == 0 && owed->pings == 0;
}

bool h2_is_idle(const struct h2_follower *h)
{
	/* no backend greets a stranded one: it is idle if it has nothing to say to its client */
	bool greeted = h->phase == H2_FOLLOWS ? h->greeting == H2_GREETED : h->phase == H2_STRANDED && h->newest == 0;
	bool is_said = h->leaving == H2_STAYS || h->goaway != H2_NO_GOAWAY;

	/* an acknowledgement that is owed belongs to this backend connection: another one would not understand it */
	return greeted && is_said && h->refused.count == 0 && h2_is_between_frames(&h->client, h->client_block) &&
	       !h2_is_amid_answer(h) && h->streams.count == 0 && owes_nothing(&h->client_owes) &&
	       owes_nothing(&h->backend_owes);
}

bool h2_is_amid_answer(const struct h2_follower *h)
{
	return !h2_is_between_frames(&h->backend, h->backend_block) || h->held_len;
}

bool h2_said_last(const struct h2_follower *h)
{
	return h->phase != H2_STRANDED && h->goaway < H2_STREAM_MAX && h->streams.count == 0 && !h2_is_amid_answer(h);
}

bool h2_failed(const struct h2_follower *h)
{
	return h->health == H2_FAILED && !h2_is_amid_answer(h);
}

uint32_t h2_head_under_way(const struct h2_follower *h)
{
	const struct h2_frames *f = &h->client;

	if (h->phase == H2_BEGINS)
		return h->preface_len ? UINT32_MAX : 0;
	if (h2_is_between_frames(f, h->client_block))
		return 0;
	bool is_body = f->head_len == H2_FRAME_HEAD_LEN && h2_frames_head(f).type == H2_DATA;
	return is_body ? 0 : h->unit;
}

bool h2_begins_stream(const struct h2_follower *h)
{
	return h->phase == H2_FOLLOWS && h->client_block != 0 && h->client_block == h->newest && h->newest > h->last &&
	       h2_streams_has(&h->streams, h->newest);
}
