/* framed.h: an open link as a sequence of frames (proto/frame.h), trusted or sealed (proto/batch.h), on a stream. Both
 * ends of the RAgent-agent link stand on it. Embedded in its owner.
 *
 * Output: reserve room for a payload, fill it, commit; frames collect behind one another and leave once per loop turn;
 * on a sealed link they are sealed in place, a batch at a time, when the turn ends or 64 KiB are full. Input: on_frame
 * for every frame; a frame of a sealed link is delivered only after its batch was authenticated.
 */
#ifndef CSSL_NET_FRAMED_H
#define CSSL_NET_FRAMED_H

#include "net/stream.h"
#include "proto/batch.h"
#include "proto/frame.h"
#include "proto/opening.h"

struct framed;

struct framed_ops {
	/* The payload may be changed in place. 0, or negative: the other side broke the protocol; on_end follows. */
	int (*on_frame)(struct framed *f, const struct frame *frame, uint8_t *payload);
	/* All frames that one read brought were delivered. May be NULL. */
	void (*on_turn)(struct framed *f);
	/* The link is over: end of stream, reset, or @error (CSSL_E_* or libuv's). The owner calls framed_close(). */
	void (*on_end)(struct framed *f, int error);
	void (*on_closed)(struct framed *f);
};

struct framed {
	struct stream stream;
	const struct framed_ops *ops;
	struct batch_cipher *sealing, *opening; /* NULL on a trusted link */
	uint32_t batch_len;   /* plaintext bytes of the batch being filled, at the end of the output */
	uint32_t payload_cap; /* of the frame being written */
};

/* Take over the descriptor of a connection whose opening is done, with its keys (copied) and @early, bytes that came
 * behind the opening.
 * @early is delivered with the first turn. 0 or negative (@fd is closed). */
int framed_open(struct framed *f, struct worker *w, const struct framed_ops *ops, int fd, const struct link_keys *keys,
	const uint8_t *early, size_t early_len);

/* Just behind framed_open() or framed_restore(): the bytes go through this memory (stream_share()); @early was nothing
 * then. @memory is owned from now on. 0, or negative: this link is broken. */
int framed_share(struct framed *f, int memory, enum rings_side side);

/* The ciphers of a link that goes on in another process: key material. */
struct framed_saved {
	enum link_protection protection;
	uint8_t sealing[BATCH_STATE_LEN], opening[BATCH_STATE_LEN]; /* LINK_SEALED */
};

/* The batch being filled is sealed, and from now on nothing is sealed or opened here, because two sealers would repeat
 * nonces: until framed_resume() or framed_close(). The rest of the state is the stream's. 0, or negative: this link is
 * broken. */
int framed_save(struct framed *f, struct framed_saved *out);
/* The other process has sealed and opened nothing, and will not. */
void framed_resume(struct framed *f);

/* Go on with a link where another process stopped. 0 or negative (nothing is open, @fd is closed). */
int framed_restore(struct framed *f, struct worker *w, const struct framed_ops *ops, int fd,
	const struct framed_saved *saved, const struct stream_leftovers *left);

/* Room for a frame of at most @cap payload bytes (<= FRAME_PAYLOAD_MAX); NULL: out of memory. */
uint8_t *framed_reserve(struct framed *f, size_t cap);
/* Send it with @len payload bytes. */
void framed_commit(struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, size_t len);
/* Both in one. 0 or CSSL_E_NO_MEMORY. */
int framed_send(
	struct framed *f, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len);

/* Output that waits for the kernel. */
size_t framed_pending(const struct framed *f);
void framed_close(struct framed *f);

#endif
