/* records.c: readers of DNS records. libunbound has checked the form of the records and expanded compressed names. The
 * contents are checked here, because a zone may contain anything. */
#include "smtpproxy/dns/records.h"

#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"
#include "proto/wire.h"

/* Letters, digits, hyphens, and the underscore that some administrators use. */
static char host_letter(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + ('a' - 'A'));
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
		return (char)c;
	return '\0';
}

static int add_label(char *out, size_t *used, const uint8_t *label, size_t len)
{
	if (*used + len + 1 > DNS_NAME_MAX)
		return CSSL_E_RANGE;
	if (*used > 0)
		out[(*used)++] = '.';
	for (size_t i = 0; i < len; i++) {
		out[*used] = host_letter(label[i]);
		if (out[(*used)++] == '\0')
			return CSSL_E_RANGE;
	}
	return 0;
}

static int dns_read_name(struct wire_reader *r, char out[static DNS_NAME_TEXT])
{
	size_t used = 0;
	for (;;) {
		const size_t len = wire_u8(r);
		const uint8_t *label = wire_bytes(r, len);
		if (!label)
			return CSSL_E_TRUNCATED;
		if (len == 0)
			break;
		const int bad = add_label(out, &used, label, len);
		if (bad)
			return bad;
	}
	out[used] = '\0';
	return 0;
}

int dns_mx_read(struct dns_record r, struct dns_mx *out)
{
	struct wire_reader in = wire_reader(r.data, r.len);
	out->preference = wire_u16(&in);
	const int bad = dns_read_name(&in, out->host);
	return bad ? bad : wire_reader_end(&in);
}

int dns_address_read(struct dns_record r, enum dns_type type, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	memset(out, 0, sizeof *out);
	if (type == DNS_A && r.len == sizeof in->sin_addr) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, r.data, r.len);
		return 0;
	}
	if (type == DNS_AAAA && r.len == sizeof in6->sin6_addr) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, r.data, r.len);
		return 0;
	}
	return CSSL_E_RANGE;
}

int dns_tlsa_read(struct dns_record r, struct dns_tlsa *out)
{
	struct wire_reader in = wire_reader(r.data, r.len);
	out->usage = wire_u8(&in);
	out->selector = wire_u8(&in);
	out->matching = wire_u8(&in);
	out->len = wire_left(&in);
	out->data = wire_bytes(&in, out->len);
	return out->data && out->len > 0 ? 0 : CSSL_E_TRUNCATED;
}

bool dns_tlsa_is_usable(const struct dns_tlsa *t)
{
	static const size_t digest_len[] = { 0, 32, 64 }; /* by matching type: all of it, SHA-256, SHA-512 */
	if (t->usage != DNS_TLSA_DANE_TA && t->usage != DNS_TLSA_DANE_EE)
		return false;
	if (t->selector > 1 || t->matching >= sizeof digest_len / sizeof digest_len[0])
		return false;
	return t->matching == 0 || t->len == digest_len[t->matching];
}

/* Lists of servers: each record is put at a random place among those of its preference. */

/* The first place whose preference is not below @preference. */
static unsigned mx_place_of(const struct mx_list *l, uint32_t preference)
{
	unsigned at = 0;
	while (at < l->count && l->at[at].preference < preference)
		at++;
	return at;
}

static void mx_insert(struct mx_list *l, const struct dns_mx *one, uint32_t (*random)(uint32_t below))
{
	const unsigned first = mx_place_of(l, one->preference), behind = mx_place_of(l, (uint32_t)one->preference + 1);
	const unsigned at = first + random(behind - first + 1);
	if (at == MX_LIST_MAX)
		return;
	l->count -= l->count == MX_LIST_MAX;
	memmove(&l->at[at + 1], &l->at[at], (l->count - at) * sizeof l->at[0]);
	l->at[at] = *one;
	l->count++;
}

enum mx_verdict mx_list_read(struct mx_list *l, const struct dns_record *records, size_t count, const char *own,
	uint32_t (*random)(uint32_t below))
{
	uint32_t own_preference = UINT32_MAX;
	struct dns_mx one;
	l->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (dns_mx_read(records[i], &one) != 0)
			continue;
		if (one.host[0] == '\0' && count == 1)
			return MX_NULL;
		if (strcasecmp(one.host, own) == 0 && one.preference < own_preference)
			own_preference = one.preference;
		if (one.host[0] != '\0')
			mx_insert(l, &one, random);
	}
	if (l->count == 0)
		return MX_BROKEN;
	l->count = mx_place_of(l, own_preference);
	return l->count > 0 ? MX_HOSTS : MX_LOOP;
}
