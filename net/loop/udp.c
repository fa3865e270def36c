/* udp.c: outgoing datagrams collect in one buffer and leave in one sendmmsg at the end of the turn. Incoming ones
 * are read by recvmmsg into the worker's shared buffer. A datagram that the kernel does not take at once is dropped,
 * because waiting would only make it older.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/loop/udp.h"
#include "net/loop/wheel.h"
#include "net/loop/worker.h"
#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "net/socket/address.h"

#define UDP_BATCH           64u
#define UDP_BATCHES_A_TURN  4u
#define UDP_SEND_BUFFER_LEN (128u * 1024u)
#define UDP_RECEIVE_ROOM                                                                                               \
	(1024 * 1024) /* a burst of a whole cluster, while this worker is busy; the kernel may give less */

static_assert(UDP_BATCH * UDP_DATAGRAM_MAX <= WORKER_READ_BUFFER_LEN, "a batch fits the shared buffer");

struct udp_slot {
	struct iovec iov;
	struct sockaddr_storage address;
};

/* Room for one recvmmsg(). It stays prepared, because to prepare it takes longer than to receive one datagram. */
struct intake {
	struct mmsghdr messages[UDP_BATCH];
	struct udp_slot slots[UDP_BATCH];
};

struct udp {
	uv_poll_t poll;
	struct worker *worker;
	const struct udp_ops *ops;
	void *ctx;
	struct turn_end flush;
	LIST_HEAD(, udp_delayed) delayed; /* copies that a fault rule holds back */
	struct intake *intake;            /* NULL: it only sends */
	uint64_t dropped;
	int fd;
	enum { UDP_OPEN, UDP_CLOSING } state;
	/* queue of this turn */
	uint8_t *data;
	uint32_t data_cap, data_len;
	unsigned count;
	struct mmsghdr messages[UDP_BATCH];
	struct udp_slot slots[UDP_BATCH];
};

/* Test builds: a datagram is dropped, doubled, or copied and given back later. */

#ifdef CSSL_TEST_POINTS
#define REORDER_MIN_MS  10u
#define REORDER_SPAN_MS 30u

typedef void (*delayed_fn)(struct udp *u, uint8_t *data, size_t len, const struct sockaddr *address);

struct udp_delayed {
	struct deadline due; /* first: see on_due() */
	LIST_ENTRY(udp_delayed) in;
	struct udp *udp;
	delayed_fn later;
	struct sockaddr_storage address;
	size_t len;
	uint8_t data[];
};

static void on_due(struct deadline *due)
{
	struct udp_delayed *d = (struct udp_delayed *)due;

	LIST_REMOVE(d, in);
	d->later(d->udp, d->data, d->len, (struct sockaddr *)&d->address);
	free(d);
}

static void delay(
	struct udp *u, uint64_t ms, const uint8_t *data, size_t len, const struct sockaddr *address, delayed_fn later)
{
	struct udp_delayed *d = calloc(1, sizeof *d + len);

	if (!d)
		return; /* lost, as a network may lose it */
	d->due.fn = on_due;
	d->udp = u;
	d->later = later;
	memcpy(&d->address, address, address_len(address));
	d->len = len;
	memcpy(d->data, data, len);
	LIST_INSERT_HEAD(&u->delayed, d, in);
	deadline_set_in_full(u->worker, &d->due, ms);
}

/* Ask the rules about this datagram. Returns how many copies go on now. A delayed one is given to @later when its time
 * comes. Reordering is a short random delay: later datagrams overtake it. */
static unsigned ask_faults(struct udp *u, const char *point, const uint8_t *data, size_t len,
	const struct sockaddr *address, delayed_fn later)
{
	uint64_t ms = 0;

	switch (fault_at(point, u->ops->peer_name ? u->ops->peer_name(u->ctx, address) : NULL, &ms)) {
	case FAULT_DROP: return 0;
	case FAULT_DUPLICATE: return 2;
	case FAULT_REORDER: ms = REORDER_MIN_MS + randombytes_uniform(REORDER_SPAN_MS); /* fall through */
	case FAULT_DELAY: delay(u, ms, data, len, address, later); return 0;
	default: return 1;
	}
}

