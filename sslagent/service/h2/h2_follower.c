/* h2_follower.c: the effect of each frame on the streams. Each direction has a table with one row for each frame
 * type. A frame that a row does not understand passes: the backend or the client judges whether it is allowed.
 */
#include <string.h>

#include "sslagent/service/h2/h2_inside.h"

#define SETTING_LEN            6u
#define SETTING_STREAMS        3u     /* SETTINGS_MAX_CONCURRENT_STREAMS */
#define STRANDED_FRAME_LEN_MAX 16384u /* the limit that every client may use (RFC 9113 4.2), without a body */

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
		*h = (struct h2_follower){ .goaway = H2_NO_GOAWAY,
			.allowed = H2_STREAMS_MAX,
			.allowed_next = H2_STREAMS_MAX,
			.phase = H2_BEGINS };
	return h;
}

void h2_follower_destroy(struct slabs *from, struct h2_follower *h)
{
	if (h)
		h2_streams_clear(&h->streams);
	slabs_give(from, h);
}

size_t h2_follower_len(void)
{
	return sizeof(struct h2_follower);
}

/* --- both directions --- */

static void pay(uint32_t *owed)
{
	if (*owed > 0)
		--*owed;
}

static void settings(const struct h2_frame *f, struct h2_owed *sender, struct h2_owed *other)
{
	if (f->flags & H2_ACK)
		pay(&sender->settings);
	else
		other->settings++;
}

static void ping(const struct h2_frame *f, struct h2_owed *sender, struct h2_owed *other)
{
	if (f->flags & H2_ACK)
		pay(&sender->pings);
	else
		other->pings++;
}

static void reset(struct h2_follower *h, const struct h2_frame *f)
{
	h2_streams_close(&h->streams, f->stream);
}

/* --- the client's frames --- */

static void client_data(struct h2_follower *h, const struct h2_frame *f)
{
	if (f->flags & H2_END_STREAM)
		h2_streams_end(&h->streams, f->stream, H2_CLIENT_HALF);
}

/* A request, or its trailers. After a GOAWAY that excludes the request, no answer is due. */
static void client_headers(struct h2_follower *h, const struct h2_frame *f)
{
	h->client_block = f->stream;
	if ((f->stream & 1) && f->stream > h->newest) {
		h->newest = f->stream;
		if (f->stream > h->goaway)
			return;
		if (h2_streams_asked(&h->streams) >= h->allowed || h2_streams_open(&h->streams, f->stream) < 0)
			h->phase = H2_LOST;
	}
	client_data(h, f);
}

static void client_settings(struct h2_follower *h, const struct h2_frame *f)
{
	settings(f, &h->client_owes, &h->backend_owes);
	if (h->client_owes.settings == 0)
		h->allowed = h->allowed_next;
}

static void client_ping(struct h2_follower *h, const struct h2_frame *f)
{
	ping(f, &h->client_owes, &h->backend_owes);
}

static const struct row client_rows[H2_TYPE_COUNT] = {
	[H2_DATA] = { .begins = client_data },
	[H2_HEADERS] = { .begins = client_headers },
	[H2_RST_STREAM] = { .begins = reset },
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
	if (f->stream > h->newest && h2_streams_open(&h->streams, f->stream) == 0)
		h->newest = f->stream;
}

static void stranded_settings(struct h2_follower *h, const struct h2_frame *f)
{
	settings(f, &h->client_owes, &h->backend_owes);
}

static void stranded_ping(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	if (f->flags & H2_ACK)
		return;
	memcpy(h->ping, bytes, H2_PING_LEN);
	h->backend_owes.pings = 1;
}

static const struct row stranded_rows[H2_TYPE_COUNT] = {
	[H2_HEADERS] = { .begins = stranded_headers },
	[H2_SETTINGS] = { .begins = stranded_settings },
	[H2_PING] = { .wants = H2_PING_LEN, .says = stranded_ping },
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
	settings(f, &h->backend_owes, &h->client_owes);
}

