/* control_answers.c: a NULL from jansson (out of memory, or a string that is no UTF-8) becomes 500 where the whole
 * answer is given to its request. */
#include "ragent/control/operations/control_answers.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "net/socket/address.h"
#include "proto/cipher_suite.h"
#include "proto/sess_obj.h"
#include "ragent/control/http/control_json.h"

static const char *version_name(uint32_t version)
{
	return version == 0x0304 ? "1.3" : "1.2";
}

static const char *suite_name(uint32_t id)
{
	const struct cipher_suite *suite = cipher_suite_find((uint16_t)id);
	return suite ? suite->name : NULL;
}

/* null if all bytes are 0, too. */
static json_t *hex_unless_zero_json(const uint8_t *bytes, size_t len)
{
	return hex_json(bytes, sodium_is_zero(bytes, len) ? 0 : len);
}

/* --- connections --- */

static json_t *address_json(const struct sockaddr_storage *a)
{
	char text[ADDRESS_TEXT_MAX];
	return a->ss_family == 0 ? json_null() : json_string(address_format((const struct sockaddr *)a, text));
}

static json_t *tls_json(const struct connection_description *c)
{
	if (c->protocol_version == 0)
		return json_null();
	return json_pack("{s:s, s:s?, s:b, s:o, s:o, s:o, s:o}", "version", version_name(c->protocol_version),
		"cipher_suite", suite_name(c->cipher_suite), "resumed", c->handshake == HANDSHAKE_RESUMED,
		"server_name", text_json(c->server_name), "alpn", text_json(c->alpn), "session_id",
		hex_json(c->session_id, c->session_id_len), "family_id",
		hex_unless_zero_json(c->family_id, sizeof c->family_id));
}

static json_t *history_json(const struct connection_description *c)
{
	json_t *out = json_array();
	for (size_t i = 0; i < c->history_count; i++) {
		const struct ownership_description *o = &c->history[i];
		out = array_append(out, json_pack("{s:s?, s:s, s:I, s:o, s:o}", "agent", o->agent, "cause", o->cause,
						"epoch", (json_int_t)o->epoch, "ago_ms", integer_json(o->ago_ms),
						"pause_us", integer_json(o->pause_us)));
	}
	return out;
}

json_t *connection_json(const struct connection_description *c)
{
	return json_pack("{s:o, s:o, s:o, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:I, s:I, s:o, s:o*}",
		"id", hex_json(c->id.bytes, sizeof c->id.bytes), "client", address_json(&c->client), "server",
		address_json(&c->server), "listener", c->listener, "state", c->state, "owner", c->owner,
		"handshake_agent", c->handshake_agent, "affinity_agent", c->affinity_agent, "preamble_agent",
		c->preamble_agent, "epoch", (json_int_t)c->epoch, "moves", (json_int_t)c->moves, "age_ms",
		integer_json(c->age_ms), "idle_ms", integer_json(c->idle_ms), "client_records",
		integer_json(c->client_records), "client_bytes", integer_json(c->client_bytes), "server_records",
		integer_json(c->server_records), "server_bytes", integer_json(c->server_bytes), "read_generation",
		(json_int_t)c->read_generation, "write_generation", (json_int_t)c->write_generation, "tls", tls_json(c),
		"history", c->history ? history_json(c) : NULL);
}

/* --- sessions --- */

static json_t *client_json(const ProtobufCBinaryData *a)
{
	char text[INET6_ADDRSTRLEN];
	if ((a->len != 4 && a->len != 16) || !inet_ntop(a->len == 4 ? AF_INET : AF_INET6, a->data, text, sizeof text))
		return json_null();
	return json_string(text);
}

/* Up to a NUL, if it has one. */
static json_t *name_json(const void *bytes, size_t len)
{
	len = len ? strnlen(bytes, len) : 0;
	return len ? bytes_json(bytes, len) : json_null();
}

bool session_is_whole(const Cssl__Session *s)
{
	return s->session_id.len == SESSION_ID_LEN && s->family_id.len == FAMILY_ID_LEN &&
	       s->server_name.len <= NAME_MAX_LEN && s->alpn.len <= NAME_MAX_LEN &&
	       (s->client_certificate.len == 0 || s->client_certificate.len == crypto_hash_sha256_BYTES);
}

json_t *session_json(const Cssl__Session *s, uint32_t hits, uint32_t expires_s)
{
	const ProtobufCBinaryData *certificate = &s->client_certificate;
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
		hex_json(s->session_id.data, SESSION_ID_LEN), "family_id",
		hex_unless_zero_json(s->family_id.data, FAMILY_ID_LEN), "server_name",
		name_json(s->server_name.data, s->server_name.len), "client", client_json(&s->client_address),
		"version", version_name(s->protocol_version), "cipher_suite", suite_name(s->cipher_suite), "alpn",
		name_json(s->alpn.data, s->alpn.len), "listener", name_json(s->listener, strlen(s->listener)), "origin",
		name_json(s->origin, strlen(s->origin)), "age_s", integer_json(s->age_s), "family_age_s",
		integer_json(s->family_age_s), "expires_s", integer_json(expires_s), "hits", integer_json(hits),
		"client_certificate",
		certificate->len ? hex_unless_zero_json(certificate->data, certificate->len) : json_null());
}

/* --- certificates --- */

json_t *certificate_json(const char *agent, const Cssl__LinkResponse__Counters__Certificate *c)
{
	json_t *hosts = json_array();
	const time_t end = c->not_after_s > 0 ? (time_t)c->not_after_s : 0, left_s = end - time(NULL);
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&end, &utc))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (size_t i = 0; i < c->n_host; i++)
		hosts = array_append(hosts, text_json(c->host[i]));
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:I}", "agent", agent, "name", text_json(c->name), "hosts",
		hosts, "file", text_json(c->file), "issuer", text_json(c->issuer), "not_after", text, "days_left",
		(json_int_t)(left_s / 86400 - (left_s % 86400 < 0)));
}
