/* http_service.c: service http: follows the messages of HTTP/1.1 (http_follower.h). After the follower gave up, it
 * can still tell a cut answer from a complete one. An idle connection has no follower, only a struct http_past.
 */
#include <string.h>

#include "conf/conf.h"
#include "proto/error.h"
#include "sslagent/service/http/http_follower.h"
#include "sslagent/service/service_ops.h"

/* Were the client's last bytes only empty lines, which may stand before a request (RFC 9112 2.2)? */
enum blank { NOT_BLANK, BLANK };
#define HEAD_BLANK UINT32_MAX /* number of the request that these lines may begin */

struct own {
	uint8_t blank;         /* enum blank */
	struct http_past past; /* while there is no follower */
};
_Static_assert(sizeof(struct own) <= SERVICE_OWN_LEN && _Alignof(struct own) == 1, "it lies in struct service");

static struct own *own_of(const struct service *s)
{
	return (struct own *)s->own;
}

static void drop_follower(struct service *s)
{
	http_follower_destroy(s->blocks, s->state);
	s->state = NULL;
}

static void leave_between_exchanges(struct service *s)
{
	if (s->following == SERVICE_FOLLOWED && http_between_exchanges(s->state, &own_of(s)->past))
		drop_follower(s);
}

/* The service does not understand the conversation any more. From now on it can only judge whether the whole
 * conversation was cut. */
static void http_service_give_up(struct service *s)
{
	service_give_up(s, s->state ? SERVICE_TOUCHED : SERVICE_DOUBTED);
	if (s->state && !http_judges_ends(s->state))
		drop_follower(s);
}

/* The follower; NULL: the conversation is not followed. */
static struct http_follower *http_service_follower(struct service *s)
{
	if (s->state || s->following == SERVICE_NOT_FOLLOWED)
		return s->state;
	s->state = http_follower_create(s->blocks, own_of(s)->past);
	if (!s->state)
		http_service_give_up(s);
	return s->state;
}

static size_t http_service_from_client(struct service *s, enum service_until until, const uint8_t *data, size_t len)
{
	struct http_follower *h = http_service_follower(s);
	struct http_past past;
	size_t used;

	if (!h)
		return len;
	const bool was_between = http_between_exchanges(h, &past);
	const uint32_t begun = h->begun;
	if (http_follow_request(h, data, len, until, &used) == HTTP_GAVE_UP) {
		http_service_give_up(s);
		return used;
	}
	own_of(s)->blank = was_between && h->begun == begun ? BLANK : NOT_BLANK;
	leave_between_exchanges(s); /* the answer may come before the request has ended */
	return used;
}

static enum service_piece http_service_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	struct http_follower *h = http_service_follower(s);

	if (!h)
		return SERVICE_RESPONSE;
	const uint32_t answered = h->answered;
	const bool answering = http_answering(h);
	if (http_follow_response(h, data, len) == HTTP_GAVE_UP) {
		http_service_give_up(s);
		return SERVICE_RESPONSE;
	}
	const bool is_response = answering || http_answering(h) || h->answered != answered;
	if (h->answered != answered)
		delivered_unwatch(&h->watch);
	else if (h->watch)
		delivered_passed(h->watch, data, len);
	leave_between_exchanges(s);
	return is_response ? SERVICE_RESPONSE : SERVICE_INTERIM;
}

static enum service_end http_service_backend_ended(struct service *s)
{
	/* law 8: an end is the end of an answer only if its framing says so */
	return http_follow_response_end(s->state) ? SERVICE_END_WHOLE : SERVICE_END_CUT;
}

static bool http_service_said_last(const struct service *s)
{
	return http_said_last(s->state);
}

static enum service_place http_service_place(const struct service *s)
{
	if (!s->state || http_outstanding(s->state) == 0)
		return SERVICE_CHECKPOINT;
	return http_answering(s->state) ? SERVICE_ANSWERING : SERVICE_ASKING;
}

static bool is_being_asked(const struct service *s)
{
	return s->state && http_asking(s->state);
}

static uint32_t http_service_head_under_way(const struct service *s)
{
	if (own_of(s)->blank == BLANK)
		return HEAD_BLANK;
	return s->state ? http_head_under_way(s->state) : 0;
}

