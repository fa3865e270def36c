/* resource.h: the resources of the backend, each with its path. Requests in, answers out; no sockets.
 *
 *     GET  /5 /1k /64k /20m /12345    exactly so many bytes (pattern.h), strong ETag, ranges
 *     GET  /slow?bytes=N&ms=M         the same, spread over M milliseconds; with &plain=1 without ETag and ranges
 *     GET  /hold[?ms=M]               no answer until then, or until the connection ends
 *     POST /sha256                    SHA-256 and length of the body
 *     POST /count  with X-Id: ID      counts one execution of ID
 *     GET  /count/ID  /count          how often ID was executed; the totals
 *     GET  /page                      an HTML page with 50 sub-resources that counts what was loaded
 */
#pragma once

#include "bench/server/answer.h"
#include "bench/server/http_request.h"

#define SHA256_LEN 32u

struct resources;
struct resource;

/* "5", "64k", "20m": so many bytes. 0, or CSSL_E_RANGE. */
int resource_parse_size(const char *text, uint64_t *out);

enum body_use { BODY_IGNORED, BODY_DIGESTED };

/* The received body. The digest is computed only where resource_body_use() asks for it. */
struct request_body {
	uint64_t len;
	uint8_t sha256[SHA256_LEN];
};

struct resources *resources_create(void);
void resources_destroy(struct resources *all);

/* The resource that answers this method on this path. NULL: there is none, and @refusal is the answer (404, or 405
 * with the allowed methods). */
const struct resource *resource_find(const char *path, llhttp_method_t method, struct answer *refusal);
enum body_use resource_body_use(const struct resource *r);

/* Answer a complete request to @r. Texts in @out live until the next call. */
void resource_answer(struct resources *all, const struct resource *r, const struct http_request *q,
	const struct request_body *body, struct answer *out);
