/* http_request.h: reads HTTP/1.1 requests from bytes, one after the other, and keeps of each what the backend needs, in
 * fixed memory. llhttp in strict mode does the parsing. Embedded in its connection.
 */
#pragma once

#include <llhttp.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_TARGET_MAX 1024u
#define HTTP_FIELD_MAX  256u
#define HTTP_HEAD_MAX   (32u * 1024u)

/* The fields that are kept; each may come once. X(NAME, "name in lower case") */
#define HTTP_FIELDS(X)                                                                                                 \
	X(HOST, "host")                                                                                                \
	X(EXPECT, "expect")                                                                                            \
	X(RANGE, "range")                                                                                              \
	X(IF_RANGE, "if-range")                                                                                        \
	X(IF_MATCH, "if-match")                                                                                        \
	X(IF_NONE_MATCH, "if-none-match")                                                                              \
	X(X_ID, "x-id")

enum http_field {
#define X(name, text) HTTP_FIELD_##name,
	HTTP_FIELDS(X)
#undef X
		HTTP_FIELD_COUNT
};

enum http_progress { HTTP_IDLE, HTTP_IN_HEAD, HTTP_IN_BODY, HTTP_COMPLETE };
enum http_persistence { HTTP_CLOSE, HTTP_KEEP_ALIVE };

struct http_field_value {
	uint16_t len;
	uint8_t times; /* the field was sent */
	char text[HTTP_FIELD_MAX];
};

struct http_request {
	llhttp_t parser;
	void (*on_body)(struct http_request *r, const uint8_t *data, size_t len);
	enum http_progress progress;
	enum http_persistence persistence; /* once complete */
	unsigned refusal;                  /* status that the head alone causes, or 0 */
	uint32_t head_len;
	uint16_t target_len, name_len;
	char *query; /* behind the '?', or "" */
	char *path;
	char target[HTTP_TARGET_MAX];
	char name[16];
	struct http_field_value *value; /* the field being read; NULL: not kept */
	struct http_field_value fields[HTTP_FIELD_COUNT];
};

enum http_event {
	HTTP_READ_MORE, /* all bytes were used, more are needed */
	HTTP_READ_HEAD, /* method, path, query, fields and refusal are set; a body may follow */
	HTTP_READ_DONE, /* the request is complete: call http_request_next() before reading on */
	HTTP_READ_BAD,  /* not HTTP: answer refusal and close */
};

/* @on_body is called from http_request_read() with each piece of a body. */
void http_request_init(
	struct http_request *r, void (*on_body)(struct http_request *r, const uint8_t *data, size_t len));
enum http_event http_request_read(struct http_request *r, const uint8_t *data, size_t len, size_t *taken);
void http_request_next(struct http_request *r);

static inline llhttp_method_t http_request_method(const struct http_request *r)
{
	return (llhttp_method_t)r->parser.method;
}

/* NULL when the request has no such field. */
const char *http_request_field(const struct http_request *r, enum http_field f);
