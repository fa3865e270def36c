/* agent_identity.c: header lines in one buffer. A line that does not fit is left out. */
#include "bench/server/agent_identity.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "net/socket/address.h"
#include "proto/error.h"

int agent_map_add(struct agent_map *m, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t name_len = equals ? (size_t)(equals - text) : 0;
	if (name_len == 0 || name_len > AGENT_NAME_MAX || strcspn(text, "\r\n \t") < name_len)
		return CSSL_E_CONFIG;
	if (m->count == AGENT_MAP_MAX)
		return CSSL_E_FULL;
	if (address_parse_host(equals + 1, &m->rows[m->count].address))
		return CSSL_E_CONFIG;
	memcpy(m->rows[m->count].name, text, name_len);
	m->rows[m->count++].name[name_len] = 0;
	return 0;
}

static void add_line(struct agent_identity *id, const char *name, const char *value, size_t value_len)
{
	size_t name_len = strlen(name);
	if (id->len + name_len + 2 + value_len + 2 > sizeof id->lines)
		return;
	char *at = id->lines + id->len;
	memcpy(at, name, name_len);
	memcpy(at + name_len, ": ", 2);
	at += name_len + 2;
	for (size_t i = 0; i < value_len; i++)
		at[i] = value[i] >= 0x20 && value[i] < 0x7f ? value[i] : '?';
	memcpy(at + value_len, "\r\n", 2);
	id->len += name_len + 2 + value_len + 2;
}

void agent_identity_from_socket(struct agent_identity *id, const struct agent_map *m, const struct sockaddr *peer)
{
	uint8_t from[16], row[16];
	size_t from_len = address_bytes(peer, from);
	id->len = 0;
	if (from_len == 0)
		return;
	for (unsigned i = 0; i < m->count; i++) {
		size_t row_len = address_bytes((const struct sockaddr *)&m->rows[i].address, row);
		if (row_len == from_len && memcmp(row, from, row_len) == 0) {
			add_line(id, "X-CSSL-Agent", m->rows[i].name, strlen(m->rows[i].name));
			return;
		}
	}
}

static void add_client(struct agent_identity *id, const struct proxy_header *h)
{
	char host[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 10];
	bool v6 = h->family == PROXY_TCP6;
	if (!v6 && h->family != PROXY_TCP4)
		return;
	if (!inet_ntop(v6 ? AF_INET6 : AF_INET, h->source, host, sizeof host))
		return;
	int len = snprintf(text, sizeof text, v6 ? "[%s]:%u" : "%s:%u", host, h->source_port);
	add_line(id, "X-CSSL-Client", text, (size_t)len);
}

static void add_tls(struct agent_identity *id, const struct proxy_header *h)
{
	char text[512];
	const char *certificate = h->ssl_flags & PROXY_CERT_CONN   ? " certificate=connection"
				  : h->ssl_flags & PROXY_CERT_SESS ? " certificate=session"
								   : "";
	int len = snprintf(text, sizeof text, "%.*s %.*s%s%s%.*s", h->ssl_version_len,
		h->ssl_version ? h->ssl_version : "", h->ssl_cipher_len, h->ssl_cipher ? h->ssl_cipher : "",
		certificate, h->ssl_cn_len ? " cn=" : "", h->ssl_cn_len, h->ssl_cn ? h->ssl_cn : "");
	if (len > 0 && (size_t)len < sizeof text)
		add_line(id, "X-CSSL-TLS", text, (size_t)len);
}

static void add_connection(struct agent_identity *id, const struct proxy_header *h)
{
	char hex[PROXY_UNIQUE_ID_MAX * 2 + 1];
	if (h->unique_id_len > PROXY_UNIQUE_ID_MAX)
		return;
	for (size_t i = 0; i < h->unique_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", h->unique_id[i]);
	add_line(id, "X-CSSL-Connection", hex, 2u * h->unique_id_len);
}

void agent_identity_add_proxy(struct agent_identity *id, const struct proxy_header *h)
{
	if (h->command != PROXY_PROXIED)
		return;
	add_client(id, h);
	if (h->authority_len)
		add_line(id, "X-CSSL-SNI", h->authority, h->authority_len);
	if (h->alpn_len)
		add_line(id, "X-CSSL-ALPN", h->alpn, h->alpn_len);
	if (h->ssl_flags & PROXY_SSL)
		add_tls(id, h);
	if (h->unique_id_len)
		add_connection(id, h);
}
