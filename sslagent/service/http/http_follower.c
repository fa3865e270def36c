/* http_follower.c: two strict llhttp parsers, one for each direction. The response parser has to know which request
 * a response answers (a response to HEAD has no body). So requests are numbered, and one bit for each remembers
 * whether it was HEAD. */
#include <string.h>
#include <strings.h>

#include "proto/error.h"
#include "sslagent/service/http/http_follower.h"
#include "sslagent/service/http/loose_end.h"
#include "sslagent/service/http/message_head.h"

static bool is_one_of(const char *text, size_t len, const char *const *words)
{
	for (; *words; words++) {
		if (strlen(*words) == len && strncasecmp(text, *words, len) == 0)
			return true;
	}
	return false;
}

/* Authentication that is bound to the connection: the connection must not be shared or split. */
static bool binds_connection(const struct http_seen *s)
{
	static const char *const names[] = { "authorization", "proxy-authorization", "www-authenticate",
		"proxy-authenticate", NULL };

	if (s->value_len < 4 || (s->value[0] | 0x20) != 'n')
		return false; /* nearly all fields */
	return is_one_of(s->name, s->name_len, names) &&
	       (strncasecmp(s->value, "NTLM", 4) == 0 ||
		       (s->value_len >= 9 && strncasecmp(s->value, "Negotiate", 9) == 0));
}

static void judge_head(struct http_follower *h, const llhttp_t *p)
{
	if (p->http_major != 1 || p->http_minor != 1 || !head_is_plain(h->head, h->input_end))
		h->framing = HTTP_FRAMING_DOUBTED;
	h->head = NULL;
}

static int note_head(struct http_follower *h, const char *at)
{
	if (!h->head)
		h->head = (const uint8_t *)at;
	return 0;
}

static int http_take_name(struct http_seen *s, const char *at, size_t len)
{
	if (s->value_len) {
		s->name_len = 0;
		s->value_len = 0;
	}
	size_t room = HTTP_NAME_CAP - s->name_len;
	size_t n = len < room ? len : room;
	memcpy(s->name + s->name_len, at, n);
	s->name_len = (uint8_t)(s->name_len + n);
	return 0;
}

static int take_value(struct http_follower *h, struct http_seen *s, const char *at, size_t len)
{
	size_t room = HTTP_VALUE_CAP - s->value_len;
	size_t n = len < room ? len : room;

	memcpy(s->value + s->value_len, at, n);
	s->value_len = (uint8_t)(s->value_len + n);
	if (binds_connection(s))
		h->following = HTTP_GAVE_UP;
	return 0;
}

/* --- requests --- */

static int on_request_begin(llhttp_t *p)
{
	struct http_follower *h = p->data;

	http_parser_begins(p);
	if (h->begun > h->answered)
		h->framing = HTTP_FRAMING_DOUBTED;
	h->head = NULL;
	h->begun++;
	if (h->persistence == PERSISTENT && h->begun - h->answered <= HTTP_PIPELINE_MAX)
		return 0;
	h->following = HTTP_GAVE_UP;
	return -1; /* later requests cannot be told apart either */
}

/* A target, or the text of a status. */
static int on_first_text(llhttp_t *p, const char *at, size_t len)
{
	return note_head(p->data, at);
}

static int on_request_name(llhttp_t *p, const char *at, size_t len)
{
	struct http_follower *h = p->data;

	return http_take_name(&h->request_header, at, len);
}

/* Content_Length is another field than Content-Length, but some backends confuse them (Transfer_Encoding likewise). */
static bool resembles_length(const struct http_seen *s)
{
	static const char *const names[] = { "content-length", "transfer-encoding", NULL };
	char name[HTTP_NAME_CAP];

	if (!memchr(s->name, '_', s->name_len))
		return false;
	for (size_t i = 0; i < s->name_len; i++)
		name[i] = s->name[i] == '_' ? '-' : s->name[i];
	return is_one_of(name, s->name_len, names);
}

