/* handover_message.c: a message is a buffer that moves to grow, and wipes its old memory. On the socket it is length
 * (4) | type (1) | zero (1) | descriptors (2), then the bytes. The descriptors come with the header: the kernel passes
 * them only with a read of the header.
 */
#include "ragent/handover/handover_message.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sodium.h>
#include <uv.h>

#include "proto/error.h"
#include "proto/fields.h"
#include "ragent/keeper/notes.h"

#define CAP_MIN       4096u
#define HEADER_LEN    8u
#define KERNEL_FDS    253u
#define CHANNEL_CHUNK (1024u * 1024u)

static void close_fds(struct handover_message *m)
{
	while (m->fds_are == HANDOVER_FDS_OWNED && m->fds_taken < m->fd_count)
		close(m->fds[m->fds_taken++]);
	m->fd_count = m->fds_taken = 0;
	m->fds_are = HANDOVER_FDS_BORROWED;
}

static void handover_message_wipe(struct handover_message *m)
{
	if (m->len)
		sodium_memzero(m->data, m->len);
	m->len = 0;
}

void handover_message_begin(struct handover_message *m, enum handover_type type)
{
	close_fds(m);
	handover_message_wipe(m);
	m->type = (uint8_t)type;
}

static int handover_message_grow(struct handover_message *m, size_t needed)
{
	size_t cap = m->cap ? m->cap : CAP_MIN;

	while (cap < needed)
		cap *= 2;
	uint8_t *bigger = malloc(cap);
	if (!bigger)
		return CSSL_E_NO_MEMORY;
	if (m->len) {
		memcpy(bigger, m->data, m->len);
		sodium_memzero(m->data, m->len);
	}
	free(m->data);
	m->data = bigger;
	m->cap = cap;
	return 0;
}

uint8_t *handover_message_room(struct handover_message *m, size_t len)
{
	if (len > HANDOVER_LEN_MAX - m->len || (m->len + len > m->cap && handover_message_grow(m, m->len + len) < 0))
		return NULL;
	m->len += len;
	return m->data + m->len - len;
}

int handover_message_put(struct handover_message *m, const void *data, size_t len)
{
	uint8_t *room = len ? handover_message_room(m, len) : NULL;

	if (len && !room)
		return CSSL_E_NO_MEMORY;
	if (len)
		memcpy(room, data, len);
	return 0;
}

int handover_message_put_field(
	struct handover_message *m, uint16_t tag, const void *front, size_t front_len, const char *text)
{
	const size_t text_len = text ? strlen(text) : 0, len = FIELD_HEADER_LEN + front_len + text_len;
	uint8_t *room = handover_message_room(m, len);

	if (!room)
		return CSSL_E_NO_MEMORY;
	struct wire_writer w = wire_writer(room, len);
	field_begin(&w, tag, front_len + text_len);
	wire_put_bytes(&w, front, front_len);
	wire_put_bytes(&w, text, text_len);
	return 0;
}

void handover_message_put_fd(struct handover_message *m, int fd)
{
	assert(m->fd_count < HANDOVER_FDS_MAX);
	m->fds[m->fd_count++] = fd;
}

int handover_message_take_fd(struct handover_message *m)
{
	return m->fds_taken < m->fd_count ? m->fds[m->fds_taken++] : -1;
}

void handover_message_clear(struct handover_message *m)
{
	close_fds(m);
	handover_message_wipe(m);
	free(m->data);
	*m = (struct handover_message){ 0 };
}

/* --- over the UNIX socket --- */

static uint64_t handover_now_ms(void)
{
	return notes_now_ns() / 1000000;
}

static uint64_t handover_end_of(uint64_t limit_ms)
{
	return limit_ms == HANDOVER_NO_LIMIT ? limit_ms : handover_now_ms() + limit_ms;
}

/* Wait until @fd has one of @events. 0 or negative. */
static int handover_channel_poll(int fd, short events, uint64_t end_ms)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		const uint64_t now = handover_now_ms();
		if (end_ms != HANDOVER_NO_LIMIT && now >= end_ms)
			return UV_ETIMEDOUT;
		int r = poll(&p, 1, end_ms == HANDOVER_NO_LIMIT ? -1 : (int)(end_ms - now));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/* After a failed call: 0 when the caller should try again. */
static int handover_channel_failed(int fd, short events, uint64_t end_ms)
{
	if (errno == EINTR)
		return 0;
	return errno == EAGAIN ? handover_channel_poll(fd, events, end_ms) : -errno;
}

/* --- out --- */

static int send_header(int fd, const struct handover_message *m, uint64_t end_ms)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(int) * HANDOVER_FDS_MAX)];
	} control = { 0 };
	uint8_t header[HEADER_LEN] = { 0 };
	struct iovec iov = { header, sizeof header };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t fds_len = m->fd_count * sizeof m->fds[0];
	int r = 0;

	wire_store_u32(header, (uint32_t)m->len);
	header[4] = m->type;
	wire_store_u16(header + 6, (uint16_t)m->fd_count);
	if (m->fd_count) {
		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(fds_len);
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		*c = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(fds_len), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
		};
		memcpy(CMSG_DATA(c), m->fds, fds_len);
	}
	while (r == 0) {
		if (sendmsg(fd, &h, MSG_NOSIGNAL) == (ssize_t)sizeof header)
			return 0;
		r = handover_channel_failed(fd, POLLOUT, end_ms);
	}
	return r;
}

