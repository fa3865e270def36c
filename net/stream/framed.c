/* framed.c: frames in and out of a link's stream. The batch that is being filled is always the end of the stream's
 * output. So it is sealed in place, without a buffer of its own. */
#include <string.h>
#include <unistd.h>

#include "net/loop/worker.h"
#include "net/memory/container_of.h"
#include "net/stream/framed.h"
#include "proto/error.h"
#include "proto/wire.h"

#define APART     (8u * 1024u)  /* a frame of so many bytes is sealed as a batch of its own rather than copied */
#define STAYS     (4u * 1024u)  /* a DATA frame of so many bytes stays in shared memory rather than being copied */
#define AT_A_TIME (32u * 1024u) /* after so many bytes, the other side gets the room of those that were delivered */

static struct framed *framed_of(struct stream *s)
{
	return container_of(s, struct framed, stream);
}

/* Close the batch that is being filled: write the header into the gap before it, and the tag behind it. */
static int framed_seal_batch(struct framed *f)
{
	if (!f->sealing || f->batch_len == 0)
		return 0;
	if (!stream_reserve(&f->stream, BATCH_TAG_LEN))
		return CSSL_E_NO_MEMORY;
	size_t out_len;
	uint8_t *out = stream_output(&f->stream, &out_len);
	int r = batch_seal(f->sealing, out + out_len - f->batch_len - BATCH_HEADER_LEN, f->batch_len);
	if (r < 0)
		return r;
	f->batch_len = 0; /* first, because the commit may flush, and the flush calls this function again */
	stream_commit(&f->stream, BATCH_TAG_LEN);
	return 0;
}

/* Name the streams of the next two frames, which begin at @in, as far as they are there. */
static void foresee(struct framed *f, const uint8_t *in, size_t len)
{
	uint8_t header[FRAME_HEADER_LEN];
	struct frame frame;

	for (enum framed_distance d = FRAMED_NEXT; d <= FRAMED_LATER && len >= FRAME_HEADER_LEN; d++) {
		wire_take_copy(header, in, sizeof header);
		if (frame_parse(header, len, &frame) != 0)
			return;
		f->ops->foresee(f, frame.stream, d);
		in += FRAME_HEADER_LEN + frame.len;
		len -= FRAME_HEADER_LEN + frame.len;
	}
}

/* Deliver the frames in [in, in + len). Bytes used up, or negative. */
static ptrdiff_t framed_deliver(struct framed *f, uint8_t *in, size_t len)
{
	size_t used = 0;

	while (used < len && f->stream.state < STREAM_CLOSING) {
		struct frame frame;
		int r = frame_parse(in + used, len - used, &frame);
		if (r == FRAME_INCOMPLETE)
			break;
		if (r < 0)
			return r;
		used += FRAME_HEADER_LEN + frame.len;
		if (f->ops->foresee)
			foresee(f, in + used, len - used);
		r = f->ops->on_frame(f, &frame, in + used - frame.len);
		if (r < 0)
			return r;
	}
	return (ptrdiff_t)used;
}

static ptrdiff_t framed_deliver_sealed(struct framed *f, uint8_t *in, size_t len)
{
	size_t used = 0;

	while (used < len && f->stream.state < STREAM_CLOSING) {
		uint8_t *plain;
		size_t plain_len, taken;
		int r = batch_open(f->opening, in + used, len - used, &plain, &plain_len, &taken);
		if (r == BATCH_INCOMPLETE)
			break;
		if (r < 0)
			return r;
		used += taken;
		ptrdiff_t delivered = framed_deliver(f, plain, plain_len);
		if (delivered < 0)
			return delivered;
		/* a batch ends at the end of a frame */
		if ((size_t)delivered != plain_len && f->stream.state < STREAM_CLOSING)
			return CSSL_E_TRUNCATED;
	}
	return (ptrdiff_t)used;
}

/* Of one read of @len bytes, @used were used. */
static size_t end_read(struct framed *f, ptrdiff_t used, size_t len)
{
	if (f->stream.state >= STREAM_CLOSING)
		return len;
	if (used < 0) {
		f->ops->on_end(f, (int)used);
		return len;
	}
	if (f->ops->on_turn)
		f->ops->on_turn(f);
	return (size_t)used;
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct framed *f = framed_of(s);

	return end_read(f, f->opening ? framed_deliver_sealed(f, data, len) : framed_deliver(f, data, len), len);
}