static void drop_delayed(struct udp *u)
{
	struct udp_delayed *d;

	while ((d = LIST_FIRST(&u->delayed))) {
		LIST_REMOVE(d, in);
		deadline_cancel(&d->due);
		free(d);
	}
}
#else
#define ask_faults(u, point, data, len, address, later) ((void)(later), 1u)
#define drop_delayed(u)                                 ((void)(u))
#endif

/* Sending */

static bool is_full(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

/* Send the queue. A datagram that is refused for itself (no route, too long for the path) does not stop the others. */
static void udp_flush(struct udp *u)
{
	unsigned at = 0;

	while (at < u->count) {
		int n = sendmmsg(u->fd, u->messages + at, u->count - at, MSG_DONTWAIT);
		if (n > 0) {
			at += (unsigned)n;
			continue;
		}
		unsigned lost = is_full(errno) ? u->count - at : 1;
		if (errno == EINTR)
			continue;
		u->dropped += lost;
		at += lost;
	}
	u->count = 0;
	u->data_len = 0;
	buffers_give(worker_buffers(u->worker), u->data, u->data_cap);
	u->data = NULL;
}

static void on_turn_end(struct turn_end *t)
{
	udp_flush(container_of(t, struct udp, flush));
}

static void queue(struct udp *u, const void *data, size_t len, const struct sockaddr *to)
{
	if (u->count == UDP_BATCH || u->data_len + len > UDP_SEND_BUFFER_LEN)
		udp_flush(u);
	if (!u->data)
		u->data = buffers_take(worker_buffers(u->worker), UDP_SEND_BUFFER_LEN, &u->data_cap);
	if (!u->data) {
		u->dropped++;
		return;
	}
	struct udp_slot *slot = &u->slots[u->count];
	socklen_t address_bytes_len = address_len(to);
	slot->iov = (struct iovec){ u->data + u->data_len, len };
	memcpy(slot->iov.iov_base, data, len);
	memcpy(&slot->address, to, address_bytes_len);
	u->messages[u->count].msg_hdr = (struct msghdr){
		.msg_name = &slot->address, .msg_namelen = address_bytes_len, .msg_iov = &slot->iov, .msg_iovlen = 1
	};
	u->data_len += (uint32_t)len;
	u->count++;
	worker_at_turn_end(u->worker, &u->flush);
}

static void send_delayed(struct udp *u, uint8_t *data, size_t len, const struct sockaddr *to)
{
	queue(u, data, len, to);
}

void udp_send(struct udp *u, const void *data, size_t len, const struct sockaddr *to)
{
	if (len > UDP_DATAGRAM_MAX || u->state != UDP_OPEN) {
		u->dropped++;
		return;
	}
	unsigned copies = 1;
	if (fault_active())
		copies = ask_faults(u, "udp.send", data, len, to, send_delayed);
	for (; copies > 0; copies--)
		queue(u, data, len, to);
}

/* Receiving */

static void deliver(struct udp *u, uint8_t *data, size_t len, const struct sockaddr *from)
{
	u->ops->on_datagram(u->ctx, data, len, from);
}

static void deliver_one(struct udp *u, struct mmsghdr *m)
{
	uint8_t *data = m->msg_hdr.msg_iov->iov_base;
	const struct sockaddr *from = m->msg_hdr.msg_name;
	unsigned copies = 1;

	if (m->msg_hdr.msg_flags & MSG_TRUNC) {
		u->dropped++;
		return;
	}
	if (fault_active())
		copies = ask_faults(u, "udp.receive", data, m->msg_len, from, deliver);
	uint8_t spare[UDP_DATAGRAM_MAX]; /* the receiver of the first delivery may change the bytes */
	if (copies > 1)
		memcpy(spare, data, m->msg_len);
	for (unsigned i = 0; i < copies && u->state == UDP_OPEN; i++)
		deliver(u, i == 0 ? data : spare, m->msg_len, from);
}

static struct intake *intake_create(struct worker *w)
{
	struct intake *in = calloc(1, sizeof *in);
	uint8_t *buffer = worker_read_buffer(w);

	for (unsigned i = 0; in && i < UDP_BATCH; i++) {
		struct udp_slot *slot = &in->slots[i];
		slot->iov = (struct iovec){ buffer + i * UDP_DATAGRAM_MAX, UDP_DATAGRAM_MAX };
		in->messages[i].msg_hdr = (struct msghdr){ .msg_name = &slot->address,
			.msg_namelen = sizeof slot->address,
			.msg_iov = &slot->iov,
			.msg_iovlen = 1 };
	}
	return in;
}

/* Datagrams received, 0 when there are no more. */
static unsigned receive_batch(struct udp *u)
{
	struct mmsghdr *messages = u->intake->messages;
	int n = recvmmsg(u->fd, messages, UDP_BATCH, MSG_DONTWAIT, NULL);

	for (int i = 0; i < n && u->state == UDP_OPEN; i++) {
		deliver_one(u, &messages[i]);
		messages[i].msg_hdr.msg_namelen = sizeof(struct sockaddr_storage);
	}
	return n > 0 ? (unsigned)n : 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct udp *u = poll->data;

	/* an error shows in recvmmsg, which also clears it */
	for (unsigned i = 0; i < UDP_BATCHES_A_TURN && u->state == UDP_OPEN; i++)
		if (receive_batch(u) < UDP_BATCH)
			return;
}

/* Life */

int udp_bind(const struct sockaddr *address, enum socket_place place)
{
	int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;

	int r = socket_bind(fd, address, place);
	socket_option(fd, SOL_SOCKET, SO_RCVBUF, UDP_RECEIVE_ROOM);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* On @fd, which is closed on failure. @intake NULL: to send only; else it is taken. */
static struct udp *udp_make(
	struct worker *w, int fd, struct intake *intake, const struct udp_ops *ops, void *ctx, int *uv_error)
{
	struct udp *u = calloc(1, sizeof *u);

	*uv_error = u ? uv_poll_init(worker_loop(w), &u->poll, fd) : UV_ENOMEM;
	if (*uv_error < 0) {
		close(fd);
		free(intake);
		free(u);
		return NULL;
	}
	u->intake = intake;
	u->poll.data = u;
	u->worker = w;
	u->ops = ops;
	u->ctx = ctx;
	u->flush.fn = on_turn_end;
	u->fd = fd;
	worker_hold(w);
	if (intake)
		uv_poll_start(&u->poll, UV_READABLE, on_readable);
	return u;
}

struct udp *udp_create_fd(struct worker *w, int fd, const struct udp_ops *ops, void *ctx, int *uv_error)
{
	struct intake *intake = intake_create(w);

	if (!intake) {
		*uv_error = UV_ENOMEM;
		close(fd);
		return NULL;
	}
	return udp_make(w, fd, intake, ops, ctx, uv_error);
}

struct udp *udp_create(struct worker *w, const struct sockaddr *bind_to, int receive, const struct udp_ops *ops,
	void *ctx, int *uv_error)
{
	int fd = udp_bind(bind_to, SOCKET_FIRST);

	if (fd < 0) {
		*uv_error = fd;
		return NULL;
	}
	return receive ? udp_create_fd(w, fd, ops, ctx, uv_error) : udp_make(w, fd, NULL, ops, ctx, uv_error);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct udp *u = handle->data;
	struct worker *w = u->worker;
	const struct udp_ops *ops = u->ops;
	void *ctx = u->ctx;

	free(u->intake);
	free(u);
	worker_release(w);
	ops->on_closed(ctx);
}

void udp_close(struct udp *u)
{
	if (!u || u->state == UDP_CLOSING)
		return;
	drop_delayed(u);
	udp_flush(u);
	u->state = UDP_CLOSING;
	turn_end_cancel(&u->flush);
	uv_close((uv_handle_t *)&u->poll, on_poll_closed);
	close(u->fd);
	u->fd = -1;
}

uint64_t udp_dropped(const struct udp *u)
{
	return u->dropped;
}

int udp_address(const struct udp *u, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;

	memset(out, 0, sizeof *out);
	return getsockname(u->fd, (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}
