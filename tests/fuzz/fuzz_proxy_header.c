/* fuzz_proxy_header.c: a header that parses can be written, and then parses to the same. */
#include <string.h>

#include "proto/proxy_header.h"
#include "tests/fuzz/must.h"

static void check_text(const void *a, size_t a_len, const void *b, size_t b_len)
{
	MUST(a_len == b_len && (a != NULL) == (b != NULL));
	MUST(!a || memcmp(a, b, a_len) == 0);
}

static void check_same(const struct proxy_header *a, const struct proxy_header *b)
{
	MUST(a->version == b->version && a->command == b->command && a->family == b->family);
	MUST(memcmp(a->source, b->source, sizeof(a->source)) == 0 && a->source_port == b->source_port);
	MUST(memcmp(a->destination, b->destination, sizeof(a->destination)) == 0);
	MUST(a->destination_port == b->destination_port && a->checksum == b->checksum);
	MUST(a->ssl_flags == b->ssl_flags && a->ssl_verify == b->ssl_verify);
	check_text(a->alpn, a->alpn_len, b->alpn, b->alpn_len);
	check_text(a->authority, a->authority_len, b->authority, b->authority_len);
	check_text(a->unique_id, a->unique_id_len, b->unique_id, b->unique_id_len);
	check_text(a->ssl_version, a->ssl_version_len, b->ssl_version, b->ssl_version_len);
	check_text(a->ssl_cipher, a->ssl_cipher_len, b->ssl_cipher, b->ssl_cipher_len);
	check_text(a->ssl_cn, a->ssl_cn_len, b->ssl_cn, b->ssl_cn_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t out[PROXY_V2_MAX];
	struct proxy_header first, second;
	size_t taken, taken_again;

	if (proxy_header_parse(in, len, &first, &taken) != 0)
		return 0;
	MUST(taken <= len && taken <= PROXY_V2_MAX);
	MUST(proxy_header_parse(in, taken - 1, &second, &taken_again) == PROXY_INCOMPLETE);

	ptrdiff_t written = proxy_header_write(&first, out, sizeof(out));
	MUST(written > 0);
	MUST(proxy_header_parse(out, (size_t)written, &second, &taken_again) == 0);
	MUST(taken_again == (size_t)written);
	check_same(&first, &second);
	return 0;
}
