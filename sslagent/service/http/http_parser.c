/* http_parser.c: the end of each message ends a call of llhttp. So this file knows where the next message begins. */
#include "sslagent/service/http/http_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "sslagent/service/http/loose_end.h"

static struct http_parser *parser_of(llhttp_t *p)
{
	return container_of(p, struct http_parser, llhttp);
}

static void http_parser_forget(struct http_parser *p)
{
	if (p->kept)
		sodium_memzero(p->kept, p->kept_len);
	free(p->kept);
	p->kept = NULL;
	p->kept_len = p->kept_cap = 0;
}

static void http_parser_stand(struct http_parser *p, enum http_standing standing)
{
	p->standing = (uint8_t)standing;
	http_parser_forget(p);
}

void http_parser_init(struct http_parser *p, llhttp_type_t type, const llhttp_settings_t *settings, void *data)
{
	*p = (struct http_parser){ .standing = HTTP_AT_START };
	llhttp_init(&p->llhttp, type, settings);
	p->llhttp.data = data;
}

void http_parser_clear(struct http_parser *p)
{
	http_parser_forget(p);
	free(p->loose);
	p->loose = NULL;
}

/* --- where it stands --- */

void http_parser_begins(llhttp_t *l)
{
	http_parser_stand(parser_of(l), HTTP_AMID_HEAD);
}

void http_parser_headed(llhttp_t *l)
{
	struct http_parser *p = parser_of(l);

	p->major = l->http_major;
	p->minor = l->http_minor;
	p->is_last = l->flags & (F_CONNECTION_CLOSE | F_CONNECTION_KEEP_ALIVE);
	if (l->flags & F_CHUNKED)
		return; /* its head is kept together with the line of the first chunk */
	p->left = l->content_length;
	http_parser_stand(p, l->flags & F_CONTENT_LENGTH ? HTTP_AMID_BODY : HTTP_UNTIL_END);
}

int http_parser_on_chunk(llhttp_t *l)
{
	struct http_parser *p = parser_of(l);

	if (l->content_length == 0) /* the last chunk: trailers may follow */
		return 0;
	p->left = l->content_length;
	http_parser_stand(p, HTTP_AMID_CHUNK);
	return 0;
}

int http_parser_on_body(llhttp_t *l, const char *at, size_t len)
{
	struct http_parser *p = parser_of(l);

	p->left -= len;
	if (p->standing == HTTP_AMID_CHUNK && p->left == 0) {
		http_parser_stand(p, HTTP_BEHIND_CHUNK);
		p->since = (const uint8_t *)at + len;
	}
	return 0;
}

int http_parser_completed(llhttp_t *l)
{
	http_parser_stand(parser_of(l), llhttp_should_keep_alive(l) ? HTTP_AT_START : HTTP_CLOSED);
	return l->upgrade ? 0 : HPE_PAUSED;
}

/* --- bytes --- */

/* Bytes that are not kept cannot be written down, but they are parsed all the same. */
static void http_parser_keep(struct http_parser *p, const uint8_t *data, size_t len)
{
	if (p->kept_len + len > HTTP_KEPT_MAX || (p->kept_len == 0 && p->kept_cap)) {
		http_parser_forget(p);
		p->kept_cap = HTTP_KEPT_MAX; /* from now on nothing is kept */
		return;
	}
	uint8_t *bigger = malloc(p->kept_len + len);
	if (!bigger) {
		http_parser_forget(p);
		p->kept_cap = HTTP_KEPT_MAX;
		return;
	}
	if (p->kept)
		memcpy(bigger, p->kept, p->kept_len);
	memcpy(bigger + p->kept_len, data, len);
	uint32_t kept_len = p->kept_len + (uint32_t)len;
	http_parser_forget(p);
	p->kept = bigger;
	p->kept_len = p->kept_cap = kept_len;
}

/* Its head is not understood. @data: its bytes that are not kept. */
static void begin_loose_end(struct http_parser *p, const uint8_t *data, size_t len)
{
	const bool is_known = p->kept_cap == p->kept_len && p->standing <= HTTP_AMID_HEAD;

	if (p->llhttp.type == HTTP_RESPONSE && is_known)
		p->loose = calloc(1, sizeof *p->loose);
	if (!p->loose)
		return;
	loose_end_follow(p->loose, p->kept, p->kept_len);
	loose_end_follow(p->loose, data, len);
}

llhttp_errno_t http_parser_feed(
	struct http_parser *p, const uint8_t *data, size_t len, enum service_until until, size_t *used)
{
	const uint8_t *at = data, *end = data + len;
	llhttp_errno_t e;

	*used = len;
	if (p->loose) {
		loose_end_follow(p->loose, data, len);
		return llhttp_get_errno(&p->llhttp);
	}
	for (;;) {
		p->since = at;
		/* llhttp pauses at the end of each message (http_parser_completed()) */
		e = llhttp_execute(&p->llhttp, (const char *)at, (size_t)(end - at));
		if (e != HPE_PAUSED)
			break;
		at = (const uint8_t *)llhttp_get_error_pos(&p->llhttp);
		llhttp_resume(&p->llhttp);
		if (until == SERVICE_TO_END) {
			*used = (size_t)(at - data);
			return HPE_PAUSED;
		}
		if (at == end)
			return HPE_OK;
	}
	/* where an answer ends may be known although its head is odd, so that its end is no loss (law 8) */
	if (e != HPE_OK && e != HPE_PAUSED_UPGRADE && p->standing != HTTP_BROKEN)
		begin_loose_end(p, p->since, (size_t)(end - p->since));
	if (e != HPE_OK)
		http_parser_stand(p, e == HPE_PAUSED_UPGRADE ? HTTP_UPGRADES : HTTP_BROKEN);
	else if ((p->standing == HTTP_AMID_HEAD || p->standing == HTTP_BEHIND_CHUNK) && end > p->since)
		http_parser_keep(p, p->since, (size_t)(end - p->since));
	p->since = NULL;
	return e;
}

