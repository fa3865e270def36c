/* h2_state.c: a follower as bytes, for the owner that goes on with the same backend connection. Version 1:
 *
 * version (1) | phase (1) | bytes of the preface (1) | greeting (1) | leaving (1) | client's frames | backend's frames
 * | client's and backend's block (4 each) | owed by the client: SETTINGS, PINGs (4 each) | owed by the backend likewise
 * | newest, last, GOAWAY, allowed, unit (4 each) | how many streams are open (2) | these (4 each)
 *
 * Frames of one direction: bytes left (4) | of the header (1) | wanted (1) | gathered (1) | the header (9) | gathered
 * (8)
 *
 * A stranded conversation has no backend connection that could be passed, and a lost one ends. Neither is saved, and
 * nothing while the agent itself says or holds something: that lasts until one side has answered or said the rest.
 */
#include <string.h>

#include "sslagent/service/h2/h2_follower.h"

#define STATE_VERSION 1u

static void put_frames(struct wire_writer *w, const struct h2_frames *f)
{
	wire_put_u32(w, f->left);
	wire_put_u8(w, f->head_len);
	wire_put_u8(w, f->wanted);
	wire_put_u8(w, f->gathered_len);
	wire_put_bytes(w, f->head, sizeof f->head);
	wire_put_bytes(w, f->gathered, sizeof f->gathered);
}

static void get_frames(struct wire_reader *r, struct h2_frames *f)
{
	f->left = wire_u32(r);
	f->head_len = wire_u8(r);
	f->wanted = wire_u8(r);
	f->gathered_len = wire_u8(r);
	const uint8_t *head = wire_bytes(r, sizeof f->head);
	const uint8_t *gathered = wire_bytes(r, sizeof f->gathered);
	if (head && gathered) {
		memcpy(f->head, head, sizeof f->head);
		memcpy(f->gathered, gathered, sizeof f->gathered);
	}
}

/* The numbers of a follower, in their order. */
#define NUMBERS(X)                                                                                                     \
	X(client_block)                                                                                                \
	X(backend_block)                                                                                               \
	X(client_owes.settings)                                                                                        \
	X(client_owes.pings)                                                                                           \
	X(backend_owes.settings)                                                                                       \
	X(backend_owes.pings)                                                                                          \
	X(newest)                                                                                                      \
	X(last)                                                                                                        \
	X(goaway)                                                                                                      \
	X(allowed)                                                                                                     \
	X(unit)

static bool can_be_saved(const struct h2_follower *h)
{
	return h->client.head_len % H2_FRAME_HEAD_LEN == 0 && h->fate == H2_PASSES && h->block == H2_TAKEN &&
	       h->limit == H2_NO_LIMIT && h->health == H2_SOUND && h->held_len == 0 && h->own_ping == 0 &&
	       h->leaving <= H2_LEAVES && h->refused.count == 0;
}

size_t h2_follower_save(const struct h2_follower *h, uint8_t out[static H2_STATE_MAX])
{
	struct wire_writer w = wire_writer(out, H2_STATE_MAX);

	if (!can_be_saved(h))
		return 0;
	wire_put_u8(&w, STATE_VERSION);
	wire_put_u8(&w, h->phase);
	wire_put_u8(&w, h->preface_len);
	wire_put_u8(&w, h->greeting);
	wire_put_u8(&w, h->leaving);
	put_frames(&w, &h->client);
	put_frames(&w, &h->backend);
#define X(number) wire_put_u32(&w, h->number);
	NUMBERS(X)
#undef X
	wire_put_u16(&w, h->streams.count);
	for (unsigned i = 0; i < h->streams.count; i++)
		wire_put_u32(&w, h2_streams_get(&h->streams, i));
	return (size_t)wire_writer_len(&w);
}

static bool frames_are_sane(const struct h2_frames *f)
{
	bool amid = f->head_len < H2_FRAME_HEAD_LEN ? f->left == 0 : f->left > 0;

	return amid && f->head_len <= H2_FRAME_HEAD_LEN && f->wanted <= H2_GATHERED_MAX &&
	       f->gathered_len <= f->wanted &&
	       (f->head_len < H2_FRAME_HEAD_LEN || f->wanted - f->gathered_len <= (int64_t)f->left) &&
	       f->left < UINT32_C(1) << 24;
}

static bool h2_state_is_sane(const struct h2_follower *h)
{
	/* law 16: the rest of this folder takes all of this for granted, and uses some as lengths and indices */
	return h->phase <= H2_FOLLOWS && h->preface_len <= H2_PREFACE_LEN &&
	       (h->phase == H2_FOLLOWS) == (h->preface_len == H2_PREFACE_LEN) && h->greeting <= H2_GREETED &&
	       h->leaving <= H2_LEAVES && frames_are_sane(&h->client) && frames_are_sane(&h->backend) &&
	       h->goaway <= H2_NO_GOAWAY && h->newest <= H2_STREAM_MAX && h->last <= h->newest &&
	       h->allowed <= H2_STREAMS_MAX && h->streams.count <= H2_STREAMS_MAX;
}

static int h2_state_get(struct wire_reader *r, struct h2_follower *h)
{
	if (wire_u8(r) != STATE_VERSION)
		return -1;
	h->phase = wire_u8(r);
	h->preface_len = wire_u8(r);
	h->greeting = wire_u8(r);
	h->leaving = wire_u8(r);
	get_frames(r, &h->client);
	get_frames(r, &h->backend);
#define X(number) h->number = wire_u32(r);
	NUMBERS(X)
#undef X
	for (unsigned left = wire_u16(r); left > 0; left--) {
		if (h2_streams_put(&h->streams, wire_u32(r)) < 0)
			return -1;
	}
	return wire_reader_end(r) == 0 && h2_state_is_sane(h) ? 0 : -1;
}

struct h2_follower *h2_follower_restore(struct slabs *from, const uint8_t *in, size_t len)
{
	struct wire_reader r = wire_reader(in, len);
	struct h2_follower *h = h2_follower_create(from);

	if (h && h2_state_get(&r, h) == 0)
		return h;
	h2_follower_destroy(from, h);
	return NULL;
}
