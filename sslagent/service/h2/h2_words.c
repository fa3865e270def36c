/* h2_words.c: the agent's own frames, inserted between two frames of the backend: GOAWAY (RFC 9113 6.8), and the
 * frames that a stranded conversation owes its client.
 *
 * A GOAWAY with the highest possible stream asks the client to open no more streams, and promises nothing about
 * streams that it opens meanwhile. The GOAWAY that ends a conversation has the highest stream that a backend may
 * have worked on, so the client can repeat all later requests. Some clients (curl 7.88) repeat a request only if
 * RST_STREAM refused its stream in a record before the GOAWAY. So a stranded conversation sends both.
 */
#include "sslagent/service/h2/h2_inside.h"

#define GOAWAY_LEN 8u
#define RESET_LEN  4u
#define RESETS_MAX 3u /* so many have room */

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

static void put_pong(struct wire_writer *w, const uint8_t ping[static H2_PING_LEN])
{
	h2_put_head(w, &(struct h2_frame){ .len = H2_PING_LEN, .type = H2_PING, .flags = H2_ACK });
	wire_put_bytes(w, ping, H2_PING_LEN);
}

void h2_wind_down(struct h2_follower *h)
{
	h->leaving = H2_LEAVES;
}

enum due { DUE_NOTHING, DUE_GOAWAY, DUE_ANSWERS, DUE_REFUSALS };

static enum due due(const struct h2_follower *h)
{
	if (h->phase == H2_STRANDED && h2_open_streams(h))
		return DUE_REFUSALS;
	if (h->phase == H2_STRANDED && (h->backend_owes.settings || h->backend_owes.pings))
		return DUE_ANSWERS;
	if (h->phase == H2_FOLLOWS && h->leaving == H2_LEAVES && h->greeting == H2_GREETED && h->goaway == H2_NO_GOAWAY)
		return DUE_GOAWAY;
	return DUE_NOTHING;
}

const uint8_t *h2_words(struct h2_follower *h, size_t *len)
{
	struct wire_writer w = wire_writer(h->words, sizeof h->words);
	enum due now = due(h);

	if (now == DUE_NOTHING || h2_is_amid_answer(h))
		return NULL;
	for (unsigned i = 0; now == DUE_REFUSALS && i < RESETS_MAX && i < h2_open_streams(h); i++)
		put_refusal(&w, h2_streams_id(&h->streams, i));
	if (now != DUE_REFUSALS && h->goaway == H2_NO_GOAWAY)
		put_goaway(&w, H2_STREAM_MAX, H2_NO_ERROR);
	if (now == DUE_ANSWERS && h->backend_owes.settings)
		put_settings(&w, H2_ACK);
	if (now == DUE_ANSWERS && h->backend_owes.pings)
		put_pong(&w, h->ping);
	*len = (size_t)wire_writer_len(&w);
	return h->words;
}

size_t h2_until_words(const struct h2_follower *h, size_t len)
{
	size_t to_end = h2_frames_to_end(&h->backend);

	if (due(h) == DUE_NOTHING)
		return len;
	if (to_end == 0 && h->backend_block)
		to_end = H2_FRAME_HEAD_LEN; /* until the end of the frame that continues the block */
	return to_end < len ? to_end : len;
}

/* Works in every phase. */
const uint8_t *h2_farewell(struct h2_follower *h, enum h2_error error, size_t *len)
{
	struct wire_writer w = wire_writer(h->words, sizeof h->words);
	uint32_t last = h->last < h->goaway ? h->last : h->goaway;

	if (h2_is_amid_answer(h))
		return NULL;
	*len = 0;
	if (h->goaway == last && error == H2_NO_ERROR)
		return h->words;
	if (h->greeting == H2_NOT_GREETED && h->phase != H2_STRANDED)
		put_settings(&w, 0);
	put_goaway(&w, last, error);
	*len = (size_t)wire_writer_len(&w);
	return h->words;
}
