/* stream.h: a TCP or UNIX connection with bounded writes. Embedded in its owner, all zero before it is opened.
 *
 * Output collects in one contiguous buffer, reserve/commit, and is written once per loop turn or when it reaches the
 * flush mark; what the kernel does not take waits and is counted in stream_pending(): the owner stops producing above
 * its limit. Input comes through the worker's shared buffer: on_data gets the bytes, may change them in place, and
 * returns how many it used up; what is left is kept and stands in front of the next bytes, contiguous. Kept and new
 * bytes together fill at most WORKER_READ_BUFFER_LEN; an owner that goes on reading without using anything gets
 * on_end(STREAM_ERROR, UV_ENOBUFS). A stream gets one read per loop turn. An idle stream holds no buffer.
 *
 * The owner gets exactly one on_closed after stream_close(), whatever happened. After the stream failed by itself
 * (on_end with an error, on_connected with an error) the owner still calls stream_close(). No callback comes from
 * within a stream_ call, but on_flush (stream_flush, stream_commit, stream_send_fd) and on_data (stream_read_again).
 * Every callback may call everything, stream_close() included; only on_closed may free.
 */
#ifndef CSSL_NET_STREAM_H
#define CSSL_NET_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "net/rings.h"
#include "net/worker.h"

#define STREAM_FLUSH_MARK_DEFAULT (64u * 1024u)

struct stream;

/* STREAM_RESET: the peer or the network cut the connection; also where libuv would call it the end of the data. */
enum stream_end { STREAM_EOF, STREAM_RESET, STREAM_ERROR };

struct stream_ops {
	/* Bytes came. Returns how many were used up (0..len). After stream_close() in it the return value is ignored.
	 */
	size_t (*on_data)(struct stream *s, uint8_t *data, size_t len);
	/* The peer's FIN (reading is over, writing may go on), a reset, or a local error @uv_error. When writing fails
	 * while the stream reads, what the peer had sent is delivered first. */
	void (*on_end)(struct stream *s, enum stream_end end, int uv_error);
	/* @len more bytes were taken by the kernel; stream_pending() has what is left. May be NULL. */
	void (*on_written)(struct stream *s, size_t len);
	/* A connect ended: 0 or a libuv error (the owner then closes). NULL for accepted streams. */
	void (*on_connected)(struct stream *s, int uv_error);
	/* Every handle is closed: the owner may free, or zero the struct and open it again. */
	void (*on_closed)(struct stream *s);
	/* Just before a flush hands stream_output() to the kernel: a last chance to add or change (sealing of a batch).
	 * Not called while earlier output waits for the kernel. May be NULL. */
	void (*on_flush)(struct stream *s);
	/* A descriptor came, before or with the bytes it was sent with (after stream_expect_fds only). The owner now
	 * owns it. At this process's descriptor limit the kernel drops it: its bytes come without it. */
	void (*on_fd)(struct stream *s, int fd);
};

enum stream_state {
	STREAM_NEW,
	STREAM_CONNECTING,
	STREAM_CONNECTING_LAST, /* as before, and FIN is to follow what was written meanwhile */
	STREAM_OPEN,
	STREAM_SHUTTING, /* FIN is to follow the pending output */
	STREAM_SHUT,     /* our FIN went */
	STREAM_FAILED,   /* on_end or on_connected with an error is due or came: nothing is written any more */
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
	struct turn_end turn;
	struct stream_buffer out;       /* filling */
	struct stream_buffer kept;      /* input the owner did not use up */
	struct stream_write *in_flight; /* handed to libuv last, because the kernel did not take it at once */
	struct rings *rings;            /* stream_share(): the bytes go through them */
	uint32_t in_flight_len;
	uint32_t written; /* taken by the kernel, not yet told to the owner */
	uint32_t flush_mark;
	uint32_t out_last; /* what the last flush took: where the next output buffer starts */
	uint32_t read_max;
	uint32_t read_turn; /* loop turn of the last read */
	int failure;        /* libuv error not yet told to the owner */
	uint16_t writes;    /* in libuv's queue */
	uint16_t open_handles;
	uint8_t state;    /* enum stream_state */
	uint8_t reading;  /* enum stream_reading */
	uint8_t flushing; /* enum stream_flushing */
	uint8_t kind;     /* enum stream_kind */
#ifdef CSSL_TEST_POINTS
	struct stream_fault *fault;
#endif
};

/* Before opening a UNIX stream: descriptors may come and go with the bytes. Such a stream is flushed at the end of the
 * turn only (no flush mark), so that bytes and descriptor stay together. */
void stream_expect_fds(struct stream *s);

/* Take over a connected descriptor (closed by the stream). TCP_NODELAY is set on TCP. 0 or a negative libuv error,
 * after which nothing is open, @fd is closed, and neither stream_close() nor on_closed is due. */
int stream_open_fd(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd);

/* What a connection's former reader and writer left over: bytes it had read and not used, bytes it had not written. */
struct stream_leftovers {
	const uint8_t *input, *output;
	size_t input_len, output_len;
};

/* As stream_open_fd(), and go on where another process stopped: @left (copied) is delivered and sent before everything
 * else, from the loop. Also CSSL_E_NO_MEMORY. */
int stream_open_fd_with(
	struct stream *s, struct worker *w, const struct stream_ops *ops, int fd, const struct stream_leftovers *left);

