/* stream_inside.h: between the files of a stream.
 *
 *   stream.c         states, opening, closing, the end of a turn
 *   stream_connect.c connecting
 *   stream_read.c    input: read budget, kept bytes, received descriptors
 *   stream_write.c   output: collecting, flushing, sent descriptors, FIN
 *   stream_shared.c  bytes through shared memory
 *   stream_fault.c   test builds: fault points
 *
 * States, as in the table in stream.c:
 *
 *     NEW ----------------------------> OPEN ---> SHUTTING ---> SHUT
 *      `--> CONNECTING ------------------^           ^            |
 *               `--> CONNECTING_LAST ----------------'            |
 *     any of CONNECTING .. SHUT ---> FAILED                       |
 *     any of CONNECTING .. FAILED ------> CLOSING ---> CLOSED ----+--> opened again
 */
#ifndef CSSL_NET_STREAM_INSIDE_H
#define CSSL_NET_STREAM_INSIDE_H

#include "net/stream.h"
#include "net/worker.h"

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

/* Output that libuv writes when the kernel is ready. */
struct stream_write {
	uv_write_t req;
	uv_pipe_t passenger; /* the duplicated descriptor, if one is sent; else not initialised */
	struct stream *stream;
	struct stream_buffer buffer;
	enum { WRITE_BYTES, WRITE_WITH_FD } kind;
};

static inline bool stream_is_open(const struct stream *s)
{
	return s->state >= STREAM_CONNECTING && s->state <= STREAM_FAILED;
}

void stream_move(struct stream *s, enum stream_state to);
int stream_fileno(const struct stream *s);

/* Writing or reading failed: the loop tells the owner. */
void stream_fail(struct stream *s, int uv_error);

/* Tell the owner of an end, now. Its caller does nothing after that. */
void stream_tell_end(struct stream *s, int uv_error);

void stream_handle_closed(struct stream *s);

/* Opening: settings made before stay, everything else is new; the handle; its descriptor. */
void stream_init(struct stream *s, struct worker *w, const struct stream_ops *ops);
void stream_init_handle(struct stream *s);
void stream_attach(struct stream *s, int fd);
/* A connecting stream, at the end of a turn. */
void stream_look_connected(struct stream *s);

void stream_at_turn_end(struct stream *s);
void stream_begin_reading(struct stream *s);
void stream_deliver_kept(struct stream *s);
void stream_flush_now(struct stream *s);
/* Give the kernel as much of [data, data + len) as it takes now: so many bytes, or a libuv error. @flags as of send(2).
 * On a socket, send(2) and recv(2) cost less than write(2) and read(2), which libuv uses. */
int stream_send_now(struct stream *s, const void *data, size_t len, int flags);
void stream_drop_output(struct stream *s);
void stream_out_give_back(struct stream *s);
void stream_drop_kept(struct stream *s);

/* Room for new input in the worker's buffer, behind the kept bytes, which are copied there. */
uint8_t *stream_read_room(struct stream *s, size_t *len);
/* @new_len bytes came there. */
void stream_deliver_read(struct stream *s, size_t new_len);

/* Shared streams. 1: output waits for room; the other side will wake this one. */
bool stream_shared_is_full(struct stream *s);
void stream_shared_flush(struct stream *s);
/* Write bytes behind the output without collecting them there. 1: done; 0: there is no room now. */
bool stream_shared_write(struct stream *s, const void *data, size_t len);
/* Tell the other side to look. */
void stream_shared_ring(struct stream *s);
/* The other side has woken this one, or may have: look into the rings. */
void stream_shared_look(struct stream *s);
/* The socket's end came; bytes in the ring come before it. 1: all of them were delivered. */
bool stream_shared_is_read(struct stream *s);

#ifdef CSSL_TEST_POINTS
/* Not 0: wait; the stream is called again when it may go on. */
int stream_fault_holds_write(struct stream *s);
int stream_fault_holds_read(struct stream *s);
int stream_fault_holds_bell(struct stream *s);
/* A rule may hold or part output: collect all of it. */
int stream_fault_watches(const struct stream *s);
/* Called in the read callback of a held read. */
void stream_fault_pause_reading(struct stream *s);
void stream_fault_clear(struct stream *s);
#define stream_fault_take(s, before) ((s)->fault = (before)->fault)
#else
#define stream_fault_holds_write(s)   0
#define stream_fault_holds_read(s)    0
#define stream_fault_holds_bell(s)    0
#define stream_fault_watches(s)       0
#define stream_fault_pause_reading(s) ((void)(s))
#define stream_fault_clear(s)         ((void)(s))
#define stream_fault_take(s, before)  ((void)(before))
#endif

#endif
