/* stream.h: a TCP or UNIX connection with bounded writes. Embedded in its owner, all zero before it is opened.
 *
 * Output collects in one contiguous buffer (reserve, commit). It is written once in a turn of the loop, or when it
 * reaches the flush mark. stream_pending() counts what the kernel has not taken; above its limit, the owner stops
 * producing. Input comes in the worker's shared buffer: on_data gets the bytes, may change them in place, and returns
 * how many it used. The stream keeps the rest, and puts it in front of the next bytes. Kept and new bytes together are
 * at most WORKER_READ_BUFFER_LEN; an owner that reads on without using any gets on_end(STREAM_ERROR, UV_ENOBUFS). A
 * stream gets one read in a turn of the loop. An idle stream has no buffer.
 *
 * After stream_close() the owner gets exactly one on_closed. After a failure (on_end or on_connected with an error) the
 * owner still calls stream_close(). Only two callbacks come from within a stream_ call: on_flush (from stream_flush,
 * stream_commit, stream_send_fd) and on_data (from stream_read_again). Every callback may call every function, also
 * stream_close(); only on_closed may free.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "net/loop/worker.h"
#include "net/stream/rings.h"

#define STREAM_FLUSH_MARK_DEFAULT (64u * 1024u)

struct stream;

/* STREAM_RESET: the peer or the network cut the connection, even if libuv reports an end of data. */
enum stream_end { STREAM_EOF, STREAM_RESET, STREAM_ERROR };

struct stream_ops {
	/* Bytes came. Returns how many were used (0..len). After stream_close() inside, the result is ignored.
	 */
	size_t (*on_data)(struct stream *s, uint8_t *data, size_t len);
	/* Before on_data, if the bytes are in shared memory (stream_share()) and none is kept: the owner may use them
	 * there. The other process can change them at any time, so whatever is looked at is copied before. Returns how
	 * many were used; called again until that is 0. on_data gets a copy of the rest. NULL: of all. */
	size_t (*on_shared)(struct stream *s, const uint8_t *data, size_t len);
	/* The peer's FIN (reading has ended, writing may go on), a reset, or a local error @uv_error. When writing
	 * fails while the stream reads, the bytes that the peer had sent are delivered first. */
	void (*on_end)(struct stream *s, enum stream_end end, int uv_error);
	/* The kernel took @len more bytes; stream_pending() tells how many are left. May be NULL. */
	void (*on_written)(struct stream *s, size_t len);
	/* A connect ended: 0 or a libuv error (the owner then closes). NULL for accepted streams. */
	void (*on_connected)(struct stream *s, int uv_error);
	/* Every handle is closed: the owner may free, or zero the struct and open it again. */
	void (*on_closed)(struct stream *s);
	/* Just before a flush gives stream_output() to the kernel: the owner may still add to it and change it (a link
	 * seals a batch here). Not called while the kernel has to take earlier output. May be NULL. */
	void (*on_flush)(struct stream *s);
	/* A descriptor came, before or with the bytes that it was sent with (only after stream_expect_fds). The owner
	 * now owns it. If this process is at its limit of descriptors, the kernel drops it, and the bytes come alone.
	 */
	void (*on_fd)(struct stream *s, int fd);
	/* Bytes are about to be read: what they need can be fetched into the cache. May be NULL. */
	void (*foresee)(const struct stream *s);
};