/* Connect to an address (AF_INET, AF_INET6, AF_UNIX), optionally from @source. 0: on_connected will come, unless closed
 * before. Negative: as stream_open_fd(). What is written meanwhile goes out once connected. */
int stream_connect(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
	const struct sockaddr *source);

/* Both sides of an open UNIX stream have this memory (rings_make(), rings_open()): from here on all bytes go through
 * it, and those on the socket only say that there is something to look at. @fd is owned from now on. A stream that is
 * not reading does not hear of room for its output either. 0 or a negative libuv error. */
int stream_share(struct stream *s, int fd, enum rings_side side);
/* Its descriptor, owned by the stream; -1: none. */
int stream_shared_fd(const struct stream *s);

/* Kept bytes are delivered first, from the loop. Nothing happens where reading goes on or is over. */
void stream_read_start(struct stream *s);
void stream_read_stop(struct stream *s);
/* As stopping, with the peer in the midst of something: the next start reads at once what will be there, so that a
 * stream that is stopped and started all the time goes through no epoll. */
void stream_read_pause(struct stream *s);

/* The most one read takes, and so the most that a stopping owner leaves (default and limit WORKER_READ_BUFFER_LEN). */
void stream_set_read_max(struct stream *s, uint32_t bytes);

/* Call on_data again, now, with what is kept, as if it had just come (when the owner can use it); also after the end.
 */
void stream_read_again(struct stream *s);
size_t stream_kept(const struct stream *s);

/* Nothing of the peer's waits to be read, its end neither: 1 or 0. Asks the kernel. Not on shared streams. */
int stream_is_quiet(const struct stream *s);

/* Put bytes in front of what is kept, as if the peer had sent them before: what a former reader of this connection had
 * left over. Delivered as kept bytes are. Not from within on_data. 0 or CSSL_E_NO_MEMORY. */
int stream_keep(struct stream *s, const void *data, size_t len);
const uint8_t *stream_kept_data(const struct stream *s);

/* Room for @len contiguous bytes behind the output; NULL: out of memory, or this stream can write no more (treat as an
 * error of this stream). Then commit, in the same callback, what was written. A reserve invalidates the pointer of the
 * one before. */
uint8_t *stream_reserve(struct stream *s, size_t len);
void stream_commit(struct stream *s, size_t len);
/* 0, CSSL_E_NO_MEMORY, or CSSL_E_STATE: closing, failed or shut. */
int stream_write(struct stream *s, const void *data, size_t len);

/* Output not yet taken by the kernel. */
size_t stream_pending(const struct stream *s);

/* The committed output of which nothing was handed out yet; may be changed in place. Valid until the next stream_ call.
 */
uint8_t *stream_output(struct stream *s, size_t *len);

/* Write now what is there, or at the end of this turn (a commit does that by itself). */
void stream_flush(struct stream *s);
void stream_flush_soon(struct stream *s);
void stream_set_flush_mark(struct stream *s, uint32_t bytes);

/* Send @fd (duplicated) with the bytes committed so far and not flushed; at least one. 0, UV_EINVAL (no bytes, or
 * stream_expect_fds was not said), or another libuv error: nothing was sent. */
int stream_send_fd(struct stream *s, int fd);

/* FIN after the pending output. */
void stream_shutdown(struct stream *s);

/* Close; pending output is dropped. Any state, twice, from inside a callback. A stream that was never opened stays as
 * it is and gets no on_closed. */
void stream_close(struct stream *s);

/* Close with a TCP reset. */
void stream_abort(struct stream *s);

/* @on: whenever this connection is closed without stream_reset_on_close(s, 0) before, by a crash too, the peer sees a
 * reset and never an end (SO_LINGER). TCP only. */
void stream_reset_on_close(struct stream *s, int on);

/* A peer that acknowledges nothing for @ms is lost: keepalive probes and TCP_USER_TIMEOUT. Nothing on UNIX sockets. */
void stream_set_lost_limit(struct stream *s, unsigned ms);

/* Test builds: reads and writes ask the fault points "@name.read" and "@name.write" with @peer. Neither string is
 * copied. Delay: bytes wait up to the time, in order; drop: they wait as long as the rule stands; cut: the connection
 * is reset. "@name.part", drop: of a large output that was
 * collected half goes, the rest waits as long as the rule stands. "@name.bell",
 * where bytes go through shared memory: they are there, and the other side is not told, with drop or delay. */
#ifdef CSSL_TEST_POINTS
void stream_set_fault(struct stream *s, const char *name, const char *peer);
#else
static inline void stream_set_fault(struct stream *s, const char *name, const char *peer)
{
	(void)s, (void)name, (void)peer;
}
#endif

/* Take the descriptor out of an open stream with no output pending (a FIN that is due goes now): reading stops, a
 * duplicate is returned, the stream is then closed by its owner as usual and the connection lives on in the duplicate.
 * Negative: libuv error, UV_EBUSY: output is pending. */
int stream_dup_fd(struct stream *s);

/* For another process to go on with this connection: the descriptor (still owned by the stream; it must not be used
 * while the loop turns), and the output that the kernel has not taken, whoever holds it now. Not on streams with
 * descriptors under way. */
int stream_fd(const struct stream *s);
size_t stream_unwritten_len(const struct stream *s);
void stream_unwritten_copy(const struct stream *s, uint8_t *out);

int stream_peer(const struct stream *s, struct sockaddr_storage *out);
int stream_local(const struct stream *s, struct sockaddr_storage *out);

#endif
