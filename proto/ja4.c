/* ja4.c: counts, and hashes of sorted lists. client_hello.c has judged the hello before. Values of GREASE (RFC 8701),
 * which clients make up, are left out everywhere.
 */
#include "proto/ja4.h"

#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/wire.h"

#define LIST_MAX 256u /* a hello of 32 KiB could have 16,000 values */

enum extension { EXT_SERVER_NAME = 0, EXT_SIGNATURE_ALGORITHMS = 13, EXT_ALPN = 16, EXT_SUPPORTED_VERSIONS = 43 };

/* HASHED: the extensions without the two that stand in the first part. */
enum list_name { CIPHERS, EXTENSIONS, HASHED, SIGNATURES, VERSIONS, LISTS };

struct list {
	uint16_t values[LIST_MAX];
	size_t count; /* above LIST_MAX: too many */
};

static void add(struct list *l, uint16_t value)
{
	if ((value & 0x0f0f) == 0x0a0a && value >> 8 == (value & 0xff))
		return;
	if (l->count++ < LIST_MAX)
		l->values[l->count - 1] = value;
}

static void add_all(struct list *l, struct wire_reader r)
{
	while (wire_left(&r) >= 2)
		add(l, wire_u16(&r));
}

static int compare(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Of the list, sorted, and of another one as it is. Without values the result stays zero. */
static void hash(struct list *l, const struct list *behind, uint8_t out[static 6])
{
	char text[2 * LIST_MAX * sizeof ",0000"] = "";
	uint8_t whole[crypto_hash_sha256_BYTES];
	size_t len = 0;

	if (l->count == 0)
		return;
	qsort(l->values, l->count, sizeof l->values[0], compare);
	for (size_t i = 0; i < l->count; i++)
		len += (size_t)sprintf(text + len, ",%04x", l->values[i]);
	for (size_t i = 0; behind && i < behind->count; i++)
		len += (size_t)sprintf(text + len, "%c%04x", i ? ',' : '_', behind->values[i]);
	crypto_hash_sha256(whole, (const uint8_t *)text + 1, len - 1);
	memcpy(out, whole, 6);
}

/* Returns the first protocol of ALPN; NULL: there is none. */
static const uint8_t *read_extensions(const struct client_hello *h, struct list lists[static LISTS], uint8_t *alpn_len)
{
	struct wire_reader r = wire_reader(h->extensions, h->extensions_len);
	const uint8_t *alpn = NULL;

	while (wire_left(&r)) {
		const uint16_t type = wire_u16(&r);
		struct wire_reader body = wire_sub(&r, wire_u16(&r));
		add(&lists[EXTENSIONS], type);
		if (type != EXT_SERVER_NAME && type != EXT_ALPN)
			add(&lists[HASHED], type);
		if (type == EXT_SIGNATURE_ALGORITHMS)
			add_all(&lists[SIGNATURES], wire_sub(&body, wire_u16(&body)));
		if (type == EXT_SUPPORTED_VERSIONS)
			add_all(&lists[VERSIONS], wire_sub(&body, wire_u8(&body)));
		if (type == EXT_ALPN) {
			wire_u16(&body);
			*alpn_len = wire_u8(&body);
			alpn = wire_bytes(&body, *alpn_len);
		}
	}
	return *alpn_len ? alpn : NULL;
}

void ja4_make(const struct client_hello *h, struct ja4 *out)
{
	static const char versions[][3] = { "s3", "10", "11", "12", "13" }, digits[] = "0123456789abcdef";
	struct list lists[LISTS] = { 0 };
	uint8_t alpn_len = 0;
	unsigned shown[LISTS];
	char kind[sizeof out->kind + 1];

	*out = (struct ja4){ 0 };
	add_all(&lists[CIPHERS], wire_reader(h->suites, h->suites_len));
	const uint8_t *alpn = read_extensions(h, lists, &alpn_len);
	for (unsigned i = 0; i < LISTS; i++) {
		if (lists[i].count > LIST_MAX)
			return;
		shown[i] = lists[i].count < 99 ? (unsigned)lists[i].count : 99;
	}
	uint16_t version = lists[VERSIONS].count ? 0 : h->version;
	for (size_t i = 0; i < lists[VERSIONS].count; i++)
		version = lists[VERSIONS].values[i] > version ? lists[VERSIONS].values[i] : version;
	const uint8_t first = alpn ? alpn[0] : '0', last = alpn ? alpn[alpn_len - 1] : '0';
	const int plain = isalnum(first) && isalnum(last); /* else the name in hexadecimal counts */
	snprintf(kind, sizeof kind, "t%s%c%02u%02u%c%c",
		version >= 0x0300 && version <= 0x0304 ? versions[version & 0xff] : "00", h->server_name ? 'd' : 'i',
		shown[CIPHERS], shown[EXTENSIONS], plain ? first : digits[first >> 4],
		plain ? last : digits[last & 0xf]);
	memcpy(out->kind, kind, sizeof out->kind);
	hash(&lists[CIPHERS], NULL, out->ciphers);
	hash(&lists[HASHED], &lists[SIGNATURES], out->extensions);
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
