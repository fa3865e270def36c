/* h2_words.c: the agent's own frames, inserted between two frames of the backend: GOAWAY (RFC 9113 6.8) and refusals of
 * streams; and the limit of streams, inside SETTINGS.
 *
 * A GOAWAY with the highest possible stream asks the client to open no more streams, and promises nothing about
 * streams that it opens meanwhile. They are served: until the client has answered the PING beside that GOAWAY, a
 * request may be on its way. (The PING comes first, because some clients allow nothing behind a GOAWAY.) But an idle
 * client may not read before its next request, and a client like httpx then gives that request up. So it gets a PING
 * alone first, and if it does not answer, only the last GOAWAY.
 *
 * The GOAWAY that ends a conversation has the highest stream that a backend may have worked
 * on, so the client can repeat all later requests. Some clients (curl 7.88) repeat a request only if RST_STREAM
 * refused its stream in a record before the GOAWAY. So a stranded conversation sends both.
 */
#include <string.h>

#include "sslagent/service/h2/h2_follower.h"

#define GOAWAY_LEN 8u
#define RESET_LEN  4u
#define RESETS_MAX 3u /* so many have room, and so many answers */

/* A block of `:status: 502`: 8 is the number of `:status`, and the header tables stay as they are (RFC 7541 6.2.2). */
static const uint8_t bad_gateway[] = { 8, 3, '5', '0', '2' };

static void put_settings(struct wire_writer *w, uint8_t flags)
{
	h2_put_head(w, &(struct h2_frame){ .type = H2_SETTINGS, .flags = flags });
}

static void put_goaway(struct wire_writer *w, uint32_t last, enum h2_error error)
{
	h2_put_head(w, &(struct h2_frame){ .len = GOAWAY_LEN, .type = H2_GOAWAY });
	wire_put_u32(w, last);
	wire_put_u32(w, (uint32_t)error);
}

/* The client may safely ask again (RFC 9113 8.7). */
static void put_refusal(struct wire_writer *w, uint32_t stream)
{
	h2_put_head(w, &(struct h2_frame){ .len = RESET_LEN, .type = H2_RST_STREAM, .stream = stream });
	wire_put_u32(w, H2_REFUSED_STREAM);
}

const uint8_t h2_own_ping[H2_PING_LEN] = "CSSLseen";

static void put_ping(struct wire_writer *w)
{
	h2_put_head(w, &(struct h2_frame){ .len = H2_PING_LEN, .type = H2_PING });
	wire_put_bytes(w, h2_own_ping, H2_PING_LEN);
}

/* SETTINGS get room for one setting more. */
static void put_held(const struct h2_follower *h, struct wire_writer *w)
{
	uint32_t len = (uint32_t)h->held[0] << 16 | wire_load_u16(h->held + 1);

	wire_put_u24(w, len + (h2_is_settings(h->held) ? H2_SETTING_LEN : 0));
	wire_put_bytes(w, h->held + 3, H2_FRAME_HEAD_LEN - 3);
}

static void put_limit(const struct h2_follower *h, struct wire_writer *w)
{
	wire_put_u16(w, H2_SETTING_STREAMS);
	wire_put_u32(w, h->allowed);
}

size_t h2_hold(struct h2_follower *h, const uint8_t *data, size_t len)
{
	size_t n = H2_FRAME_HEAD_LEN - h->held_len;

	if (h->backend.head_len || (h->held_len == 0 && len >= H2_FRAME_HEAD_LEN && !h2_is_settings(data)))
		return 0;
	n = n < len ? n : len;
	memcpy(h->held + h->held_len, data, n);
	h->held_len = (uint8_t)(h->held_len + n);
	return n;
}

void h2_wind_down(struct h2_follower *h)
{
	if (h->leaving == H2_STAYS)
		h->leaving = h->streams.count ? H2_LEAVES : H2_PROBES;
}

/* Of an idle stranded conversation the last stream is not known, but its first was stream 1, and httpx repeats nothing
 * behind stream 0. */
static uint32_t last_reached(const struct h2_follower *h)
{
	return h->phase == H2_STRANDED && h->newest == 0 ? 1 : h->last;
}

enum due { DUE_NOTHING, DUE_REFUSALS, DUE_PING, DUE_GOAWAY, DUE_LAST_GOAWAY };

/* Between two frames that are no block. */
static enum due h2_due(const struct h2_follower *h)
{
	if (h->phase != H2_STRANDED && h->greeting == H2_NOT_GREETED)
		return DUE_NOTHING;
	if (h->refused.count)
		return DUE_REFUSALS;
	if (h->phase == H2_LOST || h->goaway != H2_NO_GOAWAY)
		return DUE_NOTHING;
	if (h->phase == H2_STRANDED)
		return DUE_LAST_GOAWAY;
	return h->leaving == H2_PROBES ? DUE_PING : h->leaving == H2_LEAVES ? DUE_GOAWAY : DUE_NOTHING;
}

