/* http_connection.c: the connection's states and the steps between them.
 *
 *   PREFACE ---> READING ---> HOLDING ---> SENDING <---> BLOCKED
 *                 ^  |                     ^  |  ^
 *                 |  +---------------------+  |  +-----> PACED
 *                 +--------- keep-alive ------+--------> LEAVING ---> CLOSED      (CLOSED from everywhere)
 *
 * Requests are answered one after the other. While an answer is not complete nothing is parsed: what a pipelining
 * client sends meanwhile stays with the stream, which is then not read, so a connection costs the same memory whatever
 * its client does.
 */
#include "bench/server/http_connection.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "bench/server/pattern.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"

#define OUTPUT_MAX    (256u * 1024u) /* bytes that the kernel has not taken; above this, BLOCKED */
#define OUTPUT_RESUME (64u * 1024u)
#define PIECE_LEN     (64u * 1024u)
#define PACE_MS       10u
#define LEAVE_MS      2000u /* time for the client to read our last bytes */
#define PREFACE_MS    5000u /* time for a PROXY header that must come */

#define TO(state)  (1u << HTTP_##state)
#define TO_CLOSED  TO(CLOSED)
#define TO_LEAVING (TO(LEAVING) | TO_CLOSED)

static const unsigned moves[HTTP_CONNECTION_STATES] = {
	[HTTP_PREFACE] = TO(READING) | TO_CLOSED,
	[HTTP_READING] = TO(HOLDING) | TO(SENDING) | TO_LEAVING,
	[HTTP_HOLDING] = TO(SENDING) | TO_CLOSED,
	[HTTP_SENDING] = TO(READING) | TO(BLOCKED) | TO(PACED) | TO_LEAVING,
	[HTTP_BLOCKED] = TO(SENDING) | TO_CLOSED,
	[HTTP_PACED] = TO(SENDING) | TO_CLOSED,
	[HTTP_LEAVING] = TO_CLOSED,
	[HTTP_CLOSED] = 0,
};

static void http_connection_move(struct http_connection *c, enum http_connection_state to)
{
	assert(moves[c->state] & 1u << to);
	c->state = to;
}

static struct http_connection *of_stream(struct stream *s)
{
	return container_of(s, struct http_connection, stream);
}

static struct http_connection *of_request(struct http_request *r)
{
	return container_of(r, struct http_connection, request);
}

void http_connection_close(struct http_connection *c)
{
	if (c->state == HTTP_CLOSED)
		return;
	http_connection_move(c, HTTP_CLOSED);
	deadline_cancel(&c->deadline);
	stream_close(&c->stream);
}

/* Send FIN after the pending output, and give the client time to read. A close with unread input would reset the
 * connection, and our last bytes would be lost (RFC 9112 9.6). */
static void http_connection_leave(struct http_connection *c)
{
	if (c->peer == PEER_FINISHED && stream_pending(&c->stream) == 0) {
		http_connection_close(c);
		return;
	}
	http_connection_move(c, HTTP_LEAVING);
	stream_shutdown(&c->stream);
	stream_read_start(&c->stream);
	deadline_set(c->host->worker, &c->deadline, LEAVE_MS);
}

static void await_request(struct http_connection *c)
{
	http_connection_move(c, HTTP_READING);
	http_request_next(&c->request);
	if (c->host->idle_ms)
		deadline_set(c->host->worker, &c->deadline, c->host->idle_ms);
}

static void finish_answer(struct http_connection *c)
{
	if (c->persistence == HTTP_CLOSE || c->host->persistence == HTTP_CLOSE)
		http_connection_leave(c);
	else
		await_request(c);
}

/* How much of the body may be sent by now. */
static uint64_t http_connection_allowance(const struct http_connection *c)
{
	if (!c->answer.bytes_per_s)
		return c->left;
	uint64_t elapsed_ms = worker_now_ms(c->host->worker) - c->started_ms;
	uint64_t due = (elapsed_ms + PACE_MS) * c->answer.bytes_per_s / 1000;
	uint64_t sent = c->answer.length - c->left;
	if (due <= sent)
		return 0;
	return due - sent < c->left ? due - sent : c->left;
}

