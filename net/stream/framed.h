/* framed.h: an open link as a sequence of frames (proto/frame.h) on a stream, trusted or sealed (proto/batch.h). Both
 * ends of a link between RAgent and agent use it. Embedded in its owner.
 *
 * Output: reserve room for a payload, fill it, commit. Frames collect and are written once in a turn of the loop. A
 * sealed link seals them in place, a batch at a time, at the end of the turn or when 64 KiB are full. Input: on_frame
 * for each frame; on a sealed link after its batch was authenticated.
 */
#pragma once

#include "net/stream/stream.h"
#include "proto/batch.h"
#include "proto/frame.h"
#include "proto/opening.h"

struct framed;

/* May a long DATA frame be delivered where it came, in memory that the other process can change meanwhile? */
enum framed_payloads { FRAMED_PAYLOADS_PRIVATE, FRAMED_DATA_STAYS_SHARED };

/* Frames come in this order: the present one, NEXT, LATER. */
enum framed_distance { FRAMED_NEXT, FRAMED_LATER };

struct framed_ops {
	/* The payload may be changed in place; NULL: it stays shared, and frame->payload is only read, each byte that
	 * matters once. 0, or negative: the other side broke the protocol; on_end follows. */
	int (*on_frame)(struct framed *f, const struct frame *frame, uint8_t *payload);
	/* All frames of one read were delivered. May be NULL. */
	void (*on_turn)(struct framed *f);
	/* The link is over: end of stream, reset, or @error (CSSL_E_* or libuv's). The owner calls framed_close(). */
	void (*on_end)(struct framed *f, int error);
	void (*on_closed)(struct framed *f);
	/* The kernel took @len more bytes of the output. May be NULL. */
	void (*on_written)(struct framed *f, size_t len);
	enum framed_payloads payloads;
	/* A frame of this stream comes soon: what it needs can be fetched into the cache. May be NULL. */
	void (*foresee)(struct framed *f, uint32_t stream, enum framed_distance distance);
};

struct framed {
	struct stream stream;
	const struct framed_ops *ops;
	struct batch_cipher *sealing, *opening; /* NULL on a trusted link */
	uint32_t batch_len;   /* plaintext bytes of the batch being filled, at the end of the output */
	uint32_t payload_cap; /* of the frame being written */
};

/* Take over the connected descriptor after the opening, with its keys (copied), and @early: bytes that came behind the
 * opening, delivered in the first turn. 0, or negative: @fd is closed. */
int framed_open(struct framed *f, struct worker *w, const struct framed_ops *ops, int fd, const struct link_keys *keys,
	const uint8_t *early, size_t early_len);

/* Right after framed_open() without @early, or after framed_restore(): from now on bytes go through this memory
 * (stream_share()). Takes over @memory. 0, or negative: this link is broken. */
int framed_share(struct framed *f, int memory, enum rings_side side);

/* The ciphers of a link for the process that continues it. Key material. */
struct framed_saved {
	enum link_protection protection;
	uint8_t sealing[BATCH_STATE_LEN], opening[BATCH_STATE_LEN]; /* LINK_SEALED */
};

/* Seal the batch under way, and stop sealing and opening until framed_resume() or framed_close(), because two sealers
 * would repeat nonces. The caller gets the rest of the state from the stream. 0, or negative: this link is broken. */
int framed_save(struct framed *f, struct framed_saved *out);
/* Go on here. The other process has sealed and opened nothing, and never will. */
void framed_resume(struct framed *f);

/* Continue a link where another process stopped. 0, or negative: nothing is open, @fd is closed. */
int framed_restore(struct framed *f, struct worker *w, const struct framed_ops *ops, int fd,
	const struct framed_saved *saved, const struct stream_leftovers *left);

/* Room for a frame of at most @cap payload bytes (<= FRAME_PAYLOAD_MAX); NULL: out of memory. */
uint8_t *framed_reserve(struct framed *f, size_t cap);
/* Send it with @len payload bytes. */
void framed_commit(struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, size_t len);
/* Both in one. 0 or CSSL_E_NO_MEMORY. */
int framed_send(
	struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len);

/* Send a frame from memory of the caller, which must not change before this call returns: @frame has FRAME_HEADER_LEN
 * bytes, which this call writes, and then @len payload bytes. A long one is not copied into the output first. 0;
 * CSSL_E_STATE: nothing can be written any more, and the stream reports why; other negative: this link is broken. */
int framed_pass(struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, uint8_t *frame, size_t len);

/* Bytes of output that the kernel has not taken. */
size_t framed_pending(const struct framed *f);
void framed_close(struct framed *f);
