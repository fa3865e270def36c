/* redis_link.c: a RESP connection on a stream. Requests are written straight into the stream's output, so that all of a
 * loop turn's requests leave in one write. A ring of tags pairs the replies with them. */
#include "smtpproxy/queue/backup/redis_link.h"

#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include <linux/sockios.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "smtpproxy/tls/onward_tls.h"

#define TAG_AUTH  UINT32_MAX
#define PLAIN_MAX 16384u /* of a record (RFC 8446 5.1) */

int64_t redis_link_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct redis_link *link_of(struct stream *s)
{
	return container_of(s, struct redis_link, stream);
}

void redis_link_close(struct redis_link *l, const char *why)
{
	if (l->state == REDIS_LINK_IDLE || l->state == REDIS_LINK_CLOSING)
		return;
	l->state = REDIS_LINK_CLOSING;
	l->why = why;
	stream_close(&l->stream);
}

static void link_ready(struct redis_link *l)
{
	l->state = REDIS_LINK_READY;
	l->ops->on_ready(l);
}

static void link_take_reply(struct redis_link *l, const redisReply *reply)
{
	struct redis_request asked;

	if (!l->asked_count) {
		redis_link_close(l, "a reply without a request");
		return;
	}
	asked = l->asked[l->asked_first++ % REDIS_ASKED_MAX];
	l->asked_count--;
	if (asked.tag != TAG_AUTH) {
		l->ops->on_reply(l, asked.tag, asked.sent_ms, reply);
	} else if (reply->type != REDIS_REPLY_ERROR) {
		link_ready(l);
	} else {
		l->ops->on_refused(l, reply->str);
		redis_link_close(l, "the server refused user or password");
	}
}

static void link_take(struct redis_link *l, const uint8_t *data, size_t len)
{
	void *reply;

	if (redisReaderFeed(l->reader, (const char *)data, len) != REDIS_OK)
		redis_link_close(l, "out of memory for replies");
	while (l->state != REDIS_LINK_CLOSING) {
		if (redisReaderGetReply(l->reader, &reply) != REDIS_OK) {
			redis_link_close(l, "a reply that is not RESP");
			break;
		}
		if (!reply)
			break;
		link_take_reply(l, reply);
		reply_room_reuse(&l->room);
	}
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	redis_link_close(link_of(s), uv_error ? error_text(uv_error) : "the server closed the connection");
}

static void link_greet(struct redis_link *l)
{
	const struct redis_login *login = l->login;

	if (!login->password) {
		link_ready(l);
		return;
	}
	l->state = REDIS_LINK_GREETING;
	if (login->user)
		redis_link_ask(l, TAG_AUTH, (const char *const[]){ "AUTH", login->user, login->password, NULL });
	else
		redis_link_ask(l, TAG_AUTH, (const char *const[]){ "AUTH", login->password, NULL });
}

/* TLS */

static void link_take_sealed(struct redis_link *l, const uint8_t *data, size_t len)
{
	enum onward_tls_state state;
	uint8_t plain[PLAIN_MAX];
	char text[128];
	size_t n;

	onward_tls_take(l->tls, data, len);
	if (onward_tls_flush(l->tls, &l->stream) < 0)
		redis_link_close(l, "out of memory for TLS");
	if (l->state == REDIS_LINK_CONNECTING && onward_tls_state(l->tls) == ONWARD_TLS_OPEN)
		link_greet(l);
	while (l->state != REDIS_LINK_CLOSING && (n = onward_tls_read(l->tls, plain, sizeof plain)) > 0)
		link_take(l, plain, n);
	state = onward_tls_state(l->tls);
	if (l->state == REDIS_LINK_CLOSING || state < ONWARD_TLS_ENDED)
		return;
	if (state == ONWARD_TLS_FAILED) {
		snprintf(text, sizeof text, "TLS %s", onward_tls_failure(l->tls));
		l->ops->on_refused(l, text);
	}
	redis_link_close(l, state == ONWARD_TLS_ENDED ? "the server closed the connection" : "TLS failed");
}

static int link_seal_plain(struct redis_link *l)
{
	const size_t len = l->plain_len;

	l->plain_len = 0;
	return onward_tls_write(l->tls, l->plain, len) < 0 ? -1 : onward_tls_flush(l->tls, &l->stream);
}

/* Requests gather in @plain, so that their records are as long as they can be. */
static int link_seal(struct redis_link *l, const uint8_t *data, size_t len)
{
	while (len > 0) {
		const size_t room = PLAIN_MAX - l->plain_len, n = len < room ? len : room;

		memcpy(l->plain + l->plain_len, data, n);
		l->plain_len += n;
		data += n;
		len -= n;
		if (l->plain_len == PLAIN_MAX && link_seal_plain(l) < 0)
			return -1;
	}
	return 0;
}

/* The stream */

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct redis_link *l = link_of(s);

	l->progress_ms = redis_link_clock_ms();
	if (l->tls)
		link_take_sealed(l, data, len);
	else
		link_take(l, data, len);
	return len;
}

