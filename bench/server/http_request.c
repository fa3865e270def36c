/* http_request.c: llhttp's callbacks collect into fixed buffers and pause the parser at the end of the head and of the
 * message, so that the connection decides between calls and never inside a callback.
 *
 * The server refuses a target that is too long with 414, and fields that are too long with 431. A field that is kept
 * must not come twice, as the two ends would then have to agree on which counts.
 */
#include "bench/server/http_request.h"

#include <string.h>
#include <strings.h>

static const char *const field_names[HTTP_FIELD_COUNT] = {
#define X(name, text) [HTTP_FIELD_##name] = text,
	HTTP_FIELDS(X)
#undef X
};

static struct http_request *parser_request(llhttp_t *parser)
{
	return parser->data;
}

static void http_request_refuse(struct http_request *r, unsigned status)
{
	if (!r->refusal)
		r->refusal = status;
}

static int charge_head(struct http_request *r, size_t len)
{
	r->head_len += (uint32_t)len;
	if (r->head_len <= HTTP_HEAD_MAX)
		return HPE_OK;
	http_request_refuse(r, 431);
	return -1;
}

static int on_message_begin(llhttp_t *parser)
{
	parser_request(parser)->progress = HTTP_IN_HEAD;
	return HPE_OK;
}

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
	struct http_request *r = parser_request(parser);
	if (r->target_len + len >= sizeof r->target) {
		http_request_refuse(r, 414);
		return charge_head(r, len);
	}
	memcpy(r->target + r->target_len, at, len);
	r->target_len += (uint16_t)len;
	return charge_head(r, len);
}

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
	struct http_request *r = parser_request(parser);
	if (r->progress != HTTP_IN_HEAD) /* a trailer */
		return HPE_OK;
	size_t room = sizeof r->name - 1 - r->name_len;
	size_t copied = len < room ? len : room;
	memcpy(r->name + r->name_len, at, copied);
	/* A name longer than all that matter: it matches none. */
	r->name_len = (uint16_t)(r->name_len + copied);
	if (copied < len)
		r->name[0] = 0;
	return charge_head(r, len);
}

static int on_header_field_complete(llhttp_t *parser)
{
	struct http_request *r = parser_request(parser);
	r->name[r->name_len] = 0;
	r->name_len = 0;
	r->value = NULL;
	if (r->progress != HTTP_IN_HEAD)
		return HPE_OK;
	for (unsigned f = 0; f < HTTP_FIELD_COUNT; f++) {
		if (strcasecmp(r->name, field_names[f]) == 0)
			r->value = &r->fields[f];
	}
	if (r->value && r->value->times++ > 0)
		http_request_refuse(r, 400);
	return HPE_OK;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t len)
{
	struct http_request *r = parser_request(parser);
	if (r->progress != HTTP_IN_HEAD)
		return HPE_OK;
	if (r->value && r->value->len + len >= HTTP_FIELD_MAX) {
		http_request_refuse(r, 431);
	} else if (r->value) {
		memcpy(r->value->text + r->value->len, at, len);
		r->value->len += (uint16_t)len;
	}
	return charge_head(r, len);
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct http_field_value *v = parser_request(parser)->value;
	if (!v)
		return HPE_OK;
	while (v->len > 0 && (v->text[v->len - 1] == ' ' || v->text[v->len - 1] == '\t'))
		v->len--;
	v->text[v->len] = 0;
	return HPE_OK;
}

/* Origin form, or absolute form, whose authority does not matter here (RFC 9112 3.2). */
static void split_target(struct http_request *r)
{
	r->target[r->target_len] = 0;
	r->path = r->target;
	if (strncasecmp(r->path, "http://", 7) == 0) {
		char *slash = strchr(r->path + 7, '/');
		r->path = slash ? slash : strcpy(r->target, "/");
	}
	char *mark = strchr(r->path, '?');
	r->query = mark ? mark + 1 : strchr(r->path, 0);
	if (mark)
		*mark = 0;
}

static int on_headers_complete(llhttp_t *parser)
{
	struct http_request *r = parser_request(parser);
	r->progress = HTTP_IN_BODY;
	split_target(r);
	/* RFC 9112 3.2: exactly one Host in HTTP/1.1. */
	if (parser->http_major != 1 || (parser->http_minor > 0 && r->fields[HTTP_FIELD_HOST].times != 1))
		http_request_refuse(r, 400);
	/* An offer to upgrade is ignored (RFC 9110 7.8); CONNECT finds no resource. */
	parser->upgrade = 0;
	return HPE_PAUSED;
}

static int on_http_request_body(llhttp_t *parser, const char *at, size_t len)
{
	struct http_request *r = parser_request(parser);
	r->on_body(r, (const uint8_t *)at, len);
	return HPE_OK;
}

static int on_message_complete(llhttp_t *parser)
{
	struct http_request *r = parser_request(parser);
	r->progress = HTTP_COMPLETE;
	r->persistence = llhttp_should_keep_alive(parser) ? HTTP_KEEP_ALIVE : HTTP_CLOSE;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_message_begin = on_message_begin,
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_http_request_body,
	.on_message_complete = on_message_complete,
};

void http_request_init(struct http_request *r, void (*body)(struct http_request *r, const uint8_t *data, size_t len))
{
	llhttp_init(&r->parser, HTTP_REQUEST, &settings);
	r->parser.data = r;
	r->on_body = body;
	http_request_next(r);
}

void http_request_next(struct http_request *r)
{
	r->progress = HTTP_IDLE;
	r->persistence = HTTP_CLOSE;
	r->refusal = 0;
	r->head_len = 0;
	r->target_len = r->name_len = 0;
	r->path = r->query = r->target;
	r->value = NULL;
	for (unsigned f = 0; f < HTTP_FIELD_COUNT; f++)
		r->fields[f].len = r->fields[f].times = 0;
}

enum http_event http_request_read(struct http_request *r, const uint8_t *data, size_t len, size_t *taken)
{
	if (llhttp_get_errno(&r->parser) == HPE_PAUSED)
		llhttp_resume(&r->parser);
	llhttp_errno_t e = llhttp_execute(&r->parser, (const char *)data, len);
	if (e == HPE_OK) {
		*taken = len;
		return HTTP_READ_MORE;
	}
	if (e != HPE_PAUSED) {
		*taken = len;
		http_request_refuse(r, e == HPE_INVALID_VERSION ? 505 : 400);
		return HTTP_READ_BAD;
	}
	*taken = (size_t)(llhttp_get_error_pos(&r->parser) - (const char *)data);
	return r->progress == HTTP_COMPLETE ? HTTP_READ_DONE : HTTP_READ_HEAD;
}

const char *http_request_field(const struct http_request *r, enum http_field f)
{
	return r->fields[f].times ? r->fields[f].text : NULL;
}
