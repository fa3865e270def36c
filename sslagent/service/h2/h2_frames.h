/* h2_frames.h: finds where the frames of one direction of HTTP/2 begin and end (RFC 9113 4.1). Bytes come in pieces
 * of any length. Payloads pass unread, except for first bytes that the caller asks for. Nothing is allocated.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

#define H2_FRAME_HEAD_LEN 9u
#define H2_GATHERED_MAX   8u
#define H2_STREAM_MAX     0x7fffffffu

enum h2_type {
	H2_DATA,
	H2_HEADERS,
	H2_PRIORITY,
	H2_RST_STREAM,
	H2_SETTINGS,
	H2_PUSH_PROMISE,
	H2_PING,
	H2_GOAWAY,
	H2_WINDOW_UPDATE,
	H2_CONTINUATION,
	H2_TYPE_COUNT
};

/* Flags of a frame (RFC 9113 6). */
#define H2_END_STREAM  0x1u /* DATA, HEADERS */
#define H2_ACK         0x1u /* SETTINGS, PING */
#define H2_END_HEADERS 0x4u /* HEADERS, PUSH_PROMISE, CONTINUATION */
#define H2_PADDED      0x8u

struct h2_frame {
	uint32_t len; /* of the payload */
	uint32_t stream;
	uint8_t type; /* may be a type that is not in enum h2_type */
	uint8_t flags;
};

/* Begins as all zeros. */
struct h2_frames {
	uint32_t left;                     /* bytes of the payload that are still to come */
	uint8_t head_len;                  /* bytes of the header that have come; 0: between two frames */
	uint8_t wanted;                    /* bytes of the payload to gather */
	uint8_t gathered_len;              /* so many of these have come */
	uint8_t head[H2_FRAME_HEAD_LEN];   /* header of the last frame; still valid after its end */
	uint8_t gathered[H2_GATHERED_MAX]; /* likewise */
};

enum h2_event {
	H2_NOTHING,
	H2_HEAD,     /* the header of a frame is complete: h2_frames_head() */
	H2_GATHERED, /* the wanted bytes have come */
};

/* Takes bytes of [data, data + len), len > 0, up to the next event. Returns how many; at least 1. */
size_t h2_frames_take(struct h2_frames *f, const uint8_t *data, size_t len, enum h2_event *event);
/* After an event: gather the next @len <= H2_GATHERED_MAX bytes of this payload, if so many are left. */
void h2_frames_want(struct h2_frames *f, size_t len);

struct h2_frame h2_frames_head(const struct h2_frames *f);
/* Bytes until the end of the current header or payload; 0 between two frames. */
size_t h2_frames_to_end(const struct h2_frames *f);

/* Append a frame's header. */
void h2_put_head(struct wire_writer *w, const struct h2_frame *frame);
