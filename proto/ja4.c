/* ja4.c: counts, and hashes of sorted lists. client_hello.c has judged the hello before. Values of GREASE (RFC 8701),
 * which clients make up, are left out everywhere.
 */
#include "proto/ja4.h"

#include <ctype.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/wire.h"

#define LIST_MAX 512u /* no client has more values, and who makes them up shall not cost more */

enum extension { EXT_SERVER_NAME = 0, EXT_SIGNATURE_ALGORITHMS = 13, EXT_ALPN = 16, EXT_SUPPORTED_VERSIONS = 43 };

struct list {
	size_t count;
	uint16_t values[LIST_MAX];
};

static bool is_made_up(uint16_t value)
{
	return (value & 0x0f0f) == 0x0a0a && value >> 8 == (value & 0xff);
}

static void list_add(struct list *l, uint16_t value)
{
	if (!is_made_up(value) && l->count++ < LIST_MAX)
		l->values[l->count - 1] = value;
}

static int compare(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void hash_put(crypto_hash_sha256_state *s, const char *before, uint16_t value)
{
	char text[8];

	crypto_hash_sha256_update(s, (const uint8_t *)text, (size_t)sprintf(text, "%s%04x", before, value));
}

/* Of the list, sorted, and of values behind it as they are. Without a list the result stays zero. */
static void hash(struct list *l, struct wire_reader behind, uint8_t out[static 6])
{
	crypto_hash_sha256_state s;
	uint8_t whole[crypto_hash_sha256_BYTES];
	const char *before = "_";

	if (l->count == 0 || l->count > LIST_MAX || wire_left(&behind) > 2 * LIST_MAX)
		return;
	qsort(l->values, l->count, sizeof l->values[0], compare);
	crypto_hash_sha256_init(&s);
	for (size_t i = 0; i < l->count; i++)
		hash_put(&s, i ? "," : "", l->values[i]);
	while (wire_left(&behind) >= 2) {
		const uint16_t value = wire_u16(&behind);
		if (is_made_up(value))
			continue;
		hash_put(&s, before, value);
		before = ",";
	}
	crypto_hash_sha256_final(&s, whole);
	memcpy(out, whole, 6);
}

/* What the extensions say. */
struct said {
	unsigned count;
	uint16_t version; /* the highest; 0: none */
	const uint8_t *alpn;
	uint8_t alpn_len;
	struct wire_reader signatures;
};

/* @list: those without the two that stand in the first part. */
static void read_extensions(const struct client_hello *h, struct list *list, struct said *out)
{
	struct wire_reader r = wire_reader(h->extensions, h->extensions_len);

	while (wire_left(&r)) {
		const uint16_t type = wire_u16(&r);
		struct wire_reader body = wire_sub(&r, wire_u16(&r));
		out->count += !is_made_up(type);
		if (type != EXT_SERVER_NAME && type != EXT_ALPN)
			list_add(list, type);
		if (type == EXT_SIGNATURE_ALGORITHMS)
			out->signatures = wire_sub(&body, wire_u16(&body));
		if (type == EXT_SUPPORTED_VERSIONS)
			for (body = wire_sub(&body, wire_u8(&body)); wire_left(&body) >= 2;) {
				const uint16_t version = wire_u16(&body);
				if (!is_made_up(version) && version > out->version)
					out->version = version;
			}
		if (type == EXT_ALPN) {
			wire_u16(&body);
			out->alpn_len = wire_u8(&body);
			out->alpn = wire_bytes(&body, out->alpn_len);
		}
	}
}

void ja4_make(const struct client_hello *h, struct ja4 *out)
{
	static const char versions[][3] = { "s3", "10", "11", "12", "13" }, digits[] = "0123456789abcdef";
	struct list list;
	struct said said = { 0 };
	char kind[sizeof out->kind + 1];
	struct wire_reader r = wire_reader(h->suites, h->suites_len);

	*out = (struct ja4){ 0 };
	for (list.count = 0; wire_left(&r) >= 2;)
		list_add(&list, wire_u16(&r));
	const size_t ciphers = list.count;
	hash(&list, (struct wire_reader){ 0 }, out->ciphers);
	list.count = 0;
	read_extensions(h, &list, &said);
	hash(&list, said.signatures, out->extensions);
	const uint16_t version = said.version ? said.version : h->version;
	const bool has_alpn = said.alpn && said.alpn_len;
	const uint8_t first = has_alpn ? said.alpn[0] : '0', last = has_alpn ? said.alpn[said.alpn_len - 1] : '0';
	const bool plain = isalnum(first) && isalnum(last); /* else the name in hexadecimal counts */
	snprintf(kind, sizeof kind, "t%s%c%02zu%02u%c%c",
		version >= 0x0300 && version <= 0x0304 ? versions[version & 0xff] : "00", h->server_name ? 'd' : 'i',
		ciphers < 99 ? ciphers : 99, said.count < 99 ? said.count : 99, plain ? first : digits[first >> 4],
		plain ? last : digits[last & 0xf]);
	memcpy(out->kind, kind, sizeof out->kind);
	if (ciphers > LIST_MAX || list.count > LIST_MAX || wire_left(&said.signatures) > 2 * LIST_MAX)
		*out = (struct ja4){ 0 };
}

const char *ja4_text(const struct ja4 *j, char out[static JA4_TEXT_MAX])
{
	char ciphers[13], extensions[13];

	out[0] = '\0';
	if (j->kind[0])
		snprintf(out, JA4_TEXT_MAX, "%.10s_%s_%s", j->kind,
			sodium_bin2hex(ciphers, sizeof ciphers, j->ciphers, sizeof j->ciphers),
			sodium_bin2hex(extensions, sizeof extensions, j->extensions, sizeof j->extensions));
	return out;
}
