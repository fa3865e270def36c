/* proxy_header.c: chooses the version. A header is refused as soon as its first bytes fit neither version, so a client
 * without a header is refused at once. */
#include "proto/proxy_header.h"

#include <string.h>

#include "proto/error.h"
#include "proto/proxy_v1.h"
#include "proto/proxy_v2.h"

static const struct version {
	const char *magic;
	size_t magic_len;
	int (*parse)(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken);
	ptrdiff_t (*write)(const struct proxy_header *h, uint8_t *out, size_t cap);
} versions[] = {
	/* index: version - 1 */
	{ PROXY_V1_PREFIX, PROXY_V1_PREFIX_LEN, proxy_v1_parse, proxy_v1_write },
	{ PROXY_V2_SIGNATURE, PROXY_V2_SIGNATURE_LEN, proxy_v2_parse, proxy_v2_write },
};
#define VERSIONS (sizeof versions / sizeof versions[0])

int proxy_header_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken)
{
	*out = (struct proxy_header){ 0 };
	*taken = 0;
	if (len == 0)
		return PROXY_INCOMPLETE;
	for (size_t i = 0; i < VERSIONS; i++) {
		const struct version *v = &versions[i];
		if (memcmp(in, v->magic, len < v->magic_len ? len : v->magic_len) == 0)
			return len < v->magic_len ? PROXY_INCOMPLETE : v->parse(in, len, out, taken);
	}
	return CSSL_E_TYPE;
}

ptrdiff_t proxy_header_write(const struct proxy_header *h, uint8_t *out, size_t cap)
{
	if (h->version < 1 || h->version > VERSIONS)
		return CSSL_E_VERSION;
	return versions[h->version - 1].write(h, out, cap);
}
