/* fuzz_http_request.c: requests mean the same however their bytes are cut. */
#include <stdint.h>
#include <string.h>

#include "bench/server/http_request.h"
#include "tests/fuzz/must.h"

/* The facts that were read, in a few numbers. */
struct account {
	unsigned heads, requests, refusals, end;
	uint64_t body_len, body_sum, text_sum;
};

static struct account *current;

static uint64_t sum(uint64_t so_far, const void *data, size_t len)
{
	const uint8_t *at = data;
	for (size_t i = 0; i < len; i++)
		so_far = so_far * 31 + at[i];
	return so_far;
}

static void on_body(struct http_request *r, const uint8_t *data, size_t len)
{
	(void)r;
	current->body_len += len;
	current->body_sum = sum(current->body_sum, data, len);
}

static void note_head(struct account *a, const struct http_request *r)
{
	a->heads++;
	a->refusals += r->refusal;
	/* If the request is refused, for example as too long, any part of it may be kept. */
	if (r->refusal)
		return;
	a->text_sum = sum(a->text_sum, r->path, strlen(r->path));
	a->text_sum = sum(a->text_sum, r->query, strlen(r->query));
	for (unsigned f = 0; f < HTTP_FIELD_COUNT; f++) {
		const char *value = http_request_field(r, (enum http_field)f);
		MUST(!value || strlen(value) < HTTP_FIELD_MAX);
		a->text_sum = value ? sum(a->text_sum, value, strlen(value)) : a->text_sum;
	}
}

static struct account read_in_pieces(const uint8_t *in, size_t len, size_t step)
{
	static struct http_request r;
	struct account a = { 0 };
	enum http_event event = HTTP_READ_MORE;
	current = &a;
	http_request_init(&r, on_body);
	for (size_t at = 0; event != HTTP_READ_BAD && (at < len || event == HTTP_READ_HEAD);) {
		size_t taken, piece = len - at < step ? len - at : step;
		event = http_request_read(&r, in + at, piece, &taken);
		MUST(taken <= piece);
		at += taken;
		if (event == HTTP_READ_HEAD)
			note_head(&a, &r);
		if (event != HTTP_READ_DONE)
			continue;
		a.requests++;
		http_request_next(&r);
	}
	a.end = event == HTTP_READ_BAD;
	return a;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	if (len == 0)
		return 0;
	struct account whole = read_in_pieces(in, len, len), bytes = read_in_pieces(in, len, 1),
		       threes = read_in_pieces(in, len, 3);
	MUST(memcmp(&whole, &bytes, sizeof(whole)) == 0);
	MUST(memcmp(&whole, &threes, sizeof(whole)) == 0);
	return 0;
}
