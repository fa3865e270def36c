/* reply.h: reads an answer: parses its head, counts and compares its body, and keeps no byte. No sockets. */
#pragma once

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLY_AGENT_MAX 32u

/* The expected answer. */
struct reply_expectation {
	enum { REPLY_ANY_LENGTH, REPLY_THIS_LENGTH, REPLY_PATTERN } kind; /* of a pattern (pattern.h) the length too */
	uint64_t length;
};

enum reply_progress { REPLY_NOTHING, REPLY_BEGUN, REPLY_WHOLE, REPLY_MALFORMED };

struct reply {
	llhttp_t parser;
	struct reply_expectation expected;
	enum reply_progress progress;
	enum { REPLY_BYTES_RIGHT, REPLY_BYTES_WRONG } bytes;
	enum { REPLY_LAST, REPLY_MORE_MAY_FOLLOW } persistence; /* of the connection, after a complete answer */
	enum { REPLY_FIELD_OTHER, REPLY_FIELD_AGENT } field;
	unsigned status;
	uint64_t body_len;
	uint8_t name_len;
	uint8_t agent_len;
	char name[16];               /* of the header field under way */
	char agent[REPLY_AGENT_MAX]; /* X-CSSL-Agent, of the last answer that had one; not terminated */
};

/* Before the first answer of a connection. */
void reply_open(struct reply *r);
/* Before each answer. */
void reply_begin(struct reply *r, const struct reply_expectation *expected);

/* Take received bytes. A byte after the end of the answer makes it malformed. */
enum reply_progress reply_feed(struct reply *r, const void *data, size_t len);
/* The connection ended: the answer is whole if the end of the connection ends it. */
enum reply_progress reply_end(struct reply *r);

bool reply_length_is_wrong(const struct reply *r);
