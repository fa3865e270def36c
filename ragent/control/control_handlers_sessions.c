/* control_handlers_sessions.c: the handlers of the routes of sessions. */
#include <stdlib.h>
#include <string.h>

#include "proto/cipher_suite.h"
#include "ragent/control/control_input.h"

static int version_parse(struct exchange *e, const char *text, uint16_t *out)
{
	*out = !text ? 0 : strcmp(text, "1.2") == 0 ? 0x0303 : strcmp(text, "1.3") == 0 ? 0x0304 : UINT16_MAX;
	if (*out != UINT16_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "version: found '%.80s', expected 1.2 or 1.3", text);
	return -1;
}

static int cipher_parse(struct exchange *e, const char *text, uint16_t *out)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);
	*out = 0;
	for (unsigned i = 0; text && i < count; i++)
		if (strcmp(suites[i].name, text) == 0)
			*out = suites[i].id;
	if (!text || *out)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		"cipher: found '%.80s', expected the name of a suite such as TLS_AES_128_GCM_SHA256", text);
	return -1;
}

static int server_name_parse(struct exchange *e, const char *text, const char **out)
{
	*out = text;
	if (!text || strlen(text) <= NAME_MAX_LEN)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "server_name: expected a name of 1 to %u bytes", NAME_MAX_LEN);
	return -1;
}

/* Hexadecimal digits of @len bytes, into @bytes; *out points there, or is NULL when @text is NULL. */
static int hex_parse(
	struct exchange *e, const char *what, const char *text, uint8_t *bytes, size_t len, const uint8_t **out)
{
	*out = text ? bytes : NULL;
	if (!text || input_hex(text, bytes, len) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected %u hexadecimal digits", what, (unsigned)(2 * len));
	return -1;
}

/* The query, and the data that it points to. */
struct input {
	struct control_session_query query;
	uint8_t family_id[FAMILY_ID_LEN], client_certificate[CONTROL_CERTIFICATE_LEN], session[SESSION_ID_LEN];
	json_t *body; /* none */
};

static int read_filter(struct exchange *e, const struct query *q, struct input *in)
{
	const char *client = query_value(q, "client");
	struct control_session_query *out = &in->query;
	return !server_name_parse(e, query_value(q, "server_name"), &out->server_name) &&
	       !version_parse(e, query_value(q, "version"), &out->protocol_version) &&
	       !cipher_parse(e, query_value(q, "cipher"), &out->cipher_suite) &&
	       !input_seconds(e, "min_age_s", query_value(q, "min_age_s"), SESSION_LIFETIME_MAX_S, &out->min_age_s) &&
	       !input_seconds(e, "max_age_s", query_value(q, "max_age_s"), SESSION_LIFETIME_MAX_S, &out->max_age_s) &&
	       !hex_parse(e, "family_id", query_value(q, "family_id"), in->family_id, FAMILY_ID_LEN, &out->family_id) &&
	       !hex_parse(e, "client_certificate", query_value(q, "client_certificate"), in->client_certificate,
		       CONTROL_CERTIFICATE_LEN, &out->client_certificate) &&
	       (!client || !input_net(e, "client", client, &out->client));
}

static int read_page(struct exchange *e, const struct query *q, struct input *in)
{
	const char *after = query_value(q, "after");
	in->query.after = after ? in->session : NULL;
	return read_filter(e, q, in) && !input_limit(e, query_value(q, "limit"), &in->query.limit) &&
	       (!after || !input_session_id(e, "after", after, in->session));
}

HANDLE(sessions, read_page(e, q, &in), REQUEST_PLAIN, sessions(ctx, &in.query, r))
HANDLE(session_count, read_filter(e, q, &in), REQUEST_PLAIN, session_count(ctx, &in.query, r))
HANDLE(session, !input_session_id(e, "ID", id, in.session), REQUEST_PLAIN, session(ctx, in.session, r))