static int on_request_value(llhttp_t *p, const char *at, size_t len)
{
	struct http_follower *h = p->data;

	if (resembles_length(&h->request_header))
		h->framing = HTTP_FRAMING_DOUBTED;
	return take_value(h, &h->request_header, at, len);
}

static enum service_repeat repeat_of(llhttp_method_t method)
{
	switch (method) {
	case HTTP_GET:
	case HTTP_HEAD:
	case HTTP_OPTIONS:
	case HTTP_TRACE: return SERVICE_REPEAT_ANY_TIME;
	case HTTP_PUT:
	case HTTP_DELETE: return SERVICE_REPEAT_IF_ALONE;
	default: return SERVICE_REPEAT_NEVER;
	}
}

static bool has_body(const llhttp_t *p)
{
	return p->content_length > 0 || (p->flags & F_TRANSFER_ENCODING);
}

static int on_request_headers(llhttp_t *p)
{
	struct http_follower *h = p->data;
	uint64_t bit = UINT64_C(1) << ((h->begun - 1) % HTTP_PIPELINE_MAX);
	enum service_repeat repeat = repeat_of((llhttp_method_t)p->method);

	http_parser_headed(p);
	h->headed = h->begun;
	judge_head(h, p);
	/* Some backends do not read a body where they have no use for it, even that of a POST, and take it for the next
	 * request. */
	if (has_body(p))
		h->framing = HTTP_FRAMING_DOUBTED;
	if (repeat > h->repeat)
		h->repeat = (uint8_t)repeat;
	h->last_request = p->method == HTTP_GET && !has_body(p) ? REQUEST_PLAIN_GET : REQUEST_OTHER;
	h->head_bits = p->method == HTTP_HEAD ? h->head_bits | bit : h->head_bits & ~bit;
	if (p->method == HTTP_CONNECT || p->upgrade)
		h->following = HTTP_GAVE_UP;
	return 0;
}

static int on_request_complete(llhttp_t *p)
{
	struct http_follower *h = p->data;

	h->asked++;
	if (!llhttp_should_keep_alive(p))
		h->persistence = REQUEST_CLOSES;
	return http_parser_completed(p);
}

static const llhttp_settings_t request_settings = {
	.on_message_begin = on_request_begin,
	.on_url = on_first_text,
	.on_header_field = on_request_name,
	.on_header_value = on_request_value,
	.on_headers_complete = on_request_headers,
	.on_body = http_parser_on_body,
	.on_chunk_header = http_parser_on_chunk,
	.on_message_complete = on_request_complete,
};

/* --- responses --- */

static int on_response_begin(llhttp_t *p)
{
	struct http_follower *h = p->data;

	http_parser_begins(p);
	if (h->answered == h->begun)
		h->following = HTTP_GAVE_UP; /* a response without a request */
	h->response_state = RESPONSE_INTERIM;
	h->head = NULL;
	return 0;
}

static int on_response_name(llhttp_t *p, const char *at, size_t len)
{
	struct http_follower *h = p->data;

	note_head(h, at); /* there may be no text after the status */
	return http_take_name(&h->response_header, at, len);
}

static int on_response_value(llhttp_t *p, const char *at, size_t len)
{
	struct http_follower *h = p->data;

	return take_value(h, &h->response_header, at, len);
}

/* An answer to the request after which the follower understood nothing. */
static bool opens_tunnel(const struct http_follower *h, unsigned status)
{
	if (llhttp_get_errno(&h->request.llhttp) != HPE_PAUSED_UPGRADE || h->answered + 1 != h->begun)
		return false;
	return h->request.llhttp.method == HTTP_CONNECT ? status / 100 == 2 : status == 101;
}

/* By RFC 9112 6.3 the answer has no body. Will a backend that is not strict send one all the same, maybe late? */
static bool may_have_late_body(const llhttp_t *p, int is_to_head)
{
	return has_body(p) || (is_to_head && !(p->flags & F_CONTENT_LENGTH));
}

