/* control_handlers_revoke.c: the body of a revocation: either one member alone, or criteria; a session has to meet all
 * criteria. */
#include <string.h>

#include "proto/cipher_suite.h"
#include "ragent/control/control_input.h"

/* The revocation, with the data that it points to. */
struct input {
	struct control_revocation what;
	uint8_t client_certificate[CONTROL_CERTIFICATE_LEN];
	json_t *body;
};

/* Each reads one member: 0, or -1 when the value is wrong. It sets `which` as if it were the only member. */

static int read_hex(const json_t *value, uint8_t *out, size_t len)
{
	const char *text = json_string_value(value);
	return text ? input_hex(text, out, len) : -1;
}

static int read_session(const json_t *value, struct input *r)
{
	r->what.which = CONTROL_REVOKE_SESSION;
	r->what.id_len = SESSION_ID_LEN;
	return read_hex(value, r->what.id, SESSION_ID_LEN);
}

static int read_all(const json_t *value, struct input *r)
{
	r->what.which = CONTROL_REVOKE_ALL;
	return json_is_true(value) ? 0 : -1;
}

static int read_family(const json_t *value, struct input *r)
{
	r->what.which = CONTROL_REVOKE_FAMILY;
	r->what.id_len = FAMILY_ID_LEN;
	r->what.matching.family_id = r->what.id;
	return read_hex(value, r->what.id, FAMILY_ID_LEN);
}

static int read_server_name(const json_t *value, struct input *r)
{
	const char *name = json_string_value(value);
	r->what.which = CONTROL_REVOKE_SERVER_NAME;
	r->what.server_name = r->what.matching.server_name = name;
	return name && *name != '\0' && strlen(name) <= NAME_MAX_LEN ? 0 : -1;
}

/* Two members could contradict each other, so only one names the client. */
static int read_client(const json_t *value, struct input *r)
{
	const char *text = json_string_value(value);
	struct address_net *net = &r->what.matching.client;
	if (!text || net->len > 0 || input_net_read(text, net) != 0)
		return -1;
	r->what.which = net->prefix == 8 * net->len ? CONTROL_REVOKE_CLIENT : CONTROL_REVOKE_MATCHING;
	r->what.client.len = net->len;
	memcpy(r->what.client.bytes, net->bytes, net->len);
	return 0;
}

static int read_client_address(const json_t *value, struct input *r)
{
	const char *text = json_string_value(value);
	struct sockaddr_storage address;
	return text && address_parse_host(text, &address) == 0 ? read_client(value, r) : -1;
}

static int read_version(const json_t *value, struct input *r)
{
	const char *text = json_string_value(value);
	r->what.which = CONTROL_REVOKE_MATCHING;
	r->what.matching.protocol_version = !text                      ? 0
					    : strcmp(text, "1.2") == 0 ? 0x0303
					    : strcmp(text, "1.3") == 0 ? 0x0304
								       : 0;
	return r->what.matching.protocol_version ? 0 : -1;
}

static int read_cipher(const json_t *value, struct input *r)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);
	const char *text = json_string_value(value);
	r->what.which = CONTROL_REVOKE_MATCHING;
	for (unsigned i = 0; text && i < count; i++)
		if (strcmp(suites[i].name, text) == 0)
			r->what.matching.cipher_suite = suites[i].id;
	return r->what.matching.cipher_suite ? 0 : -1;
}

static int read_seconds(const json_t *value, struct input *r, uint32_t *out)
{
	const double seconds = json_number_value(value); /* 0 if it is no number; 60.0 is an integer, too */
	r->what.which = CONTROL_REVOKE_MATCHING;
	if (!(seconds >= 1 && seconds <= SESSION_LIFETIME_MAX_S))
		return -1;
	*out = (uint32_t)seconds;
	return seconds == (double)*out ? 0 : -1;
}

static int read_min_age(const json_t *value, struct input *r)
{
	return read_seconds(value, r, &r->what.matching.min_age_s);
}

static int read_max_age(const json_t *value, struct input *r)
{
	return read_seconds(value, r, &r->what.matching.max_age_s);
}

static int read_certificate(const json_t *value, struct input *r)
{
	r->what.which = CONTROL_REVOKE_MATCHING;
	r->what.matching.client_certificate = r->client_certificate;
	return read_hex(value, r->client_certificate, CONTROL_CERTIFICATE_LEN);
}

static const struct member {
	const char *name;
	int (*read)(const json_t *value, struct input *r);
	const char *expected;
	enum { CRITERION, STANDS_ALONE } kind;
} members[] = {
	{ "session_id", read_session, "64 hexadecimal digits", STANDS_ALONE },
	{ "all", read_all, "true", STANDS_ALONE },
	{ "family_id", read_family, "32 hexadecimal digits", CRITERION },
	{ "server_name", read_server_name, "a name of 1 to 255 bytes", CRITERION },
	{ "client_address", read_client_address, "an IP address, and no member 'client'", CRITERION },
	{ "client", read_client, "an IP address or network, and no member 'client_address'", CRITERION },
	{ "version", read_version, "1.2 or 1.3", CRITERION },
	{ "cipher", read_cipher, "the name of a suite such as TLS_AES_128_GCM_SHA256", CRITERION },
	{ "min_age_s", read_min_age, "1 to 604800 seconds", CRITERION },
	{ "max_age_s", read_max_age, "1 to 604800 seconds", CRITERION },
	{ "client_certificate", read_certificate, "64 hexadecimal digits, its SHA-256", CRITERION },
};

static const struct member *member_find(const char *name)
{
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		if (strcmp(members[i].name, name) == 0)
			return &members[i];
	}
	return NULL;
}

static int member_read(struct exchange *e, const char *name, const json_t *value, size_t count, struct input *r)
{
	const struct member *m = member_find(name);
	if (!m) {
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", name);
		return -1;
	}
	if (m->kind == STANDS_ALONE && count > 1) {
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected no other member", m->name);
		return -1;
	}
	if (m->read(value, r) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected %s", m->name, m->expected);
	return -1;
}

static int read_body(struct exchange *e, struct input *r)
{
	const char *name;
	json_t *value;
	r->body = exchange_body(e);
	const size_t count = json_object_size(r->body);
	if (r->body && count == 0)
		exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected session_id, all, or criteria: family_id, server_name, client, version, cipher, "
			"min_age_s, max_age_s, client_certificate");
	json_object_foreach(r->body, name, value)
	{
		if (member_read(e, name, value, count, r) < 0)
			return 0;
	}
	if (count > 1)
		r->what.which = CONTROL_REVOKE_MATCHING;
	return count > 0;
}

HANDLE(revoke, read_body(e, &in), REQUEST_PLAIN, revoke(ctx, &in.what, r))