/* Where the payload may be used: NULL, where it came, or a private copy. */
static uint8_t *payload_of(struct framed *f, struct frame *frame, const uint8_t *in)
{
	uint8_t *copy = worker_read_buffer(f->stream.worker);

	frame->payload = in;
	if (frame->type == FRAME_DATA && frame->len >= STAYS)
		return NULL;
	memcpy(copy, in, frame->len);
	frame->payload = copy;
	return copy;
}

/* The same as framed_deliver() for some of the frames in memory that the other process can change. */
static ptrdiff_t framed_deliver_shared(struct framed *f, const uint8_t *in, size_t len)
{
	size_t used = 0;

	while (used < AT_A_TIME && len - used >= FRAME_HEADER_LEN && f->stream.state < STREAM_CLOSING) {
		uint8_t header[FRAME_HEADER_LEN];
		struct frame frame;
		wire_take_copy(header, in + used, sizeof header);
		int r = frame_parse(header, len - used, &frame);
		if (r == FRAME_INCOMPLETE)
			break;
		if (r < 0)
			return r;
		uint8_t *payload = payload_of(f, &frame, in + used + FRAME_HEADER_LEN);
		used += FRAME_HEADER_LEN + frame.len;
		if (f->ops->foresee)
			foresee(f, in + used, len - used);
		r = f->ops->on_frame(f, &frame, payload);
		if (r < 0)
			return r;
	}
	return (ptrdiff_t)used;
}

static size_t on_shared(struct stream *s, const uint8_t *data, size_t len)
{
	struct framed *f = framed_of(s);

	if (f->ops->payloads == FRAMED_PAYLOADS_PRIVATE)
		return 0;
	ptrdiff_t used = framed_deliver_shared(f, data, len);
	return used == 0 && s->state < STREAM_CLOSING ? 0 : end_read(f, used, len);
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct framed *f = framed_of(s);

	f->ops->on_end(f, end == STREAM_ERROR ? uv_error : UV_EOF);
}

static void on_closed(struct stream *s)
{
	struct framed *f = framed_of(s);

	batch_cipher_destroy(f->sealing);
	batch_cipher_destroy(f->opening);
	f->sealing = f->opening = NULL;
	f->ops->on_closed(f);
}

static void on_flush(struct stream *s)
{
	struct framed *f = framed_of(s);
	int r = framed_seal_batch(f);

	if (r < 0)
		f->ops->on_end(f, r);
}

static void on_written(struct stream *s, size_t len)
{
	struct framed *f = framed_of(s);

	if (f->ops->on_written)
		f->ops->on_written(f, len);
}

static const struct stream_ops stream_ops_of[] = {
	[LINK_TRUSTED] = { .on_data = on_data,
		.on_shared = on_shared,
		.on_end = on_end,
		.on_written = on_written,
		.on_closed = on_closed },
	[LINK_SEALED] = { .on_data = on_data,
		.on_end = on_end,
		.on_written = on_written,
		.on_closed = on_closed,
		.on_flush = on_flush },
};

int framed_open(struct framed *f, struct worker *w, const struct framed_ops *ops, int fd, const struct link_keys *keys,
	const uint8_t *early, size_t early_len)
{
	memset(f, 0, sizeof *f);
	f->ops = ops;
	int r = stream_open_fd(&f->stream, w, &stream_ops_of[keys->protection], fd);
	if (r < 0)
		return r;
	bool sealed = keys->protection == LINK_SEALED;
	if (sealed) {
		f->sealing = batch_cipher_create(keys->aead, keys->send, BATCHES_PER_KEY);
		f->opening = batch_cipher_create(keys->aead, keys->receive, BATCHES_PER_KEY);
	}
	if ((sealed && (!f->sealing || !f->opening)) || stream_keep(&f->stream, early, early_len) < 0) {
		framed_close(f);
		return 0; /* on_closed will come: for the owner, the link closes at once */
	}
	stream_read_start(&f->stream); /* delivers @early first, from the loop */
	return 0;
}

int framed_share(struct framed *f, int memory, enum rings_side side)
{
	return stream_share(&f->stream, memory, side);
}