enum stream_state {
	STREAM_NEW,
	STREAM_CONNECTING,
	STREAM_CONNECTING_LAST, /* the same; FIN will follow the output */
	STREAM_OPEN,
	STREAM_SHUTTING, /* FIN will follow the pending output */
	STREAM_SHUT,     /* FIN was sent */
	STREAM_FAILED,   /* on_end or on_connected with an error is due or came: no more is written */
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
	struct stream_buffer kept;      /* input that the owner did not use */
	struct stream_write *in_flight; /* the last output that libuv has, because the kernel did not take it at once */
	struct rings *rings;            /* stream_share(): they carry the bytes */
	uint32_t in_flight_len;
	uint32_t written; /* taken by the kernel, not yet told to the owner */
	uint32_t flush_mark;
	uint32_t out_last; /* length of the last flush: the next output buffer starts with so much */
	uint32_t read_max;
	uint32_t read_turn; /* loop turn of the last read */
	int failure;        /* libuv error not yet told to the owner */
	int received;       /* of the read under way: bytes, or a libuv error */
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

/* Before opening a UNIX stream: it may receive and send descriptors. Such a stream has no flush mark and is flushed
 * only at the end of the turn, so that a descriptor and its bytes stay together. */
void stream_expect_fds(struct stream *s);

/* Take over a connected descriptor; TCP_NODELAY is set on TCP. 0, or a negative libuv error: nothing is open, @fd is
 * closed, and there is no stream_close() and no on_closed. */
int stream_open_fd(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd);
/* The same with a TCP socket that a listener (net/loop/listener.h) accepted: the kernel is asked nothing about it. */
void stream_open_accepted(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd);

/* A process that stopped left these: input that it had read and not used, output that it had not written. */
struct stream_leftovers {
	const uint8_t *input, *output;
	size_t input_len, output_len;
};

/* As stream_open_fd(), and continue where another process stopped: @left (copied) is delivered and sent first, by the
 * loop. Also CSSL_E_NO_MEMORY. */
int stream_open_fd_with(
	struct stream *s, struct worker *w, const struct stream_ops *ops, int fd, const struct stream_leftovers *left);

/* Connect to an address (AF_INET, AF_INET6, AF_UNIX), from @source if that is not NULL. 0: on_connected will come,
 * unless the stream is closed before. Negative: as stream_open_fd(). Output written meanwhile is sent after the
 * connect. */
int stream_connect(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
	const struct sockaddr *source);

/* As stream_connect(), from @source, which may be another host's (IP_TRANSPARENT): the answers must be led here. Needs
 * CAP_NET_ADMIN or CAP_NET_RAW, else UV_EPERM. */
int stream_connect_as(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
	const struct sockaddr *source);

/* Both sides of an open UNIX stream share this memory (rings_make(), rings_open()): from now on it carries all bytes,
 * and a byte on the socket only wakes the other side. Takes over @fd. A stream that does not read does not learn of new
 * room for its output either. 0 or a negative libuv error. */
int stream_share(struct stream *s, int fd, enum rings_side side);
/* The descriptor of that memory, which the stream owns; -1: none. */
int stream_shared_fd(const struct stream *s);

/* Start to read. The loop delivers kept bytes first. Does nothing if the stream reads already, or has read the end. */
void stream_read_start(struct stream *s);
void stream_read_stop(struct stream *s);
/* As stop, when the peer is surely still sending: the next start reads at once, without waiting for epoll. It is
 * cheaper for a stream that is stopped and started often. */
void stream_read_pause(struct stream *s);

/* The most bytes of one read; default and limit WORKER_READ_BUFFER_LEN. An owner that stops keeps at most so many. */
void stream_set_read_max(struct stream *s, uint32_t bytes);

/* Call on_data now with the kept bytes, because the owner can use them now; also after the end.
 */
void stream_read_again(struct stream *s);
size_t stream_kept(const struct stream *s);

/* 0: no byte of the peer is unread; it may have ended. 1: one is, or the stream is not open. Asks the kernel. Not for
 * shared streams. */
bool stream_has_unread(const struct stream *s);

/* Asks the kernel about @count streams with one call. A bit of *quiet (the first stream: bit 0) is set if the stream is
 * open, and neither a byte nor an end of its peer is unread. */
#define STREAM_ASKED_MAX 64u
void stream_are_quiet(const struct stream *const *streams, unsigned count, uint64_t *quiet);

/* Put bytes in front of the kept ones, as if the peer had sent them before: those that a former reader of this
 * connection did not use. Not from within on_data. 0 or CSSL_E_NO_MEMORY. */
int stream_keep(struct stream *s, const void *data, size_t len);
const uint8_t *stream_kept_data(const struct stream *s);

/* Room for @len contiguous bytes after the output. NULL: the stream cannot write any more; or there is no memory,
 * and then the stream never writes again, because the missing bytes would not be noticed. on_end (while it connects,
 * on_connected) reports UV_ENOMEM. Commit the bytes that you wrote in the same callback. The next reserve makes the
 * pointer invalid. */
uint8_t *stream_reserve(struct stream *s, size_t len);
void stream_commit(struct stream *s, size_t len);
/* 0; CSSL_E_NO_MEMORY: the stream has failed, as with stream_reserve(); CSSL_E_STATE: closing, failed or shut. */
int stream_write(struct stream *s, const void *data, size_t len);

/* Bytes of output that the kernel has not taken. */
size_t stream_pending(const struct stream *s);

/* The committed output that was not flushed yet; it may be changed in place. Valid until the next stream_ call.
 */
uint8_t *stream_output(struct stream *s, size_t *len);

/* Write the output now, or at the end of this turn (which a commit asks for by itself). */
void stream_flush(struct stream *s);
void stream_flush_soon(struct stream *s);
void stream_set_flush_mark(struct stream *s, uint32_t bytes);
/* Output that is not urgent waits for more, so that it needs no write(2) of its own: keep what is committed until more
 * is, stream_flush_soon() or the FIN. The caller limits the time. Does nothing if the stream has more to do at the end
 * of this turn. */
void stream_hold(struct stream *s);

/* Send a duplicate of @fd with the output that was committed and not flushed, at least one byte. 0; UV_EINVAL (no
 * bytes, or no stream_expect_fds before) or another libuv error: nothing was sent. */
int stream_send_fd(struct stream *s, int fd);

/* Send FIN after the pending output. */
void stream_shutdown(struct stream *s);

/* Close; pending output is dropped. Legal in any state, twice, and inside a callback. Does nothing to a stream that was
 * never opened. */
void stream_close(struct stream *s);

/* Close with a TCP reset. */
void stream_abort(struct stream *s);

/* @on 1: any close of this connection, also by a crash, sends the peer a reset and never a FIN (SO_LINGER). @on 0 ends
 * that. TCP only. */
void stream_reset_on_close(struct stream *s, bool on);

/* Treat the peer as lost if it acknowledges nothing for @ms (keepalive probes and TCP_USER_TIMEOUT). Does nothing on
 * UNIX sockets. */
void stream_set_lost_limit(struct stream *s, unsigned ms);

/* Test builds: reads and writes ask the fault points "@name.read" and "@name.write" with @peer. The strings are not
 * copied. delay: bytes wait up to that time, in order. drop: they wait as long as the rule is there. cut: the
 * connection is reset. "@name.part" with drop: half of a large output is written, the rest waits as long as the rule is
 * there. "@name.bell" with drop or delay: bytes are in shared memory, but the other side is not woken. */
#ifdef CSSL_TEST_POINTS
void stream_set_fault(struct stream *s, const char *name, const char *peer);
#else
#define stream_set_fault(s, name, peer) ((void)(s), (void)(peer))
#endif

/* Take the descriptor out of an open stream without pending output. A FIN that is due is sent now, and reading stops.
 * Returns a duplicate, which keeps the connection; the owner closes the stream as usual. Negative: libuv error;
 * UV_EBUSY: output is pending. */
int stream_dup_fd(struct stream *s);

/* For a process that continues this connection: the descriptor (the stream still owns it, and the loop must not turn
 * while it is used), and all output that the kernel has not taken. Not while a descriptor is being sent, and of a
 * shared stream not between stream_write() and the flush. */
int stream_fd(const struct stream *s);
size_t stream_unwritten_len(const struct stream *s);
void stream_unwritten_copy(const struct stream *s, uint8_t *out);

int stream_peer(const struct stream *s, struct sockaddr_storage *out);
int stream_local(const struct stream *s, struct sockaddr_storage *out);
