/* resource.c: a table of paths, and one small function for each. */
#include "bench/server/resource.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure/count_table.h"
#include "bench/server/http_select.h"
#include "bench/server/page.h"
#include "proto/error.h"

#define SIZE_MAX_ANSWER (UINT64_C(1) << 34)
#define SLOW_BYTES_MAX  (UINT64_C(128) << 20)
#define WAIT_MAX_MS     600000u
#define SCRATCH_LEN     512u

struct resources {
	struct count_table *counts;
	size_t page_len;
	char page[PAGE_MAX];
	char scratch[SCRATCH_LEN];
};

struct resource {
	const char *path;
	enum { PATH_EXACT, PATH_PREFIX } match;
	enum { METHODS_READ, METHODS_WRITE } methods;
	enum body_use body;
	void (*answer)(struct resources *all, const struct http_request *q, const struct request_body *body,
		struct answer *out);
};

struct resources *resources_create(void)
{
	struct resources *all = calloc(1, sizeof *all);
	if (!all)
		return NULL;
	all->counts = count_table_create();
	if (!all->counts) {
		free(all);
		return NULL;
	}
	all->page_len = page_write(all->page);
	return all;
}

void resources_destroy(struct resources *all)
{
	if (!all)
		return;
	count_table_destroy(all->counts);
	free(all);
}

static uint64_t resource_number(const char *text, const char **end)
{
	uint64_t n = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		n = n > SIZE_MAX_ANSWER ? n : n * 10 + (uint64_t)(*text - '0');
	*end = text;
	return n;
}

int resource_parse_size(const char *text, uint64_t *out)
{
	const char *end;
	uint64_t n = resource_number(text, &end);
	if (end == text)
		return CSSL_E_RANGE;
	unsigned shift = *end == 'k' ? 10 : *end == 'm' ? 20 : 0;
	if (end[shift ? 1 : 0] != 0 || n > SIZE_MAX_ANSWER >> shift)
		return CSSL_E_RANGE;
	*out = n << shift;
	return 0;
}

/* "name=123" of a query. 0, or CSSL_E_NOT_FOUND, CSSL_E_RANGE. */
static int query_number(const char *query, const char *name, uint64_t *out)
{
	size_t name_len = strlen(name);
	for (const char *at = query; *at; at += strcspn(at, "&"), at += *at == '&') {
		const char *end;
		if (strncmp(at, name, name_len) != 0 || at[name_len] != '=')
			continue;
		*out = resource_number(at + name_len + 1, &end);
		return end == at + name_len + 1 || (*end && *end != '&') ? CSSL_E_RANGE : 0;
	}
	return CSSL_E_NOT_FOUND;
}

static void give_pattern(struct answer *out, uint64_t size, uint64_t first, uint64_t len)
{
	out->content_type = "application/octet-stream";
	out->body = ANSWER_PATTERN;
	out->length = len;
	out->size = size;
	out->offset = first;
}

static void answer_pattern(const struct http_request *q, uint64_t size, struct answer *out)
{
	char etag[32];
	uint64_t first, len;
	bool get = http_request_method(q) == HTTP_GET;
	struct http_conditions conditions = {
		.if_match = http_request_field(q, HTTP_FIELD_IF_MATCH),
		.if_none_match = http_request_field(q, HTTP_FIELD_IF_NONE_MATCH),
		.if_range = http_request_field(q, HTTP_FIELD_IF_RANGE),
		/* RFC 9110 14.2: Range is defined for GET only. */
		.range = get ? http_request_field(q, HTTP_FIELD_RANGE) : NULL,
	};
	snprintf(etag, sizeof etag, "\"%" PRIu64 "-1\"", size);
	enum http_selection selection = http_select(&conditions, etag, size, &first, &len);
	static const unsigned status[] = {
		[HTTP_WHOLE] = 200,
		[HTTP_PART] = 206,
		[HTTP_NOT_MODIFIED] = 304,
		[HTTP_PRECONDITION_FAILED] = 412,
		[HTTP_UNSATISFIABLE] = 416,
	};
	answer_status(out, selection == HTTP_WHOLE || selection == HTTP_PART ? 200 : status[selection]);
	answer_add_field(out, "ETag: %s\r\nAccept-Ranges: bytes\r\n", etag);
	if (selection == HTTP_UNSATISFIABLE)
		answer_add_field(out, "Content-Range: bytes */%" PRIu64 "\r\n", size);
	if (selection == HTTP_PART)
		answer_add_field(out, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", first,
			first + len - 1, size);
	if (selection != HTTP_WHOLE && selection != HTTP_PART)
		return;
	out->status = status[selection];
	give_pattern(out, size, first, len);
}