/* llhttp: 1 means that no body follows, whatever the header says (RFC 9112 6.3). */
static int on_response_headers(llhttp_t *p)
{
	struct http_follower *h = p->data;

	http_parser_headed(p);
	judge_head(h, p);
	if (p->status_code == 101 || p->upgrade)
		h->following = HTTP_GAVE_UP;
	if (opens_tunnel(h, p->status_code))
		h->tunnel = TUNNEL;
	if (p->status_code / 100 == 1)
		return 0;
	h->response_state = RESPONSE_FINAL;
	const int is_to_head = (h->head_bits >> (h->answered % HTTP_PIPELINE_MAX)) & 1;
	if (!is_to_head && p->status_code != 204 && p->status_code != 304)
		return 0;
	if (may_have_late_body(p, is_to_head))
		h->framing = HTTP_FRAMING_DOUBTED;
	return 1;
}

static int on_response_complete(llhttp_t *p)
{
	struct http_follower *h = p->data;

	if (h->response_state == RESPONSE_FINAL) {
		h->answered++;
		if (!llhttp_should_keep_alive(p))
			h->persistence = RESPONSE_CLOSES;
	}
	h->response_state = RESPONSE_NONE;
	return http_parser_completed(p);
}

static const llhttp_settings_t response_settings = {
	.on_message_begin = on_response_begin,
	.on_status = on_first_text,
	.on_header_field = on_response_name,
	.on_header_value = on_response_value,
	.on_headers_complete = on_response_headers,
	.on_body = http_parser_on_body,
	.on_chunk_header = http_parser_on_chunk,
	.on_message_complete = on_response_complete,
};

/* --- both --- */

struct http_follower *http_follower_create(struct slabs *from, struct http_past past)
{
	struct http_follower *h = slabs_take(from);

	if (!h)
		return NULL;
	*h = (struct http_follower){ .begun = past.spoken,
		.asked = past.spoken,
		.answered = past.spoken,
		.headed = past.spoken,
		.repeat = past.repeat,
		.framing = past.framing };
	http_parser_init(&h->request, HTTP_REQUEST, &request_settings, h);
	http_parser_init(&h->response, HTTP_RESPONSE, &response_settings, h);
	return h;
}

void http_follower_destroy(struct slabs *from, struct http_follower *h)
{
	if (h) {
		delivered_unwatch(&h->watch);
		http_parser_clear(&h->request);
		http_parser_clear(&h->response);
	}
	slabs_give(from, h);
}

static llhttp_errno_t http_parse(struct http_follower *h, struct http_parser *p, const uint8_t *data, size_t len,
	enum service_until until, size_t *used)
{
	h->head = NULL;
	h->input_end = data + len;
	llhttp_errno_t end = http_parser_feed(p, data, len, until, used);
	h->head = h->input_end = NULL;
	return end;
}

enum http_following http_follow_request(
	struct http_follower *h, const uint8_t *data, size_t len, enum service_until until, size_t *used)
{
	*used = len;
	if (h->tunnel == TUNNEL || (until == SERVICE_TO_END && h->following == HTTP_GAVE_UP))
		return (enum http_following)h->following;
	llhttp_errno_t end = http_parse(h, &h->request, data, len, until, used);
	if (end != HPE_OK && end != HPE_PAUSED)
		h->following = HTTP_GAVE_UP;
	return (enum http_following)h->following;
}

enum http_following http_follow_response(struct http_follower *h, const uint8_t *data, size_t len)
{
	size_t used;

	if (h->tunnel == NO_TUNNEL && http_parse(h, &h->response, data, len, SERVICE_ALL, &used) != HPE_OK)
		h->following = HTTP_GAVE_UP;
	return (enum http_following)h->following;
}