static void on_connected(struct stream *s, int uv_error)
{
	struct redis_link *l = link_of(s);
	const struct redis_login *login = l->login;
	char host[INET6_ADDRSTRLEN] = "";

	if (uv_error < 0) {
		redis_link_close(l, error_text(uv_error));
		return;
	}
	stream_read_start(s);
	if (!login->tls) {
		link_greet(l);
		return;
	}
	getnameinfo(l->address, address_len(l->address), host, sizeof host, NULL, 0, NI_NUMERICHOST);
	l->plain = malloc(PLAIN_MAX);
	l->tls = onward_tls_create(login->tls, login->name ? login->name : host, NULL);
	if (!l->plain || !l->tls || onward_tls_flush(l->tls, &l->stream) < 0)
		redis_link_close(l, "out of memory for TLS");
}

static void on_closed(struct stream *s)
{
	struct redis_link *l = link_of(s);

	redisReaderFree(l->reader);
	reply_room_clear(&l->room);
	onward_tls_destroy(l->tls);
	if (l->plain) /* it had the password */
		explicit_bzero(l->plain, PLAIN_MAX);
	free(l->plain);
	*l = (struct redis_link){ .ops = l->ops, .login = l->login, .why = l->why };
	l->ops->on_lost(l, l->why);
}

static const struct stream_ops stream_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_connected = on_connected,
	.on_closed = on_closed,
};

int redis_link_open(struct redis_link *l, struct worker *w, const struct redis_link_ops *ops,
	const struct redis_login *login, const struct sockaddr *address)
{
	int r;

	l->ops = ops;
	l->login = login;
	l->address = address;
	l->opened_ms = redis_link_clock_ms();
	l->reader = reply_room_reader(&l->room);
	if (!l->reader)
		return CSSL_E_NO_MEMORY;
	r = stream_connect(&l->stream, w, &stream_ops, address, NULL);
	if (r < 0) {
		redisReaderFree(l->reader);
		l->reader = NULL;
		return r;
	}
	l->state = REDIS_LINK_CONNECTING;
	return 0;
}

static void link_put(struct redis_link *l, const void *data, size_t len)
{
	l->said += len;
	if (l->state == REDIS_LINK_CLOSING)
		return;
	if (l->tls ? link_seal(l, data, len) : stream_write(&l->stream, data, len))
		redis_link_close(l, "out of memory for requests");
}

static void link_put_head(struct redis_link *l, char mark, size_t number)
{
	char text[32];
	int len = snprintf(text, sizeof text, "%c%zu\r\n", mark, number);

	link_put(l, text, (size_t)len);
}

void redis_link_begin(struct redis_link *l, unsigned arguments)
{
	link_put_head(l, '*', arguments);
}

void redis_link_argument(struct redis_link *l, const void *data, size_t len)
{
	link_put_head(l, '$', len);
	link_put(l, data, len);
	link_put(l, "\r\n", 2);
}

void redis_link_number(struct redis_link *l, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	redis_link_text(l, text);
}

void redis_link_end(struct redis_link *l, uint32_t tag)
{
	if (l->state == REDIS_LINK_CLOSING)
		return;
	if (l->asked_count == REDIS_ASKED_MAX || (l->plain_len > 0 && link_seal_plain(l) < 0)) {
		redis_link_close(l, l->asked_count == REDIS_ASKED_MAX ? "too many requests without a reply"
								      : "out of memory for requests");
		return;
	}
	l->asked[(l->asked_first + l->asked_count++) % REDIS_ASKED_MAX] =
		(struct redis_request){ .tag = tag, .sent_ms = redis_link_clock_ms(), .end = l->said };
}

void redis_link_ask(struct redis_link *l, uint32_t tag, const char *const *words)
{
	unsigned count = 0;

	while (words[count])
		count++;
	redis_link_begin(l, count);
	for (; *words; words++)
		redis_link_text(l, *words);
	redis_link_end(l, tag);
}

int64_t redis_link_waits_ms(struct redis_link *l, int64_t now_ms)
{
	uint64_t here = stream_unwritten_len(&l->stream), left;
	struct redis_request *oldest;
	int queued = 0;

	if (l->state == REDIS_LINK_CONNECTING)
		return now_ms - l->opened_ms;
	if (!l->asked_count || l->state == REDIS_LINK_CLOSING)
		return 0;
	oldest = &l->asked[l->asked_first % REDIS_ASKED_MAX];
	/* Bytes that have left this host. The kernel's queue is counted with its bookkeeping for UNIX sockets: too
	 * much, until it is empty. */
	if (!ioctl(stream_fd(&l->stream), SIOCOUTQ, &queued))
		here += (uint64_t)queued;
	left = here < l->said ? l->said - here : 0;
	if (left > l->left && left < oldest->end) /* after its last byte, only an answer counts as progress */
		l->progress_ms = now_ms;
	l->left = left > l->left ? left : l->left;
	return now_ms - (l->progress_ms > oldest->sent_ms ? l->progress_ms : oldest->sent_ms);
}