static void put_due(const struct h2_follower *h, struct wire_writer *w)
{
	const enum due now = h2_due(h);

	for (unsigned i = 0; now == DUE_REFUSALS && i < RESETS_MAX && i < h->refused.count; i++)
		put_refusal(w, h2_streams_id(&h->refused, i));
	if (now == DUE_PING || now == DUE_GOAWAY)
		put_ping(w);
	if (now == DUE_GOAWAY)
		put_goaway(w, H2_STREAM_MAX, H2_NO_ERROR);
	if (now == DUE_LAST_GOAWAY)
		put_goaway(w, last_reached(h), H2_NO_ERROR);
}

static size_t to_limit(const struct h2_follower *h)
{
	return h->backend.head_len == H2_FRAME_HEAD_LEN && h->backend.left > H2_SETTING_LEN
		       ? h->backend.left - H2_SETTING_LEN
		       : 0;
}

const uint8_t *h2_words(struct h2_follower *h, size_t *len)
{
	struct wire_writer w = wire_writer(h->words, sizeof h->words);

	if (h->limit == H2_LIMIT_COMES && to_limit(h) == 0)
		put_limit(h, &w);
	else if (h->held_len == H2_FRAME_HEAD_LEN)
		put_held(h, &w);
	else if (h2_is_between_frames(&h->backend, h->backend_block))
		put_due(h, &w);
	*len = (size_t)wire_writer_len(&w);
	return *len ? h->words : NULL;
}

/* Up to the first header that is not whole, or begins SETTINGS. @at: where the next one is. */
static size_t to_held(const uint8_t *data, size_t len, size_t at)
{
	while (at + H2_FRAME_HEAD_LEN <= len && !h2_is_settings(data + at))
		at += H2_FRAME_HEAD_LEN + ((size_t)data[at] << 16 | wire_load_u16(data + at + 1));
	return at < len ? at : len;
}

size_t h2_until_words(const struct h2_follower *h, const uint8_t *data, size_t len)
{
	size_t to_end = h2_frames_to_end(&h->backend);

	if (h->held_len)
		return 0;
	if (h->limit == H2_LIMIT_COMES)
		return to_limit(h) < len ? to_limit(h) : len;
	if (h->backend.head_len % H2_FRAME_HEAD_LEN) /* h2_hold() did not see its first bytes */
		return to_end < len ? to_end : len;
	size_t to_stop = to_held(data, len, to_end);
	if (h2_due(h) == DUE_NOTHING)
		return to_stop;
	if (to_end == 0 && h->backend_block)
		to_end = H2_FRAME_HEAD_LEN; /* until the end of the frame that continues the block */
	return to_end < to_stop ? to_end : to_stop;
}

/* Works in every phase. */
const uint8_t *h2_farewell(struct h2_follower *h, enum h2_error error, size_t *len)
{
	struct wire_writer w = wire_writer(h->words, sizeof h->words);
	uint32_t reached = last_reached(h), last = reached < h->goaway ? reached : h->goaway;

	if (h2_is_amid_answer(h))
		return NULL;
	*len = 0;
	if ((h->goaway == last && error == H2_NO_ERROR) || h2_failed(h))
		return h->words;
	if (h->greeting == H2_NOT_GREETED && h->phase != H2_STRANDED)
		put_settings(&w, 0);
	put_goaway(&w, last, error);
	*len = (size_t)wire_writer_len(&w);
	return h->words;
}

/* A backend that ended before its SETTINGS may have read all that it was given: none of that is excluded (law 10). */
const uint8_t *h2_bad_gateway(struct h2_follower *h, size_t *len)
{
	struct wire_writer w = wire_writer(h->words, sizeof h->words);
	struct h2_frame answer = {
		.len = sizeof bad_gateway, .type = H2_HEADERS, .flags = H2_END_STREAM | H2_END_HEADERS
	};

	put_settings(&w, 0);
	for (unsigned i = 0; i < h->streams.count && h2_streams_id(&h->streams, i) <= h->last; i++) {
		if (i == RESETS_MAX)
			return NULL;
		answer.stream = h2_streams_id(&h->streams, i);
		h2_put_head(&w, &answer);
		wire_put_bytes(&w, bad_gateway, sizeof bad_gateway);
	}
	put_goaway(&w, last_reached(h), H2_NO_ERROR);
	*len = (size_t)wire_writer_len(&w);
	return h->phase == H2_FOLLOWS && h->greeting == H2_NOT_GREETED && answer.stream ? h->words : NULL;
}