static bool loose_answer_is_whole(const struct http_follower *h)
{
	return h->response.loose && h->begun - h->answered == 1 && llhttp_get_errno(&h->request.llhttp) == HPE_OK &&
	       loose_end_is_whole(h->response.loose, (h->head_bits >> (h->answered % HTTP_PIPELINE_MAX)) & 1);
}

bool http_follow_response_end(struct http_follower *h)
{
	llhttp_errno_t request = llhttp_get_errno(&h->request.llhttp);

	if (llhttp_get_errno(&h->response.llhttp) != HPE_OK)
		return http_said_last(h) || loose_answer_is_whole(h);
	if (h->response_state == RESPONSE_FINAL && http_parser_end(&h->response) != HPE_OK)
		return false;
	if (http_said_last(h))
		return true;
	if (request != HPE_OK && request != HPE_PAUSED_UPGRADE) /* the number of requests is unknown */
		return h->response_state == RESPONSE_NONE;
	return h->answered >= h->begun;
}

bool http_judges_ends(const struct http_follower *h)
{
	return h->tunnel == NO_TUNNEL && (h->asked > 0 || h->answered > 0);
}

/* A backend may answer a request before it has read all of it. The rest still belongs to that request. */
unsigned http_outstanding(const struct http_follower *h)
{
	return h->begun - (h->answered < h->asked ? h->answered : h->asked);
}

bool http_asking(const struct http_follower *h)
{
	return h->asked < h->begun;
}

uint32_t http_head_under_way(const struct http_follower *h)
{
	return h->headed < h->begun ? h->begun : 0;
}

bool http_answering(const struct http_follower *h)
{
	return h->response_state != RESPONSE_NONE || (h->answered == h->begun && h->asked < h->begun);
}

bool http_said_last(const struct http_follower *h)
{
	return h->persistence == RESPONSE_CLOSES && h->response_state == RESPONSE_NONE && h->tunnel == NO_TUNNEL;
}

/* Now both parsers wait for the first byte of a message, like new parsers. */
bool http_between_exchanges(const struct http_follower *h, struct http_past *past)
{
	if (h->begun != h->asked || h->begun != h->answered || h->response_state != RESPONSE_NONE ||
		h->persistence != PERSISTENT || h->following != HTTP_FOLLOWS || h->tunnel != NO_TUNNEL)
		return false;
	*past = (struct http_past){ .spoken = h->begun > 0, .repeat = h->repeat, .framing = h->framing };
	return true;
}

bool http_awaits_download(const struct http_follower *h)
{
	return h->last_request == REQUEST_PLAIN_GET && h->begun - h->answered == 1 && h->asked == h->begun &&
	       h->response_state == RESPONSE_NONE;
}

enum service_repeat http_repeat_of_last(const struct http_follower *h)
{
	return h->headed < h->begun ? SERVICE_REPEAT_ANY_TIME : repeat_of((llhttp_method_t)h->request.llhttp.method);
}

size_t http_kept_len(const struct http_follower *h)
{
	return (size_t)h->request.kept_len + h->response.kept_len;
}

/* --- as bytes --- */

#define STATE_VERSION 1u

static void put_seen(struct wire_writer *w, const struct http_seen *s)
{
	wire_put_u8(w, s->name_len);
	wire_put_u8(w, s->value_len);
	wire_put_bytes(w, s->name, sizeof s->name);
	wire_put_bytes(w, s->value, sizeof s->value);
}

static int get_seen(struct wire_reader *r, struct http_seen *s)
{
	s->name_len = wire_u8(r);
	s->value_len = wire_u8(r);
	const uint8_t *name = wire_bytes(r, sizeof s->name), *value = wire_bytes(r, sizeof s->value);
	if (!name || !value || s->name_len > HTTP_NAME_CAP || s->value_len > HTTP_VALUE_CAP)
		return CSSL_E_RANGE;
	memcpy(s->name, name, sizeof s->name);
	memcpy(s->value, value, sizeof s->value);
	return 0;
}

