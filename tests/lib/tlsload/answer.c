/* answer.c */
#include "tests/lib/tlsload/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/server/pattern.h"

#define COMPARED_AT_ONCE 16384u

void answer_start(struct answer *a)
{
	a->progress = ANSWER_HEAD;
	a->status = 0;
	a->then = ANSWER_THEN_NEXT;
	a->length = a->got = 0;
	a->wrong = NULL;
	a->agent[0] = '\0';
	a->head_len = 0;
}

static void wrong(struct answer *a, const char *why)
{
	a->progress = ANSWER_WRONG;
	a->wrong = why;
}

/* The value of a field, or NULL. The head ends with a NUL. */
static const char *field(const struct answer *a, const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "\r\n%s: ", name);
	const char *at = strcasestr(a->head, line);
	return at ? at + strlen(line) : NULL;
}

static void take_agent(struct answer *a)
{
	const char *name = field(a, "X-CSSL-Agent");
	const size_t len = name ? strcspn(name, "\r") : 0;

	a->agent[0] = '\0';
	if (len > 0 && len < sizeof(a->agent))
		snprintf(a->agent, sizeof(a->agent), "%.*s", (int)len, name);
}

/* The fault of a whole head as a text, or NULL. */
static const char *take_head(struct answer *a, const struct expectation *expected)
{
	const char *length = field(a, "Content-Length"), *connection = field(a, "Connection");
	const uint64_t wanted = expected->body == EXPECT_TEXT ? strlen(expected->text) : expected->size;

	if (sscanf(a->head, "HTTP/1.1 %3u ", &a->status) != 1 || a->status < 100)
		return "no status line";
	if (a->status < 200) { /* an interim answer: the real one follows */
		a->status = 0;
		a->head_len = 0;
		return NULL;
	}
	if (!length || field(a, "Transfer-Encoding"))
		return "no Content-Length";
	a->length = strtoull(length, NULL, 10);
	if (connection && strncasecmp(connection, "close", 5) == 0)
		a->then = ANSWER_THEN_CLOSE;
	take_agent(a);
	if (a->status == 206)
		return "a part that nobody asked for";
	if (a->status == 200 && a->length != wanted)
		return "another Content-Length than expected";
	a->progress = a->length > 0 ? ANSWER_BODY : ANSWER_WHOLE;
	return NULL;
}

static size_t feed_head(struct answer *a, const struct expectation *expected, const uint8_t *data, size_t len)
{
	size_t taken = 0;

	while (taken < len && a->head_len < ANSWER_HEAD_MAX - 1) {
		a->head[a->head_len++] = (char)data[taken++];
		if (a->head_len < 4 || memcmp(a->head + a->head_len - 4, "\r\n\r\n", 4) != 0)
			continue;
		a->head[a->head_len] = '\0';
		const char *why = take_head(a, expected);
		if (why)
			wrong(a, why);
		return taken;
	}
	if (a->head_len == ANSWER_HEAD_MAX - 1)
		wrong(a, "a head too long");
	return taken;
}

static int is_as_expected(const struct answer *a, const struct expectation *expected, const uint8_t *data, size_t len)
{
	static uint8_t buffer[COMPARED_AT_ONCE];

	if (a->status != 200)
		return 1;
	if (expected->body == EXPECT_TEXT)
		return memcmp(expected->text + a->got, data, len) == 0;
	pattern_fill(buffer, len, expected->size, a->got);
	return memcmp(buffer, data, len) == 0;
}

static size_t feed_body(struct answer *a, const struct expectation *expected, const uint8_t *data, size_t len)
{
	const size_t most = a->length - a->got < COMPARED_AT_ONCE ? (size_t)(a->length - a->got) : COMPARED_AT_ONCE;
	const size_t n = len < most ? len : most;

	if (!is_as_expected(a, expected, data, n)) {
		wrong(a, "a wrong byte");
		return n;
	}
	a->got += n;
	if (a->got == a->length)
		a->progress = ANSWER_WHOLE;
	return n;
}

size_t answer_feed(struct answer *a, const struct expectation *expected, const uint8_t *data, size_t len)
{
	size_t taken = 0;

	while (taken < len && a->progress < ANSWER_WHOLE)
		taken += a->progress == ANSWER_HEAD ? feed_head(a, expected, data + taken, len - taken)
						    : feed_body(a, expected, data + taken, len - taken);
	return taken;
}
