/* answer.h: the answer to a request, and its head as bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bench/server/agent_identity.h"
#include "bench/server/http_request.h"

#define ANSWER_FIELDS_MAX 256u
#define ANSWER_HEAD_MAX   (512u + ANSWER_FIELDS_MAX + sizeof(struct agent_identity))
#define ANSWER_NEVER      UINT32_MAX

enum answer_body { ANSWER_TEXT, ANSWER_PATTERN };

struct answer {
	unsigned status;
	const char *content_type;
	char fields[ANSWER_FIELDS_MAX]; /* further header lines, each with its CRLF */
	size_t fields_len;
	enum answer_body body;
	uint64_t length;       /* of the body */
	const char *text;      /* ANSWER_TEXT */
	uint64_t size, offset; /* ANSWER_PATTERN: see pattern.h */
	uint32_t delay_ms;     /* before the head */
	uint64_t bytes_per_s;  /* 0: as fast as it goes */
};

/* A short text, which must outlive the answer. */
void answer_text(struct answer *a, unsigned status, const char *content_type, const char *text, size_t len);
/* An answer whose body is only its status as text. */
void answer_status(struct answer *a, unsigned status);
void answer_add_field(struct answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The head in @out; its length. @date: the value of the Date field. */
size_t answer_write_head(const struct answer *a, const struct http_request *to, enum http_persistence persistence,
	const char *date, const struct agent_identity *id, char out[static ANSWER_HEAD_MAX]);
