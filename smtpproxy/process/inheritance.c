/* inheritance.c: blocking calls, because this process has nothing else to do yet. */
#include "smtpproxy/process/inheritance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/socket/address.h"

#define SOCKETS_MAX 128u
#define WAIT_S      10

struct inherited {
	struct inheritance_message message;
	int fd; /* -1: taken */
};

struct inheritance {
	int channel;
	unsigned count;
	struct inherited sockets[SOCKETS_MAX];
};

static int open_channel(const char *path)
{
	const struct timeval wait = { .tv_sec = WAIT_S };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The descriptor of @m, or -1. */
static int descriptor_of(struct msghdr *m)
{
	int fd = -1;
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof fd))
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

/* The kernel never joins the bytes of two messages that have descriptors. */
static int inheritance_receive(int channel, struct inherited *out)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} room;
	struct iovec bytes = { &out->message, sizeof out->message };
	struct msghdr m = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes
	};
	const ssize_t len = recvmsg(channel, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	if (len != (ssize_t)sizeof out->message)
		return -1;
	out->fd = descriptor_of(&m);
	return out->message.format == INHERITANCE_FORMAT ? 0 : -1;
}

static int receive_all(struct inheritance *in)
{
	struct inherited next;
	while (inheritance_receive(in->channel, &next) == 0) {
		if (next.message.kind == INHERITANCE_END)
			return 0;
		if (next.fd < 0 || in->count == SOCKETS_MAX)
			return -1;
		in->sockets[in->count++] = next;
	}
	return -1;
}

struct inheritance *inheritance_take(const char *path, char *error, size_t cap)
{
	struct inheritance *in = calloc(1, sizeof *in);
	if (!in) {
		snprintf(error, cap, "out of memory");
		return NULL;
	}
	in->channel = open_channel(path);
	if (in->channel >= 0 && receive_all(in) == 0)
		return in;
	snprintf(error, cap, "handover: %s: %s", path,
		in->channel < 0 ? "no smtpproxy listens there, or not for this user"
				: "the smtpproxy there does not give its sockets");
	inheritance_destroy(in);
	return NULL;
}

static bool listens_at(int fd, const struct sockaddr *address)
{
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof own;
	return getsockname(fd, (struct sockaddr *)&own, &len) == 0 && own.ss_family == address->sa_family &&
	       address_is_same((const struct sockaddr *)&own, address);
}

int inheritance_find(
	struct inheritance *in, enum inheritance_kind kind, unsigned detail, const struct sockaddr *address)
{
	for (unsigned i = 0; in && i < in->count; i++) {
		struct inherited *s = &in->sockets[i];
		const int fd = s->fd;
		if (fd < 0 || s->message.kind != kind || s->message.detail != detail || !listens_at(fd, address))
			continue;
		s->fd = -1;
		return fd;
	}
	return -1;
}

int inheritance_confirm(struct inheritance *in)
{
	static const char taken = INHERITANCE_TAKEN;
	const int channel = in->channel;
	if (send(channel, &taken, 1, MSG_NOSIGNAL) < 0)
		return -1;
	in->channel = -1;
	return channel;
}

void inheritance_destroy(struct inheritance *in)
{
	if (!in)
		return;
	for (unsigned i = 0; i < in->count; i++)
		if (in->sockets[i].fd >= 0)
			close(in->sockets[i].fd);
	if (in->channel >= 0)
		close(in->channel);
	free(in);
}
