/* probe.c */
#include "tests/lib/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/socket/address.h"
#include "proto/error.h"
#include "proto/wire.h"

#define IN_MAX      (4u << 20)
#define READ_LEN    65536u
#define FORGED_DATA TLS_PLAINTEXT_MAX

void byte_queue_put(struct byte_queue *q, const void *data, size_t len)
{
	if (len == 0)
		return;
	if (q->start > 0 && q->end + len > q->cap) {
		memmove(q->data, q->data + q->start, q->end - q->start);
		q->end -= q->start;
		q->start = 0;
	}
	while (q->end + len > q->cap) {
		q->cap = q->cap ? 2 * q->cap : 4096;
		q->data = realloc(q->data, q->cap);
		if (!q->data)
			abort();
	}
	memcpy(q->data + q->end, data, len);
	q->end += len;
}

void byte_queue_take(struct byte_queue *q, size_t len)
{
	q->start += len;
	if (q->start == q->end)
		q->start = q->end = 0;
}

uint64_t probe_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void probe_start(struct probe *p)
{
	*p = (struct probe){ .fd = -1, .in_max = IN_MAX };
}

void probe_reset(struct probe *p)
{
	if (p->fd >= 0)
		close(p->fd);
	memory_client_destroy(p->tls);
	record_forge_destroy(p->forge);
	free(p->out.data);
	free(p->in.data);
	free(p->partial.data);
	probe_start(p);
}

const char *probe_tcp_name(const struct probe *p)
{
	static const char *const names[] = {
		[TCP_NONE] = "none", [TCP_OPEN] = "open", [TCP_FIN] = "fin", [TCP_RST] = "rst"
	};

	return names[p->tcp];
}

static int wait_connected(struct probe *p, uint64_t deadline_ms)
{
	struct pollfd f = { .fd = p->fd, .events = POLLOUT };
	uint64_t now = probe_now_ms();
	int error = 0;
	socklen_t len = sizeof(error);

	if (poll(&f, 1, deadline_ms > now ? (int)(deadline_ms - now) : 0) != 1)
		return -ETIMEDOUT;
	getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return -error;
}

int probe_connect(struct probe *p, const char *address, const char *source, uint64_t deadline_ms)
{
	struct sockaddr_storage to, from;
	int on = 1;

	if (address_parse(address, &to) < 0 || (source && address_parse_host(source, &from) < 0))
		return -EINVAL;
	p->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	if (to.ss_family != AF_UNIX)
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (source && bind(p->fd, (struct sockaddr *)&from, address_len((struct sockaddr *)&from)) < 0)
		return -errno;
	if (connect(p->fd, (struct sockaddr *)&to, address_len((struct sockaddr *)&to)) < 0 && errno != EINPROGRESS)
		return -errno;
	int r = wait_connected(p, deadline_ms);
	if (r == 0)
		p->tcp = TCP_OPEN;
	return r;
}

static void tcp_ended(struct probe *p, ssize_t n)
{
	p->tcp = n == 0 ? TCP_FIN : TCP_RST;
	byte_queue_take(&p->out, byte_queue_len(&p->out));
}

static void count_records(struct probe *p, const uint8_t *data, size_t len)
{
	struct tls_record_header h;

	byte_queue_put(&p->partial, data, len);
	while (tls_record_scan(byte_queue_front(&p->partial), byte_queue_len(&p->partial), &h) == 0) {
		byte_queue_take(&p->partial, TLS_RECORD_HEADER_LEN + h.length);
		p->records_in++;
	}
}

/* Decrypted as far as OpenSSL likes; the first handshake is not advanced here. */
static void read_plaintext(struct probe *p)
{
	static uint8_t buffer[READ_LEN];
	ptrdiff_t n;

	while (p->phase == PHASE_DATA && (n = memory_client_read(p->tls, buffer, sizeof(buffer))) > 0)
		byte_queue_put(&p->in, buffer, (size_t)n);
	if (!p->forge)
		probe_collect(p); /* answers to KeyUpdates */
}

static void on_readable(struct probe *p)
{
	static uint8_t buffer[READ_LEN];
	ssize_t n = recv(p->fd, buffer, sizeof(buffer), 0);

	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			tcp_ended(p, n);
		return;
	}
	p->wire_in += (uint64_t)n;
	if (!p->tls) {
		byte_queue_put(&p->in, buffer, (size_t)n);
		return;
	}
	count_records(p, buffer, (size_t)n);
	memory_client_feed(p->tls, buffer, (size_t)n);
	read_plaintext(p);
}