int framed_save(struct framed *f, struct framed_saved *out)
{
	int r = framed_seal_batch(f);

	*out = (struct framed_saved){ .protection = f->sealing ? LINK_SEALED : LINK_TRUSTED };
	if (r == 0 && f->sealing)
		r = batch_cipher_save(f->sealing, out->sealing);
	if (r == 0 && f->opening)
		r = batch_cipher_save(f->opening, out->opening);
	return r;
}

void framed_resume(struct framed *f)
{
	if (f->sealing)
		batch_cipher_resume(f->sealing);
	if (f->opening)
		batch_cipher_resume(f->opening);
}

int framed_restore(struct framed *f, struct worker *w, const struct framed_ops *ops, int fd,
	const struct framed_saved *saved, const struct stream_leftovers *left)
{
	bool sealed = saved->protection == LINK_SEALED;

	memset(f, 0, sizeof *f);
	struct batch_cipher *sealing = sealed ? batch_cipher_restore(saved->sealing) : NULL;
	struct batch_cipher *opening = sealed ? batch_cipher_restore(saved->opening) : NULL;
	int r = sealed && (!sealing || !opening) ? CSSL_E_NO_MEMORY : 0;
	if (r == 0)
		r = stream_open_fd_with(&f->stream, w, &stream_ops_of[saved->protection], fd, left);
	else
		close(fd);
	if (r < 0) {
		batch_cipher_destroy(sealing);
		batch_cipher_destroy(opening);
		return r;
	}
	f->ops = ops;
	f->sealing = sealing;
	f->opening = opening;
	stream_read_start(&f->stream);
	return 0;
}

uint8_t *framed_reserve(struct framed *f, size_t cap)
{
	size_t frame_len = FRAME_HEADER_LEN + cap;

	if (f->sealing && f->batch_len + frame_len > BATCH_PLAINTEXT_MAX && framed_seal_batch(f) < 0)
		return NULL;
	size_t gap = f->sealing && f->batch_len == 0 ? BATCH_HEADER_LEN : 0;
	uint8_t *room = stream_reserve(&f->stream, gap + frame_len + BATCH_TAG_LEN);
	if (!room)
		return NULL;
	f->payload_cap = (uint32_t)cap;
	return room + gap + FRAME_HEADER_LEN;
}

void framed_commit(struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, size_t len)
{
	size_t gap = f->sealing && f->batch_len == 0 ? BATCH_HEADER_LEN : 0;
	size_t out_len;
	uint8_t *room = stream_output(&f->stream, &out_len) + out_len;

	frame_header_write(room + gap, stream, type, flags, (uint16_t)len);
	if (f->sealing)
		f->batch_len += (uint32_t)(FRAME_HEADER_LEN + len);
	stream_commit(&f->stream, gap + FRAME_HEADER_LEN + len);
}

int framed_send(struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	uint8_t *room = framed_reserve(f, len);

	if (!room)
		return CSSL_E_NO_MEMORY;
	if (len)
		memcpy(room, payload, len);
	framed_commit(f, stream, type, flags, len);
	return 0;
}

/* A batch of its own, sealed from @plain into the output. */
static int seal_apart(struct framed *f, const uint8_t *plain, size_t len)
{
	int r = framed_seal_batch(f);

	if (r < 0)
		return r == CSSL_E_NO_MEMORY ? CSSL_E_STATE : r;
	uint8_t *room = stream_reserve(&f->stream, len + BATCH_OVERHEAD);
	if (!room)
		return CSSL_E_STATE;
	r = batch_seal_from(f->sealing, room, plain, len);
	if (r == 0)
		stream_commit(&f->stream, len + BATCH_OVERHEAD);
	return r;
}

int framed_pass(struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, uint8_t *frame, size_t len)
{
	const size_t frame_len = FRAME_HEADER_LEN + len;

	if (f->sealing && frame_len < APART)
		return framed_send(f, stream, type, flags, frame + FRAME_HEADER_LEN, len) < 0 ? CSSL_E_STATE : 0;
	frame_header_write(frame, stream, type, flags, (uint16_t)len);
	if (f->sealing)
		return seal_apart(f, frame, frame_len);
	return stream_write(&f->stream, frame, frame_len) < 0 ? CSSL_E_STATE : 0;
}

size_t framed_pending(const struct framed *f)
{
	return stream_pending(&f->stream);
}

void framed_close(struct framed *f)
{
	stream_close(&f->stream);
}
