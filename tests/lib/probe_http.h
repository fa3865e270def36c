/* probe_http.h: HTTP/1.1 for tlsprobe, only as much as tests need to see every byte: one request at a time,
 * Content-Length or until the end. */
#pragma once

#include <openssl/evp.h>

#include "tests/lib/probe.h"

struct http_request {
	const char *method, *path, *host, *headers; /* headers: further lines, each with its \r\n, or empty */
	uint64_t body;             /* bytes of pattern (bench/server/pattern.h, of an answer of that size) */
	uint64_t rate;             /* bytes of body per second; 0: as fast as it goes */
	uint64_t key_update_every; /* bytes, of body either way; 0: never */
};

#define HTTP_HEAD_MAX 16384u

struct http_response {
	int status; /* 0: none came */
	char head[HTTP_HEAD_MAX];
	uint64_t expected; /* Content-Length; UINT64_MAX without */
	uint64_t length;   /* of the body that came */
	char sha256[65];
	uint64_t wrong_at; /* first byte that is not the pattern's of that size; UINT64_MAX: none */
	uint64_t key_updates;
	uint64_t sent;       /* of the request's body */
	const char *outcome; /* "complete", "cut", "timeout" */
};

void http_exchange(
	struct probe *p, const struct http_request *request, uint64_t deadline_ms, struct http_response *out);

/* Say @bytes of pattern and read them back, both ways at once. Fills length, sha256, wrong_at, key_updates, sent,
 * outcome. */
void echo_exchange(struct probe *p, const struct http_request *how, uint64_t deadline_ms, struct http_response *out);