static void on_writable(struct probe *p)
{
	size_t len = byte_queue_len(&p->out);

	if (p->pace.bytes && len > p->pace.bytes)
		len = p->pace.bytes;
	ssize_t n = send(p->fd, byte_queue_front(&p->out), len, MSG_NOSIGNAL);
	if (n < 0) {
		if (errno != EAGAIN)
			byte_queue_take(&p->out, byte_queue_len(&p->out)); /* reading says how it ended */
		return;
	}
	p->wire_out += (uint64_t)n;
	byte_queue_take(&p->out, (size_t)n);
	if (p->pace.bytes)
		p->pace.next_ms = probe_now_ms() + p->pace.every_ms;
}

int probe_turn(struct probe *p, uint64_t deadline_ms)
{
	struct pollfd f = { .fd = p->fd };
	uint64_t now = probe_now_ms(), until = deadline_ms;
	int may_write = byte_queue_len(&p->out) > 0;

	if (p->tcp != TCP_OPEN)
		return -1;
	if (may_write && p->pace.bytes && now < p->pace.next_ms) {
		may_write = 0;
		until = p->pace.next_ms < until ? p->pace.next_ms : until;
	}
	f.events = (short)((may_write ? POLLOUT : 0) | (byte_queue_len(&p->in) < p->in_max ? POLLIN : 0));
	int n = poll(&f, 1, until > now ? (int)(until - now) : 0);
	if (n <= 0)
		return until < deadline_ms ? 1 : 0;
	if (f.revents & (POLLIN | POLLHUP | POLLERR))
		on_readable(p);
	if (p->tcp == TCP_OPEN && (f.revents & POLLOUT))
		on_writable(p);
	return 1;
}

int probe_flush(struct probe *p, uint64_t deadline_ms)
{
	while (byte_queue_len(&p->out) > 0)
		if (probe_turn(p, deadline_ms) <= 0)
			return -1;
	return 0;
}

void probe_collect(struct probe *p)
{
	const uint8_t *data;
	size_t len = p->tls ? memory_client_output(p->tls, &data) : 0;

	if (len == 0)
		return;
	byte_queue_put(&p->out, data, len);
	memory_client_output_taken(p->tls, len);
}

void probe_raw(struct probe *p, const void *data, size_t len)
{
	byte_queue_put(&p->out, data, len);
}

void probe_say(struct probe *p, const void *data, size_t len)
{
	const uint8_t *at = data;

	if (!p->tls) {
		probe_raw(p, data, len);
		return;
	}
	if (!p->forge) {
		memory_client_write(p->tls, data, len);
		probe_collect(p);
		return;
	}
	while (len > 0) {
		size_t n = len < FORGED_DATA ? len : FORGED_DATA;
		probe_say_forged(p, &(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = at, .len = n });
		at += n;
		len -= n;
	}
}

void probe_update_keys(struct probe *p, int request)
{
	uint8_t message[5] = { 24, 0, 0, 1, request != 0 };

	if (!p->forge) {
		memory_client_update_keys(p->tls, request);
		probe_collect(p);
		return;
	}
	probe_say_forged(
		p, &(struct forged_record){ .type = TLS_HANDSHAKE, .content = message, .len = sizeof(message) });
	record_forge_step(p->forge);
}

void probe_close_notify(struct probe *p)
{
	if (p->forge) {
		probe_say_forged(p, &(struct forged_record){ .type = TLS_ALERT, .content = "\1", .len = 2 });
		return;
	}
	memory_client_close(p->tls);
	probe_collect(p);
}

int probe_forge(struct probe *p)
{
	struct direction_keys keys;
	uint64_t sequence;

	if (p->forge)
		return 0;
	if (!p->tls || !SSL_is_init_finished(memory_client_ssl(p->tls)))
		return CSSL_E_STATE;
	int r = memory_client_writing(p->tls, &keys, &sequence);
	if (r < 0)
		return r;
	p->forge = record_forge_create(
		cipher_suite_find(SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(memory_client_ssl(p->tls)))), &keys,
		sequence);
	return p->forge ? 0 : CSSL_E_NO_MEMORY;
}

int probe_say_forged(struct probe *p, const struct forged_record *r)
{
	static uint8_t record[FORGED_RECORD_MAX];
	ptrdiff_t n = record_forge_seal(p->forge, r, record, sizeof(record));

	if (n < 0)
		return (int)n;
	byte_queue_put(&p->out, record, (size_t)n);
	return 0;
}
