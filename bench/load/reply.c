/* reply.c: llhttp finds the parts. It pauses at the end of an answer, so that the bytes after it are noticed.
 * Interim answers (RFC 9110 15.2) are skipped.
 */
#include "bench/load/reply.h"

#include <string.h>
#include <strings.h>

#include "bench/server/pattern.h"

static const char agent_field[] = "X-CSSL-Agent";

static struct reply *parser_reply(llhttp_t *parser)
{
	return parser->data;
}

static int on_field(llhttp_t *parser, const char *at, size_t len)
{
	struct reply *r = parser_reply(parser);
	size_t room = sizeof r->name - r->name_len;

	r->field = REPLY_FIELD_OTHER;
	if (len > room) /* longer than any name that matters */
		len = room;
	memcpy(r->name + r->name_len, at, len);
	r->name_len = (uint8_t)(r->name_len + len);
	return HPE_OK;
}

static int on_field_complete(llhttp_t *parser)
{
	struct reply *r = parser_reply(parser);

	if (r->name_len == sizeof agent_field - 1 && strncasecmp(r->name, agent_field, r->name_len) == 0) {
		r->field = REPLY_FIELD_AGENT;
		r->agent_len = 0;
	}
	r->name_len = 0;
	return HPE_OK;
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
	struct reply *r = parser_reply(parser);

	if (r->field != REPLY_FIELD_AGENT || len > sizeof r->agent - r->agent_len)
		return HPE_OK;
	memcpy(r->agent + r->agent_len, at, len);
	r->agent_len = (uint8_t)(r->agent_len + len);
	return HPE_OK;
}

static int on_reply_body(llhttp_t *parser, const char *at, size_t len)
{
	struct reply *r = parser_reply(parser);

	if (r->expected.kind == REPLY_PATTERN && r->bytes == REPLY_BYTES_RIGHT &&
		!pattern_is((const uint8_t *)at, len, r->expected.length, r->body_len))
		r->bytes = REPLY_BYTES_WRONG;
	r->body_len += len;
	return HPE_OK;
}

static int on_complete(llhttp_t *parser)
{
	struct reply *r = parser_reply(parser);

	if (llhttp_get_status_code(parser) / 100 == 1)
		return HPE_OK;
	r->status = (unsigned)llhttp_get_status_code(parser);
	r->progress = REPLY_WHOLE;
	r->persistence = llhttp_should_keep_alive(parser) ? REPLY_MORE_MAY_FOLLOW : REPLY_LAST;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_header_field = on_field,
	.on_header_field_complete = on_field_complete,
	.on_header_value = on_value,
	.on_body = on_reply_body,
	.on_message_complete = on_complete,
};

void reply_open(struct reply *r)
{
	memset(r, 0, sizeof *r);
	llhttp_init(&r->parser, HTTP_RESPONSE, &settings);
	r->parser.data = r;
}

void reply_begin(struct reply *r, const struct reply_expectation *expected)
{
	llhttp_reset(&r->parser);
	r->expected = *expected;
	r->progress = REPLY_NOTHING;
	r->bytes = REPLY_BYTES_RIGHT;
	r->body_len = 0;
	r->name_len = 0;
}

enum reply_progress reply_feed(struct reply *r, const void *data, size_t len)
{
	const char *end = (const char *)data + len;

	if (r->progress == REPLY_WHOLE) {
		r->progress = REPLY_MALFORMED;
		return r->progress;
	}
	r->progress = REPLY_BEGUN;
	llhttp_errno_t error = llhttp_execute(&r->parser, data, len);
	if (error == HPE_PAUSED && llhttp_get_error_pos(&r->parser) == end)
		return r->progress;
	if (error != HPE_OK)
		r->progress = REPLY_MALFORMED;
	return r->progress;
}

enum reply_progress reply_end(struct reply *r)
{
	if (r->progress == REPLY_BEGUN)
		llhttp_finish(&r->parser);
	return r->progress;
}

bool reply_length_is_wrong(const struct reply *r)
{
	return r->expected.kind != REPLY_ANY_LENGTH && r->body_len != r->expected.length;
}
