/* http_parser.h: the llhttp parser of one direction, and the point it has reached in a message, so that a parser in
 * another process can continue. The written state is the length of the rest of a body, or the bytes of an incomplete
 * head or chunk line. A new parser reads a made-up head, or these bytes, without calling any callback.
 *
 * The bytes of an incomplete head are kept, at most HTTP_KEPT_MAX. A longer one cannot be written down.
 */
#pragma once

#include <llhttp.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"
#include "sslagent/service/service.h"

#define HTTP_KEPT_MAX 4096u /* bytes */

enum http_standing {
	HTTP_AT_START,  /* of a message: no byte of it has come */
	HTTP_AMID_HEAD, /* or after the head of a chunked body, before its first byte */
	HTTP_AMID_BODY, /* of a known length */
	HTTP_AMID_CHUNK,
	HTTP_BEHIND_CHUNK, /* until the first byte of the next chunk, or the end of the message */
	HTTP_UNTIL_END,    /* of the connection */
	HTTP_CLOSED,       /* the last message was the last one */
	HTTP_UPGRADES,     /* CONNECT or Upgrade: the rest is not HTTP */
	HTTP_BROKEN,
	HTTP_STANDING_COUNT
};

struct http_parser {
	llhttp_t llhttp;
	uint64_t left; /* AMID_BODY, AMID_CHUNK: bytes */
	uint8_t *kept; /* AMID_HEAD, BEHIND_CHUNK: the bytes since; NULL: none, or too many */
	uint32_t kept_len, kept_cap;
	uint8_t standing;        /* enum http_standing */
	uint8_t major, minor;    /* version of the message */
	uint8_t is_last;         /* flags of its Connection field: F_CONNECTION_CLOSE, F_CONNECTION_KEEP_ALIVE */
	const uint8_t *since;    /* during a call: the first byte that may have to be kept */
	struct loose_end *loose; /* BROKEN in the head of a response, which is known from its first byte on; or NULL */
};

void http_parser_init(struct http_parser *p, llhttp_type_t type, const llhttp_settings_t *settings, void *data);
void http_parser_clear(struct http_parser *p);

/* *used: how many bytes of [data, data + len) were parsed. HPE_OK, HPE_PAUSED (stopped), or the reason why parsing
 * ended. */
llhttp_errno_t http_parser_feed(
	struct http_parser *p, const uint8_t *data, size_t len, enum service_until until, size_t *used);

/* The connection ended. HPE_OK if a message may end so. */
llhttp_errno_t http_parser_end(struct http_parser *p);

/* Every settings table has these. */
int http_parser_on_body(llhttp_t *p, const char *at, size_t len);
int http_parser_on_chunk(llhttp_t *p);
/* For the callbacks of these moments. */
void http_parser_begins(llhttp_t *p);
void http_parser_headed(llhttp_t *p);
int http_parser_completed(llhttp_t *p); /* the callback returns this value */

/* CSSL_E_TOO_LONG: not all bytes were kept, or a loose end is followed. */
int http_parser_put(const struct http_parser *p, struct wire_writer *w);
#define HTTP_PARSER_STATE_MAX (32u + HTTP_KEPT_MAX) /* bytes */
/* Brings an initialised parser to that point. 0 or CSSL_E_RANGE: malformed. */
int http_parser_get(struct http_parser *p, struct wire_reader *r);
