/* session_filter.c */
#include "sslagent/sessions/session_filter.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"

static int bits_match(const struct address_net *net, const struct client_address *a)
{
	const unsigned whole = net->prefix / 8, rest = net->prefix % 8;
	const uint8_t mask = (uint8_t)(0xff00u >> rest);

	return a && net->len == a->len && memcmp(net->bytes, a->bytes, whole) == 0 &&
	       (rest == 0 || ((net->bytes[whole] ^ a->bytes[whole]) & mask) == 0);
}

static int age_passes(const struct session_filter *f, int64_t age_ms)
{
	const uint64_t age_s = age_ms > 0 ? (uint64_t)age_ms / 1000 : 0;

	if (f->min_age_s == 0 && f->max_age_s == 0)
		return 1;
	return age_ms != AGE_UNKNOWN && age_s >= f->min_age_s && (f->max_age_s == 0 || age_s <= f->max_age_s);
}

static int name_passes(const char *wanted, const char *name)
{
	return !wanted || (name && strcasecmp(wanted, name) == 0);
}

static int bytes_pass(const uint8_t *wanted, const uint8_t *bytes, size_t len)
{
	return !wanted || (bytes && memcmp(wanted, bytes, len) == 0);
}

int session_filter_passes(const struct session_filter *f, const struct session_seen *s)
{
	return (f->protocol_version == 0 || f->protocol_version == s->protocol_version) &&
	       (f->cipher_suite == 0 || f->cipher_suite == s->cipher_suite) && age_passes(f, s->age_ms) &&
	       (f->client.len == 0 || bits_match(&f->client, s->client)) &&
	       name_passes(f->server_name, s->server_name) && bytes_pass(f->family_id, s->family_id, FAMILY_ID_LEN) &&
	       bytes_pass(f->client_certificate, s->client_certificate, CERTIFICATE_HASH_LEN);
}

/* --- as a message --- */

static int is_len(const ProtobufCBinaryData *d, size_t len)
{
	return d->len == 0 || d->len == len;
}

int session_filter_read(const Cssl__SessionFilter *m, struct session_filter *out)
{
	struct address_net *net = &out->client;

	*out = (struct session_filter){ 0 };
	if (!is_len(&m->session_id, SESSION_ID_LEN) || !is_len(&m->family_id, FAMILY_ID_LEN) ||
		!is_len(&m->client_certificate, CERTIFICATE_HASH_LEN) || m->protocol_version > UINT16_MAX ||
		m->cipher_suite > UINT16_MAX)
		return CSSL_E_RANGE;
	if ((!is_len(&m->client_address, 4) && m->client_address.len != 16) ||
		m->client_prefix > 8 * m->client_address.len)
		return CSSL_E_RANGE;
	*out = (struct session_filter){ .session_id = m->session_id.len ? m->session_id.data : NULL,
		.server_name = m->server_name[0] ? m->server_name : NULL,
		.protocol_version = (uint16_t)m->protocol_version,
		.cipher_suite = (uint16_t)m->cipher_suite,
		.min_age_s = m->min_age_s,
		.max_age_s = m->max_age_s,
		.family_id = m->family_id.len ? m->family_id.data : NULL,
		.client_certificate = m->client_certificate.len ? m->client_certificate.data : NULL };
	net->len = (uint8_t)m->client_address.len;
	net->prefix = (uint8_t)m->client_prefix;
	if (net->len)
		memcpy(net->bytes, m->client_address.data, net->len);
	return 0;
}

static ProtobufCBinaryData bytes_of(const uint8_t *bytes, size_t len)
{
	return (ProtobufCBinaryData){ bytes ? len : 0, (uint8_t *)bytes };
}

void session_filter_write(const struct session_filter *f, Cssl__SessionFilter *out)
{
	cssl__session_filter__init(out);
	out->session_id = bytes_of(f->session_id, SESSION_ID_LEN);
	out->family_id = bytes_of(f->family_id, FAMILY_ID_LEN);
	out->client_certificate = bytes_of(f->client_certificate, CERTIFICATE_HASH_LEN);
	out->client_address = bytes_of(f->client.len ? f->client.bytes : NULL, f->client.len);
	out->client_prefix = f->client.prefix;
	if (f->server_name)
		out->server_name = (char *)f->server_name;
	out->protocol_version = f->protocol_version;
	out->cipher_suite = f->cipher_suite;
	out->min_age_s = f->min_age_s;
	out->max_age_s = f->max_age_s;
}

/* --- kept --- */

static const uint8_t *keep_bytes(uint8_t *to, const uint8_t *from, size_t len)
{
	if (from)
		memcpy(to, from, len);
	return from ? to : NULL;
}

static int says_nothing(const struct session_filter *f)
{
	return !f->session_id && !f->server_name && f->client.len == 0 && f->protocol_version == 0 &&
	       f->cipher_suite == 0 && f->min_age_s == 0 && f->max_age_s == 0 && !f->family_id &&
	       !f->client_certificate;
}

int session_filter_keep(struct session_filter_kept *out, const struct session_filter *f)
{
	if (says_nothing(f) || (f->server_name && strlen(f->server_name) > NAME_MAX_LEN))
		return CSSL_E_RANGE;
	*out = (struct session_filter_kept){ .filter = *f };
	if (f->server_name) {
		memcpy(out->server_name, f->server_name, strlen(f->server_name));
		out->filter.server_name = out->server_name;
	}
	out->filter.session_id = keep_bytes(out->session_id, f->session_id, SESSION_ID_LEN);
	out->filter.family_id = keep_bytes(out->family_id, f->family_id, FAMILY_ID_LEN);
	out->filter.client_certificate =
		keep_bytes(out->client_certificate, f->client_certificate, CERTIFICATE_HASH_LEN);
	return 0;
}

static int bytes_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	return a && b ? memcmp(a, b, len) == 0 : a == b;
}

int session_filter_equal(const struct session_filter *a, const struct session_filter *b)
{
	const char *name = a->server_name, *other = b->server_name;

	return a->protocol_version == b->protocol_version && a->cipher_suite == b->cipher_suite &&
	       a->min_age_s == b->min_age_s && a->max_age_s == b->max_age_s && a->client.len == b->client.len &&
	       a->client.prefix == b->client.prefix && memcmp(a->client.bytes, b->client.bytes, a->client.len) == 0 &&
	       (name && other ? strcasecmp(name, other) == 0 : name == other) &&
	       bytes_equal(a->session_id, b->session_id, SESSION_ID_LEN) &&
	       bytes_equal(a->family_id, b->family_id, FAMILY_ID_LEN) &&
	       bytes_equal(a->client_certificate, b->client_certificate, CERTIFICATE_HASH_LEN);
}

void certificate_hash(const uint8_t *der, size_t len, uint8_t out[static CERTIFICATE_HASH_LEN])
{
	crypto_hash_sha256(out, der, len);
}