/* The client may have opened streams before it learned the limit. */
static void setting(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	uint32_t value = wire_load_u32(bytes + 2);

	if (wire_load_u16(bytes) == SETTING_STREAMS && !(f->flags & H2_ACK)) {
		h->allowed_next = value < H2_STREAMS_MAX ? value : H2_STREAMS_MAX;
		if (h->allowed < h->allowed_next)
			h->allowed = h->allowed_next;
	}
	h2_frames_want(&h->backend, SETTING_LEN);
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

static void promise(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	uint32_t id = wire_load_u32(bytes + (f->flags & H2_PADDED ? 1 : 0)) & H2_STREAM_MAX;

	if (id == 0 || (id & 1) || h2_streams_open(&h->streams, id) < 0)
		lose_by_backend(h);
}

static void backend_ping(struct h2_follower *h, const struct h2_frame *f)
{
	ping(f, &h->backend_owes, &h->client_owes);
}

static void goaway(struct h2_follower *h, const struct h2_frame *f, const uint8_t *bytes)
{
	uint32_t last = wire_load_u32(bytes) & H2_STREAM_MAX;

	if (last < h->goaway)
		h->goaway = last;
	h2_streams_close_above(&h->streams, last);
}

static const struct row backend_rows[H2_TYPE_COUNT] = {
	[H2_DATA] = { .begins = backend_data },
	[H2_HEADERS] = { .begins = backend_headers },
	[H2_RST_STREAM] = { .begins = reset },
	[H2_SETTINGS] = { .begins = backend_settings, .wants = SETTING_LEN, .says = setting },
	[H2_PUSH_PROMISE] = { .begins = promise_begins, .wants = 4, .says = promise },
	[H2_PING] = { .begins = backend_ping },
	[H2_GOAWAY] = { .wants = 4, .says = goaway },
};

/* --- bytes --- */

/* For example, a client that never spoke HTTP/2. */
static int is_no_frame(const struct h2_frame *f)
{
	return f->len > STRANDED_FRAME_LEN_MAX && f->type != H2_DATA && f->type != H2_HEADERS;
}

static void frame_begins(
	struct h2_follower *h, struct h2_frames *frames, const struct row *row, const struct h2_frame *f)
{
	if (h->phase == H2_STRANDED && frames == &h->client && is_no_frame(f))
		h->phase = H2_LOST;
	if (row->wants)
		h2_frames_want(frames, row->wants);
	if (row->begins)
		row->begins(h, f);
}

/* Takes bytes of [data, data + len) up to the next event, and handles it. */
static size_t step(
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

static int leaves_block_open(const struct h2_frame *f)
{
	return (f->type == H2_HEADERS || f->type == H2_PUSH_PROMISE || f->type == H2_CONTINUATION) &&
	       !(f->flags & H2_END_HEADERS);
}

static void client_frame_ended(struct h2_follower *h)
{
	struct h2_frame f = h2_frames_head(&h->client);

	if (leaves_block_open(&f))
		return;
	if (h->client_block > h->last && h->client_block == h->newest && h->phase == H2_FOLLOWS)
		h->last = h->newest;
	h->client_block = 0;
}

static size_t follow_client(struct h2_follower *h, const uint8_t *data, size_t len)
{
	if (h->client.head_len == 0 && h->client_block == 0)
		h->unit++;
	size_t n = step(h, &h->client, h->phase == H2_FOLLOWS ? client_rows : stranded_rows, data, len);
	if (h->client.head_len == 0)
		client_frame_ended(h);
	return n;
}

/* The client's first bytes show whether an HTTP/2 conversation begins. */
static size_t follow_preface(struct h2_follower *h, const uint8_t *data, size_t len)
{
	size_t n = H2_PREFACE_LEN - h->preface_len;

	n = n < len ? n : len;
	if (memcmp(data, preface + h->preface_len, n) != 0) {
		h->phase = h->preface_len == 0 && data[0] != preface[0] ? H2_STRANDED : H2_LOST;
		return 0;
	}
	h->preface_len = (uint8_t)(h->preface_len + n);
	if (h->preface_len == H2_PREFACE_LEN)
		h->phase = H2_FOLLOWS;
	return n;
}

void h2_from_client(struct h2_follower *h, const uint8_t *data, size_t len)
{
	size_t used = 0;

	while (used < len && h->phase != H2_LOST)
		used += h->phase == H2_BEGINS ? follow_preface(h, data + used, len - used)
					      : follow_client(h, data + used, len - used);
}

static void greet(struct h2_follower *h)
{
	struct h2_frame f = h2_frames_head(&h->backend);

	h->greeting = H2_GREETED;
	if (h->phase != H2_STRANDED && (f.type != H2_SETTINGS || (f.flags & H2_ACK)))
		lose_by_backend(h);
}

void h2_from_backend(struct h2_follower *h, const uint8_t *data, size_t len)
{
	for (size_t used = 0; used < len;) {
		used += step(h, &h->backend, backend_rows, data + used, len - used);
		if (h->greeting == H2_NOT_GREETED && h->backend.head_len % H2_FRAME_HEAD_LEN == 0)
			greet(h);
		struct h2_frame f = h2_frames_head(&h->backend);
		if (h->backend.head_len == 0 && !leaves_block_open(&f))
			h->backend_block = 0;
	}
}

/* --- what is known --- */

enum h2_phase h2_phase(const struct h2_follower *h)
{
	return (enum h2_phase)h->phase;
}

unsigned h2_open_streams(const struct h2_follower *h)
{
	return h2_streams_count(&h->streams);
}

static int owes_nothing(const struct h2_owed *owed)
{
	return owed->settings == 0 && owed->pings == 0;
}

int h2_is_idle(const struct h2_follower *h)
{
	int greeted = h->phase == H2_FOLLOWS ? h->greeting == H2_GREETED : h->phase == H2_STRANDED && h->newest == 0;

	return greeted && h2_is_between_frames(&h->client, h->client_block) && !h2_is_amid_answer(h) &&
	       h2_open_streams(h) == 0 && owes_nothing(&h->client_owes) && owes_nothing(&h->backend_owes);
}

int h2_is_amid_answer(const struct h2_follower *h)
{
	return !h2_is_between_frames(&h->backend, h->backend_block);
}

int h2_said_last(const struct h2_follower *h)
{
	return h->goaway < H2_STREAM_MAX && h2_open_streams(h) == 0 && !h2_is_amid_answer(h);
}

uint32_t h2_head_under_way(const struct h2_follower *h)
{
	const struct h2_frames *f = &h->client;

	if (h->phase == H2_BEGINS)
		return h->preface_len ? UINT32_MAX : 0;
	if (h2_is_between_frames(f, h->client_block))
		return 0;
	int is_body = f->head_len == H2_FRAME_HEAD_LEN && h2_frames_head(f).type == H2_DATA;
	return is_body ? 0 : h->unit;
}

enum h2_side h2_lost_by(const struct h2_follower *h)
{
	return (enum h2_side)h->lost_by;
}

int h2_begins_stream(const struct h2_follower *h)
{
	return h->phase == H2_FOLLOWS && h->client_block != 0 && h->client_block == h->newest && h->newest > h->last &&
	       h2_streams_has(&h->streams, h->newest);
}

int h2_was_asked(const struct h2_follower *h)
{
	return h->newest != 0;
}