llhttp_errno_t http_parser_end(struct http_parser *p)
{
	llhttp_errno_t e = llhttp_finish(&p->llhttp);

	return e == HPE_PAUSED ? HPE_OK : e; /* after a message that the end of the connection completed */
}

/* --- as bytes --- */

int http_parser_put(const struct http_parser *p, struct wire_writer *w)
{
	if (p->kept_cap != p->kept_len || p->loose)
		return CSSL_E_TOO_LONG;
	wire_put_u8(w, p->standing);
	wire_put_u8(w, p->major);
	wire_put_u8(w, p->minor);
	wire_put_u8(w, p->is_last);
	wire_put_u8(w, p->standing == HTTP_UPGRADES && p->llhttp.method == HTTP_CONNECT);
	wire_put_u64(w, p->left);
	wire_put_u16(w, (uint16_t)p->kept_len);
	wire_put_bytes(w, p->kept, p->kept_len);
	return 0;
}

/* Writes a head that brings a new parser to the same point, and as much of the body as comes before that point. */
static size_t make_up(const struct http_parser *p, llhttp_type_t type, int is_connect, char *out, size_t cap)
{
	static const char tunnel[] = "CONNECT a:1 HTTP/1.1\r\n\r\n";
	static const char switching[] = "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
	static const char switched[] = "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
	char first[64], body[96] = "";

	if (type == HTTP_REQUEST)
		snprintf(first, sizeof first, "POST / HTTP/%u.%u", p->major, p->minor);
	else
		snprintf(first, sizeof first, "HTTP/%u.%u 200 OK", p->major, p->minor);
	/* llhttp says nothing of its state that another release could read, so it is led there by bytes */
	switch ((enum http_standing)p->standing) {
	case HTTP_AMID_BODY:
		snprintf(body, sizeof body, "Content-Length: %llu\r\n\r\n", (unsigned long long)p->left);
		break;
	case HTTP_AMID_CHUNK:
		snprintf(body, sizeof body, "Transfer-Encoding: chunked\r\n\r\n%llx\r\n", (unsigned long long)p->left);
		break;
	case HTTP_BEHIND_CHUNK: snprintf(body, sizeof body, "Transfer-Encoding: chunked\r\n\r\n1\r\nx"); break;
	case HTTP_UNTIL_END: snprintf(body, sizeof body, "\r\n"); break;
	case HTTP_CLOSED:
		return (size_t)snprintf(out, cap, "%s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
			type == HTTP_REQUEST ? "POST / HTTP/1.1" : "HTTP/1.1 200 OK");
	case HTTP_UPGRADES:
		return (size_t)snprintf(out, cap, "%s",
			type == HTTP_RESPONSE ? switched
			: is_connect          ? tunnel
					      : switching);
	case HTTP_BROKEN: return (size_t)snprintf(out, cap, "\1");
	default: return 0;
	}
	return (size_t)snprintf(out, cap, "%s\r\n%s%s%s", first,
		p->is_last & F_CONNECTION_CLOSE ? "Connection: close\r\n" : "",
		p->is_last & F_CONNECTION_KEEP_ALIVE ? "Connection: keep-alive\r\n" : "", body);
}

static bool stands_as_told(llhttp_errno_t e, enum http_standing standing)
{
	return standing == HTTP_BROKEN     ? e != HPE_OK
	       : standing == HTTP_UPGRADES ? e == HPE_PAUSED_UPGRADE
					   : e == HPE_OK;
}

static int go_on_there(struct http_parser *p, int is_connect, const uint8_t *kept, size_t kept_len)
{
	static const llhttp_settings_t mute = { 0 };
	const llhttp_settings_t *settings = p->llhttp.settings;
	llhttp_type_t type = (llhttp_type_t)p->llhttp.type;
	void *data = p->llhttp.data;
	char head[256];
	size_t len = make_up(p, type, is_connect, head, sizeof head);

	llhttp_init(&p->llhttp, type, &mute);
	llhttp_errno_t e = len ? llhttp_execute(&p->llhttp, head, len) : HPE_OK;
	if (e == HPE_OK && kept_len)
		e = llhttp_execute(&p->llhttp, (const char *)kept, kept_len);
	p->llhttp.settings = (void *)(uintptr_t)settings;
	p->llhttp.data = data;
	return stands_as_told(e, (enum http_standing)p->standing) ? 0 : CSSL_E_RANGE;
}

int http_parser_get(struct http_parser *p, struct wire_reader *r)
{
	p->standing = wire_u8(r);
	p->major = wire_u8(r);
	p->minor = wire_u8(r);
	p->is_last = wire_u8(r);
	int is_connect = wire_u8(r);
	p->left = wire_u64(r);
	size_t kept_len = wire_u16(r);
	const uint8_t *kept = wire_bytes(r, kept_len);
	bool keeps = p->standing == HTTP_AMID_HEAD || p->standing == HTTP_BEHIND_CHUNK;

	if (!kept || p->standing >= HTTP_STANDING_COUNT || kept_len > HTTP_KEPT_MAX || (kept_len && !keeps))
		return CSSL_E_RANGE;
	if (kept_len)
		http_parser_keep(p, kept, kept_len);
	return go_on_there(p, is_connect, kept, kept_len);
}