static void answer_size(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	uint64_t size;
	if (resource_parse_size(q->path + 1, &size))
		answer_status(out, 404);
	else
		answer_pattern(q, size, out);
}

static void answer_slow(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	uint64_t bytes, ms, plain = 0;
	if (query_number(q->query, "bytes", &bytes) || query_number(q->query, "ms", &ms) || bytes > SLOW_BYTES_MAX ||
		ms > WAIT_MAX_MS || query_number(q->query, "plain", &plain) == CSSL_E_RANGE) {
		answer_status(out, 400);
		return;
	}
	if (plain) {
		answer_status(out, 200);
		give_pattern(out, bytes, 0, bytes);
	} else {
		answer_pattern(q, bytes, out);
	}
	if (ms > 0 && out->body == ANSWER_PATTERN)
		out->bytes_per_s = bytes * 1000 / ms + 1;
}

static void answer_hold(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	static const char text[] = "held\n";
	uint64_t ms = ANSWER_NEVER;
	int r = query_number(q->query, "ms", &ms);
	if (r == CSSL_E_RANGE || (r == 0 && ms > WAIT_MAX_MS)) {
		answer_status(out, 400);
		return;
	}
	answer_text(out, 200, "text/plain", text, sizeof text - 1);
	out->delay_ms = (uint32_t)ms;
}

static void answer_json(struct resources *all, struct answer *out, int len)
{
	answer_text(out, 200, "application/json", all->scratch, (size_t)len);
	answer_add_field(out, "Cache-Control: no-store\r\n");
}

