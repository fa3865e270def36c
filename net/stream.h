/* stream.h: a TCP or UNIX connection with bounded writes. Embedded in its owner.
 *
 * Output collects in one contiguous buffer, reserve/commit, and is written once per loop turn or when it reaches the flush
 * mark; what the kernel does not take waits, is counted in stream_pending(), and stream_limit() says when to stop producing.
 * Input comes through the worker's shared buffer: on_data gets the bytes, may change them in place, and returns how many it
 * used up; what is left is kept (up to the keep limit) and stands in front of the next bytes, contiguous.
 *
 * The owner gets exactly one on_closed after stream_close(), whatever happened; it never comes from within a stream_ call.
 * After the stream failed by itself (on_end with an error) the owner still calls stream_close().
 */
#ifndef CSSL_NET_STREAM_H
#define CSSL_NET_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "net/worker.h"

struct stream;

enum stream_end { STREAM_EOF, STREAM_RESET, STREAM_ERROR };

struct stream_ops {
	/* Bytes came. Returns how many were used up (0..len). After stream_close() in it the return value is ignored. */
	size_t (*on_data)(struct stream *s, uint8_t *data, size_t len);
	/* The peer's FIN (reading is over, writing may go on), a reset, or a local error @uv_error. */
	void (*on_end)(struct stream *s, enum stream_end end, int uv_error);
	/* @len more bytes were taken by the kernel; stream_pending() has what is left. May be NULL. */
	void (*on_written)(struct stream *s, size_t len);
	/* A connect ended: 0 or a libuv error (the owner then closes). NULL for accepted streams. */
	void (*on_connected)(struct stream *s, int uv_error);
	/* Every handle is closed: the owner may free. */
	void (*on_closed)(struct stream *s);
	/* Just before a flush hands [data, data+len) to the kernel: a last chance to add (sealing of a batch). May be NULL. */
	void (*on_flush)(struct stream *s);
	/* A descriptor came with the next bytes (UNIX sockets with stream_expect_fds only). The owner now owns it. */
	void (*on_fd)(struct stream *s, int fd);
};

enum stream_state {
	STREAM_NEW,
	STREAM_CONNECTING,
	STREAM_OPEN,
	STREAM_SHUTTING, /* FIN is to follow the pending output */
	STREAM_SHUT,     /* our FIN went */
	STREAM_CLOSING,
	STREAM_CLOSED,
};

struct stream_buffer {
	uint8_t *data;
	uint32_t start, end, cap;
};

struct stream {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	const struct stream_ops *ops;
	struct worker *worker;
	struct turn_end flush;
	struct stream_buffer out;  /* filling */
	struct stream_buffer kept; /* input the owner did not use up */
	struct stream_write *in_flight; /* NULL: the kernel has taken all that was flushed */
	uint32_t flush_mark;
	uint8_t state; /* enum stream_state */
	uint8_t reading; /* enum stream_reading */
	uint8_t open_handles;
	uint8_t kind; /* enum stream_kind */
};

/* Take over a connected descriptor (closed by the stream). TCP_NODELAY is set on TCP. 0 or a negative libuv error, after
 * which nothing is open and @fd is closed. */
int stream_open_fd(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd);

/* Connect to an address (AF_INET, AF_INET6, AF_UNIX), optionally from @source. 0: on_connected will come. */
int stream_connect(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
		   const struct sockaddr *source);

void stream_read_start(struct stream *s);
void stream_read_stop(struct stream *s);

/* Call on_data again with what is kept, as if it had just come (after a stop, when the owner can use it). */
void stream_read_again(struct stream *s);
size_t stream_kept(const struct stream *s);

/* Room for @len contiguous bytes behind the output; NULL: out of memory (treat as an error of this stream). Then commit
 * what was written. A reserve invalidates the pointer of the one before. */
uint8_t *stream_reserve(struct stream *s, size_t len);
void stream_commit(struct stream *s, size_t len);
int stream_write(struct stream *s, const void *data, size_t len);

/* Output not yet taken by the kernel. */
size_t stream_pending(const struct stream *s);

/* Write now what is there. */
void stream_flush(struct stream *s);
void stream_set_flush_mark(struct stream *s, uint32_t bytes); /* default 64 KiB */

/* Send @fd (duplicated) with the bytes committed so far; UNIX sockets only. */
int stream_send_fd(struct stream *s, int fd);

/* FIN after the pending output. */
void stream_shutdown(struct stream *s);

/* Close; pending output is dropped. Any state, twice, from inside a callback. */
void stream_close(struct stream *s);

/* Close with a TCP reset. */
void stream_abort(struct stream *s);

/* Take the descriptor out of an open stream with nothing pending: returns a duplicate, the stream is then closed by its
 * owner as usual and the connection lives on in the duplicate. Negative: errno-like. */
int stream_dup_fd(struct stream *s);

int stream_peer(const struct stream *s, struct sockaddr_storage *out);
int stream_local(const struct stream *s, struct sockaddr_storage *out);

#endif
