/* stream_state.h: the states of a stream, and what all its parts use. For the files of a stream only:
 *
 *   stream.c         opening, connecting, FIN, closing, the end of a turn
 *   stream_read.c    input: read budget, received descriptors
 *   stream_write.c   output: collecting, flushing, sent descriptors
 *   stream_shared.c  bytes through shared memory
 *   stream_kept.c    input that the owner has not used
 *   stream_fault.c   test builds: fault points
 *   stream_state.c   states, failing, the descriptor
 *
 * Each calls only those below it. The members of struct stream belong to all of them, because one record passes through
 * four of them and the struct is what an owner embeds.
 *
 * States, as in the table in stream_state.c:
 *
 *     NEW ----------------------------> OPEN ---> SHUTTING ---> SHUT
 *      `--> CONNECTING ------------------^           ^            |
 *               `--> CONNECTING_LAST ----------------'            |
 *     any of CONNECTING .. SHUT ---> FAILED                       |
 *     any of CONNECTING .. FAILED ------> CLOSING ---> CLOSED ----+--> opened again
 */
#pragma once

#include "net/stream/stream.h"

enum stream_reading {
	READING_STOPPED,
	READING_PAUSED,  /* stopped; more input is surely there */
	READING_KEPT,    /* started: kept bytes are delivered at the end of this turn, then reading begins */
	READING_RESUMED, /* the same, and the first read does not wait for epoll */
	READING_ON,
	READING_HELD, /* started, but a fault rule holds it back */
	READING_OVER, /* the owner was told of the end */
};

enum stream_flushing { FLUSHING_NOT, FLUSHING_IN_ON_FLUSH };

enum stream_kind { STREAM_KIND_UNKNOWN, STREAM_KIND_UNIX_FDS, STREAM_KIND_UNIX, STREAM_KIND_TCP };

static inline bool stream_is_open(const struct stream *s)
{
	return s->state >= STREAM_CONNECTING && s->state <= STREAM_FAILED;
}

void stream_move(struct stream *s, enum stream_state to);

/* Writing or reading failed: the loop tells the owner. */
void stream_fail(struct stream *s, int uv_error);

/* Tell the owner of an end, now. Its caller does nothing after that. */
void stream_tell_end(struct stream *s, int uv_error);

/* One handle has closed; the last one tells the owner. */
void stream_handle_closed(struct stream *s);

/* Give the kernel as much of [data, data + len) as it takes now: so many bytes, or a libuv error. @flags as of send(2).
 * On a socket, send(2) and recv(2) cost less than write(2) and read(2), which libuv uses. */
int stream_send_now(struct stream *s, const void *data, size_t len, int flags);
/* The same result from that of a system call. */
int stream_sent(ssize_t n);
/* The collected output goes; the close drops the bytes that libuv has. */
void stream_drop_output(struct stream *s);
/* A byte on the socket of a shared stream wakes the other side. */
void stream_send_bell(struct stream *s);