int handover_channel_send(int fd, const struct handover_message *m, uint64_t limit_ms)
{
	const uint64_t end_ms = handover_end_of(limit_ms);
	int r = send_header(fd, m, end_ms);

	for (size_t sent = 0; r == 0 && sent < m->len;) {
		ssize_t n = send(fd, m->data + sent, m->len - sent, MSG_NOSIGNAL);
		if (n >= 0)
			sent += (size_t)n;
		else
			r = handover_channel_failed(fd, POLLOUT, end_ms);
	}
	return r;
}

int handover_channel_say(int fd, enum handover_type type, const char *sentence, uint64_t limit_ms)
{
	struct handover_message m = { 0 };

	handover_message_begin(&m, type);
	int r = handover_message_put(&m, sentence, strlen(sentence));
	if (r == 0)
		r = handover_channel_send(fd, &m, limit_ms);
	handover_message_clear(&m);
	return r;
}

/* --- in --- */

static void take_fds(struct msghdr *h, struct handover_message *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
			if (m->fd_count < HANDOVER_FDS_MAX)
				handover_message_put_fd(m, fd);
			else
				close(fd);
		}
	}
}

static int receive_header(int fd, struct handover_message *m, uint8_t header[static HEADER_LEN], uint64_t end_ms)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(int) * KERNEL_FDS)];
	} control;
	struct iovec iov = { header, HEADER_LEN };
	int r = 0;

	while (r == 0) {
		struct msghdr h = { .msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof control.bytes };
		ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (n < 0) {
			r = handover_channel_failed(fd, POLLIN, end_ms);
			continue;
		}
		take_fds(&h, m);
		if (n == 0)
			return UV_EOF;
		if (h.msg_flags & MSG_CTRUNC)
			return UV_EMFILE;
		return n == (ssize_t)HEADER_LEN ? 0 : CSSL_E_TRUNCATED;
	}
	return r;
}

/* Allocate memory as bytes come: the announced length is not trusted. */
static int receive_bytes(int fd, struct handover_message *m, size_t len, uint64_t end_ms)
{
	int r = 0;

	while (r == 0 && m->len < len) {
		size_t before = m->len, chunk = len - before < CHANNEL_CHUNK ? len - before : CHANNEL_CHUNK;
		uint8_t *room = handover_message_room(m, chunk);
		if (!room)
			return CSSL_E_NO_MEMORY;
		ssize_t n = recv(fd, room, chunk, MSG_DONTWAIT);
		m->len = before + (n > 0 ? (size_t)n : 0);
		if (n == 0)
			return UV_EOF;
		if (n < 0)
			r = handover_channel_failed(fd, POLLIN, end_ms);
	}
	return r;
}

int handover_channel_receive(int fd, struct handover_message *m, uint64_t limit_ms)
{
	const uint64_t end_ms = handover_end_of(limit_ms);
	uint8_t header[HEADER_LEN] = { 0 };

	handover_message_begin(m, HANDOVER_HELLO);
	m->fds_are = HANDOVER_FDS_OWNED;
	int r = receive_header(fd, m, header, end_ms);
	if (r < 0)
		return r;
	size_t len = wire_load_u32(header);
	m->type = header[4];
	if (m->type == 0 || m->type >= HANDOVER_TYPE_END)
		return CSSL_E_TYPE;
	if (len > HANDOVER_LEN_MAX)
		return CSSL_E_TOO_LONG;
	if (m->fd_count != wire_load_u16(header + 6))
		return UV_EMFILE;
	return receive_bytes(fd, m, len, end_ms);
}

void handover_channel_await(int fd)
{
	handover_channel_poll(fd, POLLIN, HANDOVER_NO_LIMIT);
}

bool handover_channel_next_is(int fd, enum handover_type type)
{
	uint8_t header[HEADER_LEN];

	return recv(fd, header, sizeof header, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof header && header[4] == type;
}

/* Bytes that were sent before the shutdown can still be read. The number comes from memory of a dead process: a
 * client's connection must not get a FIN by it. Of descriptors among them the kernel disposes. */
bool handover_channel_ends_with(int fd, enum handover_type type)
{
	const uint8_t expected[HEADER_LEN] = { [4] = (uint8_t)type };
	uint8_t left[HEADER_LEN + 1];
	size_t len = 0;
	ssize_t n = 1;

	if (notes_socket_option(fd, SO_DOMAIN) != AF_UNIX || notes_socket_option(fd, SO_TYPE) != SOCK_STREAM ||
		shutdown(fd, SHUT_RDWR) < 0)
		return false;
	while (n > 0 && len < sizeof left) {
		n = recv(fd, left + len, sizeof left - len, MSG_DONTWAIT);
		len += n > 0 ? (size_t)n : 0;
	}
	return len == sizeof expected && memcmp(left, expected, sizeof expected) == 0;
}

void handover_sentence(const struct handover_message *m, char *out, size_t cap)
{
	size_t len = m->len < cap - 1 ? m->len : cap - 1;

	for (size_t i = 0; i < len; i++)
		out[i] = m->data[i] >= ' ' && m->data[i] < 0x7f ? (char)m->data[i] : '?';
	out[len] = '\0';
}

/* --- who --- */

int handover_channel_connect(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof un.sun_path)
		return UV_ENAMETOOLONG;
	strcpy(un.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&un, sizeof un) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}
