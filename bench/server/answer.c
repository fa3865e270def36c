/* answer.c: heads are written without printf, because a benchmark needs one for every request. */
#include "bench/server/answer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct status_row {
	unsigned status;
	const char *line;
} statuses[] = {
	{ 200, "HTTP/1.1 200 OK\r\n" },
	{ 206, "HTTP/1.1 206 Partial Content\r\n" },
	{ 304, "HTTP/1.1 304 Not Modified\r\n" },
	{ 400, "HTTP/1.1 400 Bad Request\r\n" },
	{ 404, "HTTP/1.1 404 Not Found\r\n" },
	{ 405, "HTTP/1.1 405 Method Not Allowed\r\n" },
	{ 412, "HTTP/1.1 412 Precondition Failed\r\n" },
	{ 414, "HTTP/1.1 414 URI Too Long\r\n" },
	{ 416, "HTTP/1.1 416 Range Not Satisfiable\r\n" },
	{ 417, "HTTP/1.1 417 Expectation Failed\r\n" },
	{ 431, "HTTP/1.1 431 Request Header Fields Too Large\r\n" },
	{ 500, "HTTP/1.1 500 Internal Server Error\r\n" },
	{ 505, "HTTP/1.1 505 HTTP Version Not Supported\r\n" },
	{ 507, "HTTP/1.1 507 Insufficient Storage\r\n" },
};

#define STATUS_TEXT_AT strlen("HTTP/1.1 ")

static const char *status_line(unsigned status)
{
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
		if (statuses[i].status == status)
			return statuses[i].line;
	}
	assert(!"a status without a row");
	return NULL;
}

void answer_text(struct answer *a, unsigned status, const char *content_type, const char *text, size_t len)
{
	a->status = status;
	a->content_type = content_type;
	a->fields_len = 0;
	a->body = ANSWER_TEXT;
	a->text = text;
	a->length = len;
	a->delay_ms = 0;
	a->bytes_per_s = 0;
}

void answer_status(struct answer *a, unsigned status)
{
	/* the part of the status line like "404 Not Found\n" */
	const char *text = status_line(status) + STATUS_TEXT_AT;
	answer_text(a, status, "text/plain", text, strlen(text));
}

void answer_add_field(struct answer *a, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int len = vsnprintf(a->fields + a->fields_len, sizeof a->fields - a->fields_len, format, arguments);
	va_end(arguments);
	assert(len >= 0 && (size_t)len < sizeof a->fields - a->fields_len);
	a->fields_len += (size_t)len;
}

static char *answer_put(char *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}

static char *answer_put_text(char *at, const char *text)
{
	return answer_put(at, text, strlen(text));
}

static char *put_number(char *at, uint64_t n)
{
	char digits[20];
	size_t used = 0;
	do {
		digits[sizeof digits - ++used] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return answer_put(at, digits + sizeof digits - used, used);
}

size_t answer_write_head(const struct answer *a, const struct http_request *to, enum http_persistence persistence,
	const char *date, const struct agent_identity *id, char out[static ANSWER_HEAD_MAX])
{
	char *at = answer_put_text(out, status_line(a->status));
	at = answer_put_text(at, "Date: ");
	at = answer_put_text(at, date);
	if (a->status != 304) {
		at = answer_put_text(at, "\r\nContent-Type: ");
		at = answer_put_text(at, a->content_type);
		at = answer_put_text(at, "\r\nContent-Length: ");
		at = put_number(at, a->length);
	}
	at = answer_put_text(at, "\r\n");
	at = answer_put(at, a->fields, a->fields_len);
	at = answer_put(at, id->lines, id->len);
	if (persistence == HTTP_CLOSE)
		at = answer_put_text(at, "Connection: close\r\n");
	else if (to->parser.http_minor == 0) /* RFC 9112 9.3: a client of HTTP/1.0 has to be told */
		at = answer_put_text(at, "Connection: keep-alive\r\n");
	at = answer_put_text(at, "\r\n");
	return (size_t)(at - out);
}
