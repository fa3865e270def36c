/* service.c: tcp and http behind one interface. */
#include <stdlib.h>

#include "proto/error.h"
#include "sslagent/service/service.h"

void service_init(struct service *s, enum conf_service kind, struct slabs *followers)
{
	*s = (struct service){ .kind = kind, .followers = followers };
}

void service_destroy(struct service *s)
{
	http_follower_destroy(s->followers, s->http);
	s->http = NULL;
}

/* An idle connection has no follower. */
static void leave_between_exchanges(struct service *s)
{
	if (s->kind == CONF_HTTP && http_between_exchanges(s->http, &s->past))
		service_destroy(s);
}

/* What passes is not understood, or no longer: only whole conversations can be told apart from now on. */
static void become_tcp(struct service *s)
{
	s->kind = CONF_TCP;
	s->tcp = s->http ? SERVICE_TOUCHED : SERVICE_DOUBTED;
	if (s->http && !http_judges_ends(s->http))
		service_destroy(s);
}

static int follows(struct service *s)
{
	if (s->kind == CONF_TCP && !s->http) {
		s->tcp = s->tcp == SERVICE_UNTOUCHED ? SERVICE_TOUCHED : s->tcp;
		return 0;
	}
	if (!s->http)
		s->http = http_follower_create(s->followers, s->past);
	if (!s->http)
		become_tcp(s);
	return s->http != NULL;
}

/* Where a follower is before it gets bytes of the client. */
struct before {
	uint32_t begun;
	int is_between; /* two exchanges */
};

static struct before before(const struct service *s)
{
	struct http_past past;

	return (struct before){ http_begun(s->http), http_between_exchanges(s->http, &past) };
}

/* It has them. The answer may come before the request has ended. */
static void taken(struct service *s, struct before b)
{
	s->blank = b.is_between && http_begun(s->http) == b.begun ? SERVICE_BLANK : SERVICE_NOT_BLANK;
	leave_between_exchanges(s);
}

uint32_t service_head_under_way(const struct service *s)
{
	if (s->kind == CONF_TCP)
		return 0;
	if (s->blank == SERVICE_BLANK)
		return SERVICE_HEAD_BLANK;
	return s->http ? http_head_under_way(s->http) : 0;
}

void service_from_client(struct service *s, const uint8_t *data, size_t len)
{
	if (!follows(s))
		return;
	struct before b = before(s);
	if (http_follow_request(s->http, data, len) == HTTP_GAVE_UP)
		become_tcp(s);
	else
		taken(s, b);
}

int service_is_being_asked(const struct service *s)
{
	return s->kind != CONF_TCP && s->http && http_asking(s->http);
}

size_t service_from_client_to_end(struct service *s, const uint8_t *data, size_t len)
{
	size_t used = len;

	if (!follows(s))
		return len;
	struct before b = before(s);
	if (http_follow_request_to_end(s->http, data, len, &used) == HTTP_GAVE_UP)
		become_tcp(s);
	else
		taken(s, b);
	return used;
}

enum service_piece service_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	if (!follows(s))
		return SERVICE_RESPONSE;
	uint32_t answered = http_answered(s->http);
	int answering = http_answering(s->http);
	if (http_follow_response(s->http, data, len) == HTTP_GAVE_UP) {
		become_tcp(s);
		return SERVICE_RESPONSE;
	}
	int is_response = answering || http_answering(s->http) || http_answered(s->http) != answered;
	leave_between_exchanges(s);
	return is_response ? SERVICE_RESPONSE : SERVICE_INTERIM;
}

enum service_place service_place(const struct service *s)
{
	if (s->kind == CONF_TCP)
		return s->tcp == SERVICE_UNTOUCHED ? SERVICE_CHECKPOINT : SERVICE_OPAQUE;
	if (!s->http || http_outstanding(s->http) == 0)
		return SERVICE_CHECKPOINT;
	return http_answering(s->http) ? SERVICE_ANSWERING : SERVICE_ASKING;
}

enum service_reuse service_backend_reuse(const struct service *s)
{
	if (s->kind == CONF_TCP || (s->http && (http_outstanding(s->http) || !http_persistent(s->http))))
		return SERVICE_BACKEND_USED_UP;
	return SERVICE_BACKEND_REUSABLE;
}

enum http_framing service_framing(const struct service *s)
{
	if (s->kind == CONF_TCP)
		return HTTP_FRAMING_DOUBTED;
	return s->http ? http_framing(s->http) : (enum http_framing)s->past.framing;
}

enum service_end service_backend_ended(struct service *s)
{
	if (!s->http)
		return s->kind == CONF_TCP && s->tcp == SERVICE_DOUBTED ? SERVICE_END_CUT : SERVICE_END_WHOLE;
	return http_follow_response_end(s->http) ? SERVICE_END_WHOLE : SERVICE_END_CUT;
}

int service_said_last(const struct service *s)
{
	return s->http && http_said_last(s->http);
}

int service_takes_no_more(const struct service *s)
{
	return s->kind != CONF_TCP && service_said_last(s) && !http_asking(s->http);
}

/* Is one answer due at most, of which nothing was said? */
static int may_answer(const struct service *s)
{
	return s->kind == CONF_HTTP && service_place(s) != SERVICE_ANSWERING &&
	       !(s->http && http_outstanding(s->http) > 1);
}

const char *service_unreachable_answer(const struct service *s, size_t *len)
{
	static const char answer[] = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n"
				     "Connection: close\r\n\r\nBad Gateway\n";

	if (!may_answer(s))
		return NULL;
	*len = sizeof answer - 1;
	return answer;
}

const char *service_late_answer(const struct service *s, size_t *len)
{
	static const char answer[] =
		"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n"
		"Connection: close\r\n\r\nRequest Timeout\n";

	if (!may_answer(s))
		return NULL;
	*len = sizeof answer - 1;
	return answer;
}

unsigned service_outstanding(const struct service *s)
{
	return s->kind != CONF_TCP && s->http ? http_outstanding(s->http) : 0;
}

int service_awaits_download(const struct service *s)
{
	return s->kind != CONF_TCP && s->http && http_awaits_download(s->http);
}

enum http_repeat service_repeat(const struct service *s)
{
	if (s->kind == CONF_TCP)
		return s->tcp == SERVICE_UNTOUCHED ? HTTP_REPEAT_ANY_TIME : HTTP_REPEAT_NEVER;
	return s->http ? http_repeat(s->http) : (enum http_repeat)s->past.repeat;
}

int service_save(const struct service *s, uint8_t **out, size_t *len)
{
	struct http_follower *h = s->http;

	*out = NULL;
	*len = 0;
	if (!h && (s->kind == CONF_TCP || !s->past.spoken))
		return 0;
	if (!h)
		h = http_follower_create(s->followers, s->past);
	*out = h ? malloc(http_follower_save_len()) : NULL;
	if (*out) {
		*len = http_follower_save_len();
		http_follower_save(h, *out);
	}
	if (h != s->http)
		http_follower_destroy(s->followers, h);
	return *out ? 0 : CSSL_E_NO_MEMORY;
}

void service_restore(
	struct service *s, enum conf_service kind, struct slabs *followers, const uint8_t *state, size_t len)
{
	service_init(s, kind, followers);
	if (len == 0) { /* it was, or is a tunnel */
		s->kind = CONF_TCP;
		s->tcp = SERVICE_TOUCHED;
		return;
	}
	s->http = kind == CONF_HTTP ? http_follower_restore(followers, state, len) : NULL;
	if (!s->http || http_gave_up(s->http))
		become_tcp(s);
	else
		leave_between_exchanges(s);
}
