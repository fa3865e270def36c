/* session_filter.c */
#include "sslagent/sessions/session_filter.h"

#include <ctype.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"
#include "proto/sess_obj.h"

#define PACKED_MAX 512u

static bool is_len(const ProtobufCBinaryData *d, size_t len)
{
	return d->len == 0 || d->len == len;
}

int session_filter_check(const Cssl__SessionFilter *f)
{
	if (!is_len(&f->session_id, SESSION_ID_LEN) || !is_len(&f->family_id, FAMILY_ID_LEN) ||
		!is_len(&f->client_certificate, CERTIFICATE_HASH_LEN) || f->protocol_version > UINT16_MAX ||
		f->cipher_suite > UINT16_MAX)
		return CSSL_E_RANGE;
	/* IPv4, IPv6 or none: a longer prefix would compare bytes behind the address */
	if ((!is_len(&f->client_address, 4) && f->client_address.len != 16) ||
		f->client_prefix > 8 * f->client_address.len)
		return CSSL_E_RANGE;
	if (f->server_name && strlen(f->server_name) > NAME_MAX_LEN)
		return CSSL_E_RANGE;
	return cssl__session_filter__get_packed_size(f) > PACKED_MAX ? CSSL_E_RANGE : 0;
}

static bool bits_match(const Cssl__SessionFilter *f, const struct client_address *a)
{
	const unsigned whole = f->client_prefix / 8, rest = f->client_prefix % 8;
	const uint8_t mask = (uint8_t)(0xff00u >> rest), *net = f->client_address.data;

	return a && f->client_address.len == a->len && memcmp(net, a->bytes, whole) == 0 &&
	       (rest == 0 || ((net[whole] ^ a->bytes[whole]) & mask) == 0);
}

static bool age_passes(const Cssl__SessionFilter *f, int64_t made_ms, int64_t at_ms)
{
	if (f->min_age_s == 0 && f->max_age_s == 0)
		return true;
	if (made_ms == AGE_UNKNOWN)
		return false;
	const uint64_t age_s = at_ms > made_ms ? (uint64_t)(at_ms - made_ms) / 1000 : 0;
	return age_s >= f->min_age_s && (f->max_age_s == 0 || age_s <= f->max_age_s);
}

static bool name_passes(const char *wanted, const char *name)
{
	return !wanted || !wanted[0] || (name && strcasecmp(wanted, name) == 0);
}

static bool bytes_pass(const ProtobufCBinaryData *wanted, const uint8_t *bytes)
{
	return wanted->len == 0 || (bytes && memcmp(wanted->data, bytes, wanted->len) == 0);
}

bool session_filter_passes(const Cssl__SessionFilter *f, const struct session_seen *s, int64_t at_ms)
{
	return (f->protocol_version == 0 || f->protocol_version == s->protocol_version) &&
	       (f->cipher_suite == 0 || f->cipher_suite == s->cipher_suite) && age_passes(f, s->made_ms, at_ms) &&
	       (f->client_address.len == 0 || bits_match(f, s->client)) &&
	       name_passes(f->server_name, s->server_name) && bytes_pass(&f->family_id, s->family_id) &&
	       bytes_pass(&f->client_certificate, s->client_certificate);
}

/* Upper and lower case are equal in DNS names (RFC 4343). */
Cssl__SessionFilter *session_filter_copy(const Cssl__SessionFilter *f)
{
	uint8_t packed[PACKED_MAX];
	Cssl__SessionFilter *copy = cssl__session_filter__unpack(NULL, cssl__session_filter__pack(f, packed), packed);

	for (char *c = copy ? copy->server_name : NULL; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

bool session_filter_equal(const Cssl__SessionFilter *a, const Cssl__SessionFilter *b)
{
	uint8_t packed_a[PACKED_MAX], packed_b[PACKED_MAX];
	const size_t len = cssl__session_filter__pack(a, packed_a);

	return cssl__session_filter__pack(b, packed_b) == len && memcmp(packed_a, packed_b, len) == 0;
}

void session_filter_hash(const uint8_t *der, size_t len, uint8_t out[static CERTIFICATE_HASH_LEN])
{
	crypto_hash_sha256(out, der, len);
}
