/* probe_http.c: sending and reading take turns, so that neither side can block the other. */
#include "tests/lib/probe_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/server/pattern.h"

#define PIECE   16384u
#define OUT_MAX (256u << 10) /* queued at most */
#define UNKNOWN UINT64_MAX

struct sending {
	uint64_t total, sent, started_ms;
};

struct exchange {
	struct probe *p;
	const struct http_request *request;
	struct http_response *out;
	struct sending body;
	uint64_t pattern_size; /* of the answer; UNKNOWN: not compared */
	uint64_t next_update;  /* at so many bytes both ways */
	EVP_MD_CTX *md;
};

static void update_keys(struct exchange *x)
{
	uint64_t every = x->request->key_update_every;

	while (every && x->body.sent + x->out->length >= x->next_update) {
		probe_update_keys(x->p, (int)(x->out->key_updates & 1));
		x->out->key_updates++;
		x->next_update += every;
	}
}

/* When may the next piece be said? */
static uint64_t due_ms(const struct exchange *x)
{
	return x->request->rate ? x->body.started_ms + x->body.sent * 1000 / x->request->rate : 0;
}

/* 1: said something. */
static int say_piece(struct exchange *x)
{
	uint8_t piece[PIECE];
	uint64_t left = x->body.total - x->body.sent;
	size_t n = left < PIECE ? (size_t)left : PIECE;

	if (n == 0 || byte_queue_len(&x->p->out) > OUT_MAX || probe_now_ms() < due_ms(x))
		return 0;
	if (x->request->rate && n > x->request->rate / 50 + 1)
		n = (size_t)(x->request->rate / 50 + 1);
	pattern_fill(piece, n, x->body.total, x->body.sent);
	probe_say(x->p, piece, n);
	x->body.sent += n;
	update_keys(x);
	return 1;
}

static void take_body(struct exchange *x)
{
	struct byte_queue *in = &x->p->in;
	uint8_t expected[PIECE];

	while (byte_queue_len(in) > 0 && x->out->length < x->out->expected) {
		uint64_t left = x->out->expected - x->out->length;
		size_t n = byte_queue_len(in) < PIECE ? byte_queue_len(in) : PIECE;
		if (n > left)
			n = (size_t)left;
		const uint8_t *data = byte_queue_front(in);
		EVP_DigestUpdate(x->md, data, n);
		pattern_fill(expected, n, x->pattern_size, x->out->length);
		if (x->pattern_size != UNKNOWN && x->out->wrong_at == UNKNOWN && memcmp(data, expected, n) != 0) {
			size_t i = 0;
			while (data[i] == expected[i])
				i++;
			x->out->wrong_at = x->out->length + i;
		}
		x->out->length += n;
		byte_queue_take(in, n);
		update_keys(x);
	}
}

static int has_ended(const struct probe *p)
{
	return p->tcp != TCP_OPEN || (p->tls && memory_client_end(p->tls) != CLIENT_OPEN);
}

/* When a turn has to be over: something can be said then, although nothing came. */
static uint64_t turn_ends_ms(const struct exchange *x, uint64_t deadline_ms)
{
	uint64_t due = due_ms(x);
	int waits_for_time = x->body.sent < x->body.total && byte_queue_len(&x->p->out) <= OUT_MAX;

	return waits_for_time && due < deadline_ms ? due : deadline_ms;
}

/* One step of both directions. 0, or -1: the deadline or the end. */
static int turn(struct exchange *x, uint64_t deadline_ms)
{
	int said = 0;

	while (say_piece(x))
		said = 1;
	if (!said && has_ended(x->p))
		return -1;
	uint64_t until = turn_ends_ms(x, deadline_ms);
	int r = probe_turn(x->p, until);
	return r < 0 || (r == 0 && until == deadline_ms) ? -1 : 0;
}

static void exchange_start(struct exchange *x)
{
	pattern_make();
	x->md = EVP_MD_CTX_new();
	EVP_DigestInit_ex(x->md, EVP_sha256(), NULL);
	x->next_update = x->request->key_update_every;
	x->body = (struct sending){ .total = x->request->body, .started_ms = probe_now_ms() };
	x->out->wrong_at = UNKNOWN;
}

static void exchange_stop(struct exchange *x, uint64_t deadline_ms)
{
	uint8_t digest[32];

	EVP_DigestFinal_ex(x->md, digest, NULL);
	EVP_MD_CTX_free(x->md);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(x->out->sha256 + 2 * i, 3, "%02x", digest[i]);
	x->out->sent = x->body.sent;
	if (x->out->length == x->out->expected || (x->out->expected == UNKNOWN && has_ended(x->p)))
		x->out->outcome = "complete";
	else
		x->out->outcome = has_ended(x->p) && probe_now_ms() < deadline_ms ? "cut" : "timeout";
}

/* 1: the head is there and taken. Interim answers (1xx) are read past. */
static int take_head(struct exchange *x)
{
	struct byte_queue *in = &x->p->in;
	if (byte_queue_len(in) == 0)
		return 0;
	const char *data = (const char *)byte_queue_front(in);
	const char *end = memmem(data, byte_queue_len(in), "\r\n\r\n", 4);
	if (!end)
		return 0;
	size_t len = (size_t)(end - data) + 4;
	if (len >= HTTP_HEAD_MAX || sscanf(data, "HTTP/1.%*d %d", &x->out->status) != 1)
		return 0;
	memcpy(x->out->head, data, len);
	x->out->head[len] = '\0';
	byte_queue_take(in, len);
	if (x->out->status < 200)
		return take_head(x);
	const char *length = strcasestr(x->out->head, "\r\ncontent-length:");
	x->out->expected = length ? strtoull(strchr(length + 2, ':') + 1, NULL, 10) : UNKNOWN;
	if (strcmp(x->request->method, "HEAD") == 0 || x->out->status == 204 || x->out->status == 304)
		x->out->expected = 0;
	x->pattern_size = x->out->expected;
	return 1;
}

void http_exchange(struct probe *p, const struct http_request *request, uint64_t deadline_ms, struct http_response *out)
{
	struct exchange x = { .p = p, .request = request, .out = out };
	char head[4096], length[64] = "";

	*out = (struct http_response){ .expected = UNKNOWN };
	exchange_start(&x);
	if (request->body > 0)
		snprintf(length, sizeof(length), "Content-Length: %llu\r\n", (unsigned long long)request->body);
	int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", request->method, request->path,
		request->host, length, request->headers);
	probe_say(p, head, (size_t)n);
	while (!take_head(&x))
		if (turn(&x, deadline_ms) < 0)
			break;
	if (out->status >= 200) {
		do
			take_body(&x);
		while (out->length < out->expected && turn(&x, deadline_ms) == 0);
		take_body(&x);
	}
	exchange_stop(&x, deadline_ms);
	if (out->status < 200 && strcmp(out->outcome, "complete") == 0)
		out->outcome = "cut";
}

void echo_exchange(struct probe *p, const struct http_request *how, uint64_t deadline_ms, struct http_response *out)
{
	struct exchange x = { .p = p, .request = how, .out = out, .pattern_size = how->body };

	*out = (struct http_response){ .expected = how->body };
	exchange_start(&x);
	do
		take_body(&x);
	while (out->length < out->expected && turn(&x, deadline_ms) == 0);
	take_body(&x);
	exchange_stop(&x, deadline_ms);
}