static unsigned http_service_outstanding(const struct service *s)
{
	return http_outstanding(s->state);
}

static enum service_reuse http_service_backend_reuse(const struct service *s)
{
	const struct http_follower *h = s->state;

	if (h && (http_outstanding(h) || h->persistence != PERSISTENT))
		return SERVICE_BACKEND_USED_UP;
	const unsigned framing = h ? h->framing : own_of(s)->past.framing;
	return framing == HTTP_FRAMING_PLAIN ? SERVICE_BACKEND_FOR_ALL : SERVICE_BACKEND_FOR_CLIENT;
}

static enum service_repeat repeat_by(const struct service *s, enum service_repeat methods)
{
	if (methods == SERVICE_REPEAT_IF_ALONE && s->listener && s->listener->repeat_requests == CONF_REPEAT_SAFE)
		return SERVICE_REPEAT_NEVER;
	return methods;
}

static enum service_repeat http_service_repeat(const struct service *s)
{
	const struct http_follower *h = s->state;

	return repeat_by(s, (enum service_repeat)(h ? h->repeat : own_of(s)->past.repeat));
}

/* The first attempt has ended with its connection. */
static bool may_ask_again(const struct service *s)
{
	/* law 10: of two requests the backend may have answered one */
	return http_outstanding(s->state) == 1 && !http_answering(s->state) &&
	       repeat_by(s, http_repeat_of_last(s->state)) != SERVICE_REPEAT_NEVER;
}

static const char *http_service_last_words(const struct service *s, enum service_parting why, size_t *len)
{
	static const char *const answers[] = {
		[SERVICE_BACKEND_LOST] = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\n"
					 "Content-Length: 12\r\nConnection: close\r\n\r\nBad Gateway\n",
		[SERVICE_HEAD_LATE] = "HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain\r\n"
				      "Content-Length: 16\r\nConnection: close\r\n\r\nRequest Timeout\n",
	};

	if (why == SERVICE_TRACK_LOST)
		return NULL;
	if (why == SERVICE_LEAVES || (why == SERVICE_HEAD_LATE && own_of(s)->blank == BLANK)) {
		*len = 0; /* no answer is due */
		return "";
	}
	/* is at most one answer due, and has no byte of it come? */
	if (http_service_place(s) == SERVICE_ANSWERING || service_outstanding(s) > 1)
		return NULL;
	*len = strlen(answers[why]);
	return answers[why];
}

static ptrdiff_t http_service_save(const struct service *s, uint8_t *out)
{
	if (s->state)
		return http_follower_save(s->state, out);
	if (!own_of(s)->past.spoken)
		return 0;
	struct http_follower *h = http_follower_create(s->blocks, own_of(s)->past);
	const ptrdiff_t n = h ? http_follower_save(h, out) : CSSL_E_NO_MEMORY;
	http_follower_destroy(s->blocks, h);
	return n;
}

static size_t http_service_kept_len(const struct service *s)
{
	return http_kept_len(s->state);
}

static void http_service_restore(struct service *s, const uint8_t *state, size_t len)
{
	struct http_follower *h = http_follower_restore(s->blocks, state, len);

	s->state = h;
	if (h && h->following == HTTP_FOLLOWS)
		leave_between_exchanges(s);
	else
		http_service_give_up(s);
}

const struct service_ops service_http = {
	.from_client = http_service_from_client,
	.from_backend = http_service_from_backend,
	.backend_ended = http_service_backend_ended,
	.state_len = sizeof(struct http_follower),
	.drop_state = drop_follower,
	.said_last = http_service_said_last,
	.save = http_service_save,
	.save_max = HTTP_FOLLOWER_STATE_MAX,
	.kept_len = http_service_kept_len,
	.place = http_service_place,
	.is_being_asked = is_being_asked,
	.head_under_way = http_service_head_under_way,
	.backend_reuse = http_service_backend_reuse,
	.last_words = http_service_last_words,
	.outstanding = http_service_outstanding,
	.repeat = http_service_repeat,
	.may_ask_again = may_ask_again,
	.restore = http_service_restore,
};
