/* fuzz_download.c: heads of answers and requests. If an answer counts as a download, its values make sense, the rest
 * of it can be asked for, and the answer of a correct backend to that is accepted as the rest.
 */
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/service/http/download.h"
#include "tests/fuzz/must.h"

static void answer_faithfully(const struct download *d, uint64_t done)
{
	struct download again = *d;
	char text[512];
	size_t head_len = 0;
	int len = snprintf(text, sizeof text,
		"HTTP/1.1 206 Partial Content\r\nContent-Length: %llu\r\nContent-Range: bytes %llu-%llu/%llu\r\nETag: "
		"%.*s\r\n"
		"\r\n",
		(unsigned long long)(d->len - done), (unsigned long long)(d->first + done),
		(unsigned long long)(d->first + d->len - 1), (unsigned long long)d->total, (int)d->etag_len, d->etag);

	MUST(len > 0 && (size_t)len < sizeof text);
	MUST(download_resumes(&again, done, (const uint8_t *)text, (size_t)len, &head_len) == 0);
	MUST(head_len == (size_t)len);
}

static void ask(const struct download *d, const uint8_t *in, size_t len)
{
	static uint8_t out[(1u << 16) + DOWNLOAD_ASK_MORE];
	static const char last[] = "\r\n\r\n";

	if (len > 1u << 16)
		return;
	ptrdiff_t n = download_ask(d, d->len - 1, in, len, out, len + DOWNLOAD_ASK_MORE);
	MUST(n == CSSL_E_RANGE || n > 4);
	if (n <= 0)
		return;
	const uint8_t *line_end = memchr(in, '\n', len);
	MUST(line_end && memcmp(out, in, (size_t)(line_end + 1 - in)) == 0);
	MUST(memcmp(out + n - 4, last, 4) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct download d = { .len = 1, .total = 1, .etag_len = 2, .etag = "\"\"" };
	size_t head_len = 0;

	if (download_begins(in, len, &d) == 0) {
		MUST(d.len > 0 && d.len <= d.total && d.first <= d.total - d.len);
		MUST(d.head_len > 0 && d.head_len <= len && d.etag_len >= 2 && d.etag_len <= HEAD_ETAG_MAX);
		answer_faithfully(&d, 0);
		answer_faithfully(&d, d.len - 1);
	}
	if (download_resumes(&d, 0, in, len, &head_len) == 0)
		MUST(head_len > 0 && head_len <= len);
	ask(&d, in, len);
	return 0;
}
