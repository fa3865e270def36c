/* control_answers_sessions.c: the provider's answers about sessions as JSON. They contain no secret of a session:
 * struct control_session has no field for one. */
#include <arpa/inet.h>
#include <sodium.h>

#include "proto/cipher_suite.h"
#include "ragent/control/control_answers.h"

static json_t *client_json(const struct sockaddr_storage *a)
{
	uint8_t bytes[16];
	char text[INET6_ADDRSTRLEN];
	const size_t len = a->ss_family == 0 ? 0 : address_bytes((const struct sockaddr *)a, bytes);
	if (len == 0 || !inet_ntop(len == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text))
		return json_null();
	return json_string(text);
}

static json_t *name_json(const char *text)
{
	return text && *text != '\0' ? text_json(text) : json_null();
}

static json_t *session_json(const struct control_session *s)
{
	const struct cipher_suite *suite = cipher_suite_find(s->cipher_suite);
	const size_t family_len = sodium_is_zero(s->family_id, sizeof s->family_id) ? 0 : sizeof s->family_id;
	const size_t certificate_len =
		sodium_is_zero(s->client_certificate, sizeof s->client_certificate) ? 0 : sizeof s->client_certificate;
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
		hex_json(s->id, sizeof s->id), "family_id", hex_json(s->family_id, family_len), "server_name",
		name_json(s->server_name), "client", client_json(&s->client), "version",
		s->protocol_version == 0x0304 ? "1.3" : "1.2", "cipher_suite", suite ? suite->name : NULL, "alpn",
		name_json(s->alpn), "listener", name_json(s->listener), "origin", name_json(s->origin), "age_s",
		integer_json(s->age_s), "family_age_s", integer_json(s->family_age_s), "expires_s",
		integer_json(s->expires_s), "hits", integer_json(s->hits), "client_certificate",
		hex_json(s->client_certificate, certificate_len));
}

void control_answer_sessions(
	struct control_request *r, const struct control_session *at, size_t count, enum control_more more)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		list = array_append(list, session_json(&at[i]));
	json_t *next = more == CONTROL_MORE && count > 0 ? hex_json(at[count - 1].id, SESSION_ID_LEN) : json_null();
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o, s:o}", "sessions", list, "next", next));
}

/* The agents without an answer, and the reasons. */
static json_t *silent_json(const struct control_holder *at, size_t count)
{
	json_t *silent = json_object();
	for (size_t i = 0; i < count; i++)
		if (at[i].error)
			json_object_set_new(silent, at[i].agent, text_json(at[i].error));
	return silent;
}

void control_answer_session_count(
	struct control_request *r, uint64_t sessions, const struct control_holder *at, size_t count)
{
	json_t *agents = json_object();
	for (size_t i = 0; i < count; i++)
		if (!at[i].error)
			json_object_set_new(agents, at[i].agent, integer_json(at[i].sessions));
	request_answer(r, MHD_HTTP_OK,
		json_pack("{s:o, s:o, s:o}", "sessions", integer_json(sessions), "agents", agents, "silent",
			silent_json(at, count)));
}

void control_answer_session(
	struct control_request *r, const struct control_session *s, const struct control_holder *at, size_t count)
{
	json_t *body = session_json(s), *holders = json_array(), *missing = json_array();
	for (size_t i = 0; i < count; i++) {
		const struct control_holder *h = &at[i];
		if (!h->error && h->sessions > 0)
			holders = array_append(
				holders, json_pack("{s:s, s:o, s:o}", "agent", h->agent, "hits", integer_json(h->hits),
						 "expires_s", integer_json(h->expires_s)));
		else if (!h->error)
			missing = array_append(missing, json_string(h->agent));
	}
	json_object_set_new(body, "holders", holders);
	json_object_set_new(body, "missing", missing);
	json_object_set_new(body, "silent", silent_json(at, count));
	request_answer(r, MHD_HTTP_OK, body);
}
