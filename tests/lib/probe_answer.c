/* probe_answer.c */
#include "tests/lib/probe_answer.h"

#include <stdlib.h>
#include <string.h>

static void put(json_t *answer, const char *key, json_t *value)
{
	json_object_set_new(answer, key, value);
}

static void put_count(json_t *answer, const char *key, uint64_t value)
{
	put(answer, key, value == UINT64_MAX ? json_null() : json_integer((json_int_t)value));
}

static void put_text(json_t *answer, const char *key, const char *text)
{
	put(answer, key, text && text[0] ? json_string(text) : json_null());
}

json_t *answer_latin1(const uint8_t *data, size_t len)
{
	char *text = malloc(2 * len + 1), *out = text;

	for (size_t i = 0; i < len; i++) {
		if (data[i] >= 0x80)
			*out++ = (char)(0xc0 | data[i] >> 6);
		*out++ = (char)(data[i] < 0x80 ? data[i] : 0x80 | (data[i] & 0x3f));
	}
	json_t *j = json_stringn(text, (size_t)(out - text));
	free(text);
	return j;
}

static const char *tls_end(const struct probe *p)
{
	static const char *const names[] = { "open", "close_notify", "alert", "failed" };

	return p->tls ? names[memory_client_end(p->tls)] : "none";
}

const char *answer_end_word(const struct probe *p)
{
	if (p->tls && memory_client_alert(p->tls) > 0)
		return "alert";
	if (p->tls && memory_client_end(p->tls) != CLIENT_OPEN)
		return tls_end(p);
	return probe_tcp_name(p);
}

/* OpenSSL 3.0 has an underscore in one of the names, 3.5 in none. */
static void put_alert_name(json_t *answer, int alert)
{
	char name[64];

	snprintf(name, sizeof name, "%s", SSL_alert_desc_string_long(alert));
	for (char *at = name; *at; at++)
		if (*at == '_')
			*at = ' ';
	put_text(answer, "alert_name", name);
}

void answer_put_state(json_t *answer, const struct probe *p)
{
	int alert = p->tls ? memory_client_alert(p->tls) : -1;
	int is_alert = alert > 0; /* close_notify is 0, and has a word of its own */

	put_text(answer, "tcp", probe_tcp_name(p));
	put_text(answer, "tls", tls_end(p));
	put(answer, "alert", is_alert ? json_integer(alert) : json_null());
	if (is_alert)
		put_alert_name(answer, alert);
	else
		put(answer, "alert_name", json_null());
	put_count(answer, "wire_in", p->wire_in);
	put_count(answer, "wire_out", p->wire_out);
	put_count(answer, "records_in", p->records_in);
	put_count(answer, "unread", byte_queue_len(&p->in));
}

static const char *key_name(const X509 *certificate)
{
	EVP_PKEY *key = certificate ? X509_get0_pubkey(certificate) : NULL;

	return key ? OBJ_nid2sn(EVP_PKEY_get_base_id(key)) : NULL;
}

void answer_put_agreed(json_t *answer, SSL *ssl)
{
	const X509 *certificate = SSL_get0_peer_certificate(ssl);
	const unsigned char *alpn;
	unsigned alpn_len;
	char name[256] = "";

	SSL_get0_alpn_selected(ssl, &alpn, &alpn_len);
	if (certificate)
		X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
	int group = SSL_get_negotiated_group(ssl);
	put_text(answer, "version", SSL_get_version(ssl));
	put_text(answer, "suite", SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl)));
	put_text(answer, "group", group > 0 ? SSL_group_to_name(ssl, group) : NULL);
	put(answer, "alpn", alpn_len ? json_stringn((const char *)alpn, alpn_len) : json_null());
	put(answer, "reused", json_boolean(SSL_session_reused(ssl)));
	put_text(answer, "peer_name", name);
	put_text(answer, "peer_key", key_name(certificate));
	put(answer, "verify", json_integer(SSL_get_verify_result(ssl)));
	put_count(answer, "max_fragment", SSL_SESSION_get_max_fragment_length(SSL_get0_session(ssl)));
}

void answer_put_exchange(json_t *answer, const struct http_response *r)
{
	put_text(answer, "outcome", r->outcome);
	put_count(answer, "length", r->length);
	put_count(answer, "expected", r->expected);
	put_text(answer, "sha256", r->sha256);
	put_count(answer, "wrong_at", r->wrong_at);
	put_count(answer, "key_updates", r->key_updates);
	put_count(answer, "sent", r->sent);
}

void answer_put_head(json_t *answer, struct http_response *r)
{
	json_t *headers = json_object();
	char *at = r->head, *line = strsep(&at, "\n"); /* status line */

	while (at && (line = strsep(&at, "\n")) && line[0] != '\r') {
		char *value = strchr(line, ':');
		if (!value)
			continue;
		*value++ = '\0';
		for (char *k = line; *k; k++)
			*k = (char)(*k >= 'A' && *k <= 'Z' ? *k + 32 : *k);
		value += strspn(value, " ");
		value[strcspn(value, "\r")] = '\0';
		json_object_set_new(headers, line, json_string(value));
	}
	put(answer, "status", json_integer(r->status));
	put(answer, "headers", headers);
}