/* With an id, the request also counts as an execution, as by /count. */
static void answer_sha256(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	char hex[2 * SHA256_LEN + 1];
	const char *id = http_request_field(q, HTTP_FIELD_X_ID);
	int64_t count = id ? count_table_add(all->counts, id) : 0;
	if (count < 0) {
		answer_status(out, count == CSSL_E_RANGE ? 400 : 507);
		return;
	}
	for (size_t i = 0; i < SHA256_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", body->sha256[i]);
	answer_json(all, out,
		snprintf(all->scratch, SCRATCH_LEN, "{\"sha256\":\"%s\",\"length\":%" PRIu64 "}\n", hex, body->len));
}

static void answer_execution(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	const char *id = http_request_field(q, HTTP_FIELD_X_ID);
	int64_t count = id ? count_table_add(all->counts, id) : CSSL_E_RANGE;
	if (count < 0) {
		answer_status(out, count == CSSL_E_RANGE ? 400 : 507);
		return;
	}
	answer_json(all, out,
		snprintf(all->scratch, SCRATCH_LEN,
			"{\"id\":\"%s\",\"executions\":%" PRId64 ",\"length\":%" PRIu64 "}\n", id, count, body->len));
}

static void answer_count(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	uint64_t count = count_table_get(all->counts, q->path + strlen("/count/"));
	answer_json(all, out, snprintf(all->scratch, SCRATCH_LEN, "{\"executions\":%" PRIu64 "}\n", count));
}

static void answer_totals(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	struct count_totals t = count_table_totals(all->counts);
	answer_json(all, out,
		snprintf(all->scratch, SCRATCH_LEN,
			"{\"ids\":%" PRIu64 ",\"executions\":%" PRIu64 ",\"most\":%" PRIu64 "}\n", t.ids, t.executions,
			t.most));
}

static void resource_answer_page(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	answer_text(out, 200, "text/html; charset=utf-8", all->page, all->page_len);
}

static void answer_page_part(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	size_t len;
	const char *type = page_part(q->path + strlen("/page/"), all->scratch, &len);
	if (type)
		answer_text(out, 200, type, all->scratch, len);
	else
		answer_status(out, 404);
}

static void answer_index(
	struct resources *all, const struct http_request *q, const struct request_body *body, struct answer *out)
{
	static const char text[] = "cssl-bench serve\n\n"
				   "/5 /1k /64k /20m /N         so many bytes, with ranges\n"
				   "/slow?bytes=N&ms=M          the same, slowly; &plain=1: no ETag, no ranges\n"
				   "/hold?ms=M                  answered late\n"
				   "/page                       50 sub-resources\n"
				   "POST /sha256                digest of the body; with X-Id: ID also counts\n"
				   "POST /count with X-Id: ID   counts; GET /count/ID, GET /count\n";
	answer_text(out, 200, "text/plain", text, sizeof text - 1);
}

/* The order matters: the last row matches every path. */
static const struct resource table[] = {
	{ "/", PATH_EXACT, METHODS_READ, BODY_IGNORED, answer_index },
	{ "/count", PATH_EXACT, METHODS_WRITE, BODY_IGNORED, answer_execution },
	{ "/count", PATH_EXACT, METHODS_READ, BODY_IGNORED, answer_totals },
	{ "/count/", PATH_PREFIX, METHODS_READ, BODY_IGNORED, answer_count },
	{ "/sha256", PATH_EXACT, METHODS_WRITE, BODY_DIGESTED, answer_sha256 },
	{ "/page", PATH_EXACT, METHODS_READ, BODY_IGNORED, resource_answer_page },
	{ "/page/", PATH_PREFIX, METHODS_READ, BODY_IGNORED, answer_page_part },
	{ "/slow", PATH_EXACT, METHODS_READ, BODY_IGNORED, answer_slow },
	{ "/hold", PATH_EXACT, METHODS_READ, BODY_IGNORED, answer_hold },
	{ "/", PATH_PREFIX, METHODS_READ, BODY_IGNORED, answer_size },
};

static const struct {
	unsigned methods; /* bits by llhttp's numbers */
	const char *names;
} method_sets[] = {
	[METHODS_READ] = { 1u << HTTP_GET | 1u << HTTP_HEAD, "GET, HEAD" },
	[METHODS_WRITE] = { 1u << HTTP_POST | 1u << HTTP_PUT, "POST, PUT" },
};

static bool path_fits(const struct resource *r, const char *path)
{
	return strncmp(path, r->path, strlen(r->path)) == 0 && (r->match == PATH_PREFIX || strcmp(path, r->path) == 0);
}

const struct resource *resource_find(const char *path, llhttp_method_t method, struct answer *refusal)
{
	const char *allowed[2] = { NULL, NULL };
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		const struct resource *r = &table[i];
		/* A prefix counts only where no exact path fits: the methods of one are not those of the other. */
		if (!path_fits(r, path) || (r->match == PATH_PREFIX && allowed[0]))
			continue;
		if (method < 32 && method_sets[r->methods].methods & 1u << method)
			return r;
		allowed[allowed[0] ? 1 : 0] = method_sets[r->methods].names;
	}
	answer_status(refusal, allowed[0] ? 405 : 404);
	if (allowed[0])
		answer_add_field(
			refusal, "Allow: %s%s%s\r\n", allowed[0], allowed[1] ? ", " : "", allowed[1] ? allowed[1] : "");
	return NULL;
}

enum body_use resource_body_use(const struct resource *r)
{
	return r->body;
}

void resource_answer(struct resources *all, const struct resource *r, const struct http_request *q,
	const struct request_body *body, struct answer *out)
{
	r->answer(all, q, body, out);
}