static int send_piece(struct http_connection *c, size_t len)
{
	uint64_t at = c->answer.length - c->left;
	uint8_t *out = stream_reserve(&c->stream, len);
	if (!out)
		return -1;
	if (c->answer.body == ANSWER_PATTERN)
		pattern_fill(out, len, c->answer.size, c->answer.offset + at);
	else
		memcpy(out, c->answer.text + at, len);
	c->left -= len;
	stream_commit(&c->stream, len);
	return 0;
}

/* Produce all that may be sent now. Afterwards the connection is BLOCKED, PACED, or done with this answer. */
static void send_on(struct http_connection *c)
{
	while (c->left > 0 && stream_pending(&c->stream) < OUTPUT_MAX) {
		uint64_t allowed = http_connection_allowance(c);
		if (allowed == 0) {
			http_connection_move(c, HTTP_PACED);
			deadline_set(c->host->worker, &c->deadline, PACE_MS);
			return;
		}
		if (send_piece(c, allowed < PIECE_LEN ? (size_t)allowed : PIECE_LEN)) {
			http_connection_close(c);
			return;
		}
	}
	if (stream_pending(&c->stream) >= OUTPUT_MAX)
		http_connection_move(c, HTTP_BLOCKED);
	else
		finish_answer(c);
}

static const char *date_now(struct http_host *host)
{
	uint64_t now = worker_wall_s();
	if (now != host->date_s) {
		struct tm tm;
		time_t t = (time_t)now;
		gmtime_r(&t, &tm);
		strftime(host->date, sizeof host->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
		host->date_s = now;
	}
	return host->date;
}

static void send_answer(struct http_connection *c)
{
	http_connection_move(c, HTTP_SENDING);
	if (c->host->persistence == HTTP_CLOSE)
		c->persistence = HTTP_CLOSE;
	char *out = (char *)stream_reserve(&c->stream, ANSWER_HEAD_MAX);
	if (!out) {
		http_connection_close(c);
		return;
	}
	size_t len = answer_write_head(&c->answer, &c->request, c->persistence, date_now(c->host), &c->identity, out);
	stream_commit(&c->stream, len);
	c->started_ms = worker_now_ms(c->host->worker);
	c->host->requests++;
	send_on(c);
}

static void begin_answer(struct http_connection *c)
{
	bool bodiless = http_request_method(&c->request) == HTTP_HEAD || c->answer.status == 304;
	deadline_cancel(&c->deadline);
	c->left = bodiless ? 0 : c->answer.length;
	if (c->answer.delay_ms == 0) {
		send_answer(c);
		return;
	}
	http_connection_move(c, HTTP_HOLDING);
	if (c->answer.delay_ms != ANSWER_NEVER)
		deadline_set_in_full(c->host->worker, &c->deadline, c->answer.delay_ms);
}

/* Answer a request whose rest is not wanted. */
static void http_connection_refuse(struct http_connection *c)
{
	c->persistence = HTTP_CLOSE;
	begin_answer(c);
}

static void begin_digest(struct http_connection *c)
{
	if (!c->digest)
		c->digest = EVP_MD_CTX_new();
	if (c->digest && EVP_DigestInit_ex2(c->digest, c->host->sha256, NULL) == 1)
		return;
	answer_status(&c->answer, 500);
	http_connection_refuse(c);
}

static void on_head(struct http_connection *c)
{
	const char *expect = http_request_field(&c->request, HTTP_FIELD_EXPECT);
	c->body.len = 0;
	c->resource = NULL;
	if (!c->request.refusal && expect && strcasecmp(expect, "100-continue") != 0)
		c->request.refusal = 417;
	if (c->request.refusal) {
		answer_status(&c->answer, c->request.refusal);
		http_connection_refuse(c);
		return;
	}
	c->resource = resource_find(c->request.path, http_request_method(&c->request), &c->answer);
	if (!c->resource && expect) {
		http_connection_refuse(c);
		return;
	}
	/* RFC 9110 10.1.1: HTTP/1.0 knows no 100. */
	if (expect && c->request.parser.http_minor > 0)
		stream_write(&c->stream, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	if (c->resource && resource_body_use(c->resource) == BODY_DIGESTED)
		begin_digest(c);
}

static void on_http_body(struct http_request *r, const uint8_t *data, size_t len)
{
	struct http_connection *c = of_request(r);
	c->body.len += len;
	if (c->resource && resource_body_use(c->resource) == BODY_DIGESTED)
		EVP_DigestUpdate(c->digest, data, len);
}

static void on_http_request(struct http_connection *c)
{
	c->persistence = c->request.persistence;
	if (c->resource && resource_body_use(c->resource) == BODY_DIGESTED)
		EVP_DigestFinal_ex(c->digest, c->body.sha256, NULL);
	if (c->resource)
		resource_answer(c->host->resources, c->resource, &c->request, &c->body, &c->answer);
	begin_answer(c);
}

static size_t read_requests(struct http_connection *c, const uint8_t *data, size_t len)
{
	size_t used = 0;
	enum http_event event = HTTP_READ_MORE;
	while (c->state == HTTP_READING && (used < len || event == HTTP_READ_HEAD)) {
		size_t taken;
		event = http_request_read(&c->request, data + used, len - used, &taken);
		used += taken;
		switch (event) {
		case HTTP_READ_MORE: break;
		case HTTP_READ_HEAD: on_head(c); break;
		case HTTP_READ_DONE: on_http_request(c); break;
		case HTTP_READ_BAD:
			answer_status(&c->answer, c->request.refusal);
			http_connection_refuse(c);
			break;
		}
	}
	return used;
}

enum { PREFACE_PROXY, PREFACE_HTTP, PREFACE_UNDECIDED };

/* Do these bytes begin a PROXY header? */
static int preface_kind(const uint8_t *data, size_t len)
{
	static const struct {
		const char *bytes;
		size_t len;
	} signatures[] = { { "\r\n\r\n\0\r\nQUIT\n", 12 }, { "PROXY ", 6 } };
	for (size_t i = 0; i < 2; i++) {
		size_t compared = len < signatures[i].len ? len : signatures[i].len;
		if (memcmp(data, signatures[i].bytes, compared) == 0)
			return len < signatures[i].len ? PREFACE_UNDECIDED : PREFACE_PROXY;
	}
	return PREFACE_HTTP;
}

static size_t read_preface(struct http_connection *c, const uint8_t *data, size_t len)
{
	struct proxy_header h;
	size_t taken = 0;
	int kind = preface_kind(data, len);
	if (kind == PREFACE_UNDECIDED)
		return 0;
	if (kind == PREFACE_PROXY) {
		int r = proxy_header_parse(data, len, &h, &taken);
		if (r == PROXY_INCOMPLETE)
			return 0;
		if (r == 0)
			agent_identity_add_proxy(&c->identity, &h);
		else
			kind = -1;
	} else if (c->host->proxy == PROXY_EXPECT_ALWAYS) {
		kind = -1;
	}
	if (kind < 0) {
		log_event(LOG_WARNING, NULL, "bad PROXY header", "len=%zu", len);
		http_connection_close(c);
		return 0;
	}
	deadline_cancel(&c->deadline);
	await_request(c);
	return taken;
}

static size_t on_http_data(struct stream *s, uint8_t *data, size_t len)
{
	struct http_connection *c = of_stream(s);
	size_t used = 0;
	if (c->state == HTTP_LEAVING || c->state == HTTP_CLOSED)
		return len;
	if (c->state == HTTP_PREFACE) {
		used = read_preface(c, data, len);
		if (c->state != HTTP_READING)
			return used;
	}
	used += read_requests(c, data + used, len - used);
	if (c->state == HTTP_LEAVING)
		return len;
	if (used < len && c->state != HTTP_CLOSED)
		stream_read_stop(s);
	return used;
}

/* After an answer that ended outside on_data: continue with the bytes that came meanwhile. */
static void resume_reading(struct http_connection *c)
{
	if (c->state != HTTP_READING)
		return;
	if (stream_kept(&c->stream) > 0)
		stream_read_again(&c->stream);
	if (c->state == HTTP_READING && c->peer == PEER_FINISHED)
		http_connection_leave(c);
	else if (c->state == HTTP_READING)
		stream_read_start(&c->stream);
}

static void on_http_written(struct stream *s, size_t len)
{
	struct http_connection *c = of_stream(s);
	if (c->state == HTTP_BLOCKED && stream_pending(s) <= OUTPUT_RESUME) {
		http_connection_move(c, HTTP_SENDING);
		send_on(c);
		resume_reading(c);
	} else if (c->state == HTTP_LEAVING && c->peer == PEER_FINISHED && stream_pending(s) == 0) {
		http_connection_close(c);
	}
}

static void on_http_deadline(struct deadline *d)
{
	struct http_connection *c = container_of(d, struct http_connection, deadline);
	switch (c->state) {
	case HTTP_HOLDING:
		send_answer(c);
		resume_reading(c);
		return;
	case HTTP_PACED:
		http_connection_move(c, HTTP_SENDING);
		send_on(c);
		resume_reading(c);
		return;
	default: /* too slow with its PROXY header or next request, or the time for our last bytes is over */
		http_connection_close(c);
	}
}

static void on_http_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct http_connection *c = of_stream(s);
	c->peer = PEER_FINISHED;
	if (end != STREAM_EOF || c->state == HTTP_PREFACE || c->state == HTTP_HOLDING)
		http_connection_close(c);
	else if (c->state == HTTP_READING)
		http_connection_leave(c);
	else if (c->state == HTTP_LEAVING && stream_pending(s) == 0)
		http_connection_close(c);
	/* A half-closed client still gets the current answer. */
}

static void on_http_closed(struct stream *s)
{
	struct http_connection *c = of_stream(s);
	c->host->on_gone(c->host, c);
}

static const struct stream_ops stream_ops = {
	.on_data = on_http_data,
	.on_end = on_http_end,
	.on_written = on_http_written,
	.on_closed = on_http_closed,
};

/* Where a header is optional, a client without one says nothing before its first request. */
static void await_preface(struct http_connection *c)
{
	const uint64_t limit_ms = c->host->proxy == PROXY_EXPECT_ALWAYS ? PREFACE_MS : c->host->idle_ms;

	if (limit_ms)
		deadline_set(c->host->worker, &c->deadline, limit_ms);
}

int http_connection_open(struct http_connection *c, struct http_host *host, int fd, const struct sockaddr *peer)
{
	c->host = host;
	c->state = HTTP_PREFACE;
	c->peer = PEER_OPEN;
	c->persistence = HTTP_KEEP_ALIVE;
	c->deadline.fn = on_http_deadline;
	memset(&c->stream, 0, sizeof c->stream);
	agent_identity_from_socket(&c->identity, &host->agents, peer);
	http_request_init(&c->request, on_http_body);
	int r = stream_open_fd(&c->stream, host->worker, &stream_ops, fd);
	if (r)
		return r;
	/* One write for a piece and its head; on_written says when the kernel took it. */
	stream_set_flush_mark(&c->stream, 2 * OUTPUT_MAX);
	if (host->proxy == PROXY_EXPECT_NONE)
		await_request(c);
	else
		await_preface(c);
	stream_read_start(&c->stream);
	return 0;
}

void http_connection_drain(struct http_connection *c)
{
	if (c->state == HTTP_READING && c->request.progress == HTTP_IDLE)
		http_connection_leave(c);
	else if (c->state == HTTP_PREFACE)
		http_connection_close(c);
}

void http_connection_wipe(struct http_connection *c)
{
	EVP_MD_CTX_free(c->digest);
	c->digest = NULL;
}