/* The numbers of a follower in their order, each with its maximum. */
#define NUMBERS(X)                                                                                                     \
	X(begun, UINT32_MAX)                                                                                           \
	X(asked, UINT32_MAX)                                                                                           \
	X(answered, UINT32_MAX)                                                                                        \
	X(headed, UINT32_MAX)                                                                                          \
	X(response_state, RESPONSE_FINAL)                                                                              \
	X(persistence, RESPONSE_CLOSES)                                                                                \
	X(repeat, SERVICE_REPEAT_NEVER)                                                                                \
	X(last_request, REQUEST_PLAIN_GET)                                                                             \
	X(following, HTTP_GAVE_UP)                                                                                     \
	X(tunnel, TUNNEL)                                                                                              \
	X(framing, HTTP_FRAMING_DOUBTED)

_Static_assert(HTTP_FOLLOWER_STATE_MAX >= 128 + 2 * HTTP_PARSER_STATE_MAX + DELIVERED_STATE_LEN, "all of it has room");

ptrdiff_t http_follower_save(const struct http_follower *h, uint8_t out[static HTTP_FOLLOWER_STATE_MAX])
{
	struct wire_writer w = wire_writer(out, HTTP_FOLLOWER_STATE_MAX);

	wire_put_u8(&w, STATE_VERSION);
	wire_put_u64(&w, h->head_bits);
#define X(number, max) wire_put_u32(&w, h->number);
	NUMBERS(X)
#undef X
	put_seen(&w, &h->request_header);
	put_seen(&w, &h->response_header);
	int r = http_parser_put(&h->request, &w);
	if (r == 0)
		r = http_parser_put(&h->response, &w);
	wire_put_u8(&w, h->watch != NULL);
	if (h->watch)
		delivered_save(&h->watch->now, wire_put_room(&w, DELIVERED_STATE_LEN));
	return r < 0 ? r : wire_writer_len(&w);
}

static int get_numbers(struct wire_reader *r, struct http_follower *h)
{
	h->head_bits = wire_u64(r);
	uint32_t value;
#define X(number, max)                                                                                                 \
	value = wire_u32(r);                                                                                           \
	if (value > (max))                                                                                             \
		return CSSL_E_RANGE;                                                                                   \
	h->number = (__typeof__(h->number))value;
	NUMBERS(X)
#undef X
	return h->asked <= h->begun && h->headed <= h->begun ? 0 : CSSL_E_RANGE;
}

/* Without memory no digests are made any more, and the answer cannot go on after a loss. */
static void get_watch(struct wire_reader *r, struct http_follower *h)
{
	const uint8_t *state = wire_u8(r) ? wire_bytes(r, DELIVERED_STATE_LEN) : NULL;
	struct delivered d;

	if (state && http_answering(h) && delivered_restore(state, DELIVERED_STATE_LEN, &d) == 0)
		delivered_watch(&h->watch, &d);
}

static int http_state_get(struct wire_reader *r, struct http_follower *h)
{
	if (wire_u8(r) != STATE_VERSION || get_numbers(r, h) < 0)
		return CSSL_E_VERSION;
	if (get_seen(r, &h->request_header) < 0 || get_seen(r, &h->response_header) < 0)
		return CSSL_E_RANGE;
	if (http_parser_get(&h->request, r) < 0 || http_parser_get(&h->response, r) < 0)
		return CSSL_E_RANGE;
	get_watch(r, h);
	return wire_reader_end(r);
}

struct http_follower *http_follower_restore(struct slabs *from, const uint8_t *in, size_t len)
{
	const struct http_past nothing = { 0 };
	struct wire_reader r = wire_reader(in, len);
	struct http_follower *h = http_follower_create(from, nothing);

	if (h && http_state_get(&r, h) == 0)
		return h;
	http_follower_destroy(from, h);
	return NULL;
}
