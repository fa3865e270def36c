/* fuzz_client_hello.c: pointers stay inside, and it does not matter how a hello is cut into records. */
#include <string.h>

#include "proto/client_hello.h"
#include "proto/ja4.h"
#include "proto/tls_record.h"
#include "tests/fuzz/must.h"

#define CUT_MAX 8192u /* of hellos up to this length; each byte could become a record */

static void check_inside(const void *p, size_t len, const uint8_t *area, size_t area_len)
{
	if (p)
		MUST((const uint8_t *)p >= area && len <= area_len &&
			(const uint8_t *)p - area <= (ptrdiff_t)(area_len - len));
}

static void check_pointers(const struct client_hello *h, const uint8_t *area, size_t len)
{
	MUST(h->session_id && h->session_id_len <= 32);
	MUST((h->psk != NULL) == !!(h->flags & CLIENT_HELLO_HAS_PSK));
	check_inside(h->session_id, h->session_id_len, area, len);
	check_inside(h->psk, h->psk_len, area, len);
	check_inside(h->server_name, h->server_name_len, area, len);
	check_inside(h->suites, h->suites_len, area, len);
	check_inside(h->extensions, h->extensions_len, area, len);
}

/* The same for the same lists, wherever they are. */
static void check_ja4(const struct client_hello *a, const struct client_hello *b)
{
	char text[JA4_TEXT_MAX];
	struct ja4 one, other;

	ja4_make(a, &one);
	ja4_make(b, &other);
	MUST(memcmp(&one, &other, sizeof(one)) == 0);
	MUST(strlen(ja4_text(&one, text)) == (one.kind[0] ? JA4_TEXT_MAX - 1 : 0));
}

static void check_same(const struct client_hello *a, const struct client_hello *b)
{
	MUST(a->flags == b->flags && a->session_id_len == b->session_id_len && a->psk_len == b->psk_len);
	MUST((a->server_name != NULL) == (b->server_name != NULL) && a->server_name_len == b->server_name_len);
	MUST(memcmp(a->session_id, b->session_id, a->session_id_len) == 0);
	MUST(!a->psk || memcmp(a->psk, b->psk, a->psk_len) == 0);
	check_ja4(a, b);
	MUST(!a->server_name || memcmp(a->server_name, b->server_name, a->server_name_len) == 0);
}

/* The one record at @in as records of @part bytes. */
static size_t cut(const uint8_t *in, size_t length, size_t part, uint8_t *out)
{
	size_t written = 0;
	for (size_t at = 0; at < length; at += part) {
		size_t here = length - at < part ? length - at : part;
		tls_record_header_write(out + written, TLS_HANDSHAKE, TLS12_VERSION_WIRE, (uint16_t)here);
		memcpy(out + written + TLS_RECORD_HEADER_LEN, in + TLS_RECORD_HEADER_LEN + at, here);
		written += TLS_RECORD_HEADER_LEN + here;
	}
	return written;
}

static void check_cut(const uint8_t *in, size_t length, const struct client_hello *whole)
{
	static uint8_t cuts[CUT_MAX * (TLS_RECORD_HEADER_LEN + 1)], scratch[CLIENT_HELLO_MAX];
	struct client_hello h;
	if (length > CUT_MAX)
		return;
	size_t part = 1 + in[length] % 64;
	size_t len = cut(in, length, part, cuts);
	MUST(client_hello_scan(cuts, len - 1, scratch, sizeof(scratch), &h) == CLIENT_HELLO_INCOMPLETE);
	MUST(client_hello_scan(cuts, len, scratch, sizeof(scratch), &h) == 0);
	check_same(whole, &h);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static uint8_t scratch[CLIENT_HELLO_MAX];
	struct client_hello h;
	struct tls_record_header first;

	if (client_hello_scan(in, len, scratch, sizeof(scratch), &h) != 0)
		return 0;
	MUST(tls_record_scan(in, len, &first) == 0);
	if (h.session_id >= in && h.session_id < in + len) {
		check_pointers(&h, in, len);
		check_cut(in, first.length, &h);
	} else {
		check_pointers(&h, scratch, sizeof(scratch));
	}
	return 0;
}
