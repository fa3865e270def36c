/* http_judge.c: a POST with the envelope as JSON, over a connection of its own, and its answer:
 *
 *   {"action": "accept"}, or {"action": "reject" or "tempfail", "reply": "550 5.7.1 Text"}
 *
 * The reply is optional. Any other status than 200, and any other answer, is a failure.
 */
#include <jansson.h>
#include <string.h>

#include "smtpproxy/hooks/call.h"

/* The question */

static json_t *http_judge_text(struct smtp_span text)
{
	json_t *out = json_stringn(text.len ? text.at : "", text.len);

	return out ? out : json_string("?"); /* not UTF-8 */
}

static json_t *envelope_json(const struct filter *f)
{
	char client[ADDRESS_TEXT_MAX];
	json_t *out = json_object();

	address_format((const struct sockaddr *)&f->client, client);
	json_object_set_new(out, "id", json_string(f->id));
	json_object_set_new(out, "client", json_string(client));
	json_object_set_new(out, "ehlo", http_judge_text(smtp_span_of(f->hello)));
	json_object_set_new(out, "destination", json_string(f->destination));
	json_object_set_new(out, "from", http_judge_text(smtp_span_of(f->sender)));
	json_object_set(out, "recipients", f->recipients);
	return out;
}

static void write_request(struct call *c, const char *body)
{
	char *request = NULL;
	const int len = asprintf(&request,
		"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n%s",
		c->hook->conf->path, c->hook->conf->name, strlen(body), body);

	if (len > 0)
		stream_write(&c->stream, request, (size_t)len); /* a failure comes as on_end */
	else
		call_fails(c, "out of memory");
	if (len > 0)
		free(request);
}

static int on_http_judge_body(llhttp_t *p, const char *at, size_t len)
{
	struct http_judge *h = p->data;

	if (len > sizeof h->content - h->len)
		return -1;
	memcpy(h->content + h->len, at, len);
	h->len += len;
	return 0;
}

static int on_complete(llhttp_t *p)
{
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = { .on_body = on_http_judge_body, .on_message_complete = on_complete };

static void http_judge_ask(struct call *c)
{
	json_t *envelope = envelope_json(c->filter);
	char *body = json_dumps(envelope, JSON_COMPACT);

	json_decref(envelope);
	llhttp_init(&c->u.http.parser, HTTP_RESPONSE, &settings);
	c->u.http.parser.data = &c->u.http;
	if (body)
		write_request(c, body);
	else
		call_fails(c, "out of memory");
	free(body);
}

/* The answer */

static void http_judge_refuse(struct call *c, const char *reply, struct smtp_span usual)
{
	uint8_t out[FILTER_REPLY_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);

	if (!reply)
		call_refuses(c, usual);
	else if (milter_write_reply(&w, smtp_span_of(reply)) < 0 || wire_writer_len(&w) < 0 || out[0] != usual.at[0])
		call_fails(c, "its reply does not fit its action");
	else
		call_refuses(c, (struct smtp_span){ (const char *)out, (size_t)wire_writer_len(&w) });
}

static void http_judge_judge(struct call *c)
{
	const struct http_judge *h = &c->u.http;
	json_t *answer = h->parser.status_code == 200 ? json_loadb(h->content, h->len, 0, NULL) : NULL;
	const char *action = json_string_value(json_object_get(answer, "action"));
	const char *reply = json_string_value(json_object_get(answer, "reply"));

	if (action && strcmp(action, "accept") == 0)
		call_accepts(c);
	else if (action && strcmp(action, "reject") == 0)
		http_judge_refuse(c, reply, call_reply_rejects);
	else if (action && strcmp(action, "tempfail") == 0)
		http_judge_refuse(c, reply, call_reply_defers);
	else
		call_fails(c, "it answers with another status than 200, or without an action");
	json_decref(answer);
}

static size_t http_judge_take(struct call *c, const uint8_t *data, size_t len)
{
	if (c->state != CALL_ASKED) /* behind its answer */
		return len;
	switch (llhttp_execute(&c->u.http.parser, (const char *)data, len)) {
	case HPE_OK: break;
	case HPE_PAUSED: http_judge_judge(c); break;
	default: call_fails(c, "its answer is not good HTTP"); break;
	}
	return len;
}

/* Its end is the end of an answer without a length (RFC 9112 6.3). */
static void http_judge_ended(struct call *c)
{
	if (llhttp_finish(&c->u.http.parser) == HPE_PAUSED)
		http_judge_judge(c);
	else
		call_fails(c, "it ended the connection");
}

const struct call_kind http_judge_kind = {
	.steps = 1u << FILTER_DATA, .ask = http_judge_ask, .take = http_judge_take, .ended = http_judge_ended
};
