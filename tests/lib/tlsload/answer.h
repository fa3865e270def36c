/* answer.h: one HTTP/1.1 answer, checked byte by byte as it comes. Every answer here has a Content-Length. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ANSWER_HEAD_MAX 2048u
#define AGENT_NAME_MAX  16u

/* The values that an answer with status 200 must have. */
struct expectation {
	enum { EXPECT_PATTERN, EXPECT_TEXT } body;
	uint64_t size;    /* EXPECT_PATTERN: bench/server/pattern.h */
	const char *text; /* EXPECT_TEXT */
};

enum answer_progress {
	ANSWER_HEAD,
	ANSWER_BODY,
	ANSWER_WHOLE,
	ANSWER_WRONG, /* not what was expected: `wrong` says why */
};

struct answer {
	enum answer_progress progress;
	unsigned status; /* 0: the head is not complete */
	enum { ANSWER_THEN_NEXT, ANSWER_THEN_CLOSE } then;
	uint64_t length, got; /* of the body */
	const char *wrong;
	char agent[AGENT_NAME_MAX]; /* X-CSSL-Agent */
	size_t head_len;
	char head[ANSWER_HEAD_MAX];
};

void answer_start(struct answer *a);
/* Takes up to the end of the answer; returns how much. */
size_t answer_feed(struct answer *a, const struct expectation *expected, const uint8_t *data, size_t len);
