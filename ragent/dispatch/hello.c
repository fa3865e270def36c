/* hello.c: one of our session ids, a ticket, or any PSK is an offer to resume. */
#include "ragent/dispatch/hello.h"

#include "proto/client_hello.h"
#include "proto/error.h"
#include "proto/first_bytes.h"
#include "proto/tls_record.h"

static enum hello_offer offer_of(const struct client_hello *h, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN])
{
	if (h->flags & (CLIENT_HELLO_HAS_PSK | CLIENT_HELLO_HAS_TICKET))
		return HELLO_RESUMING;
	/* a fresh TLS 1.3 hello carries a random id: only the check tells whether it is one of ours */
	if (h->session_id_len && session_id_check(h->session_id, h->session_id_len, check_key, NULL) == 0)
		return HELLO_RESUMING;
	return HELLO_FULL;
}

/* 0 or CSSL_E_TOO_LONG, of the whole records in @data. */
static int watch(const uint8_t *data, size_t len)
{
	struct client_hello_watch w = { 0 };
	struct tls_record_header record;
	int r = 0;

	while (r == 0 && tls_record_scan(data, len, &record) == 0 && record.type == TLS_HANDSHAKE) {
		r = client_hello_watch(&w, data + TLS_RECORD_HEADER_LEN, record.length);
		data += TLS_RECORD_HEADER_LEN + record.length;
		len -= TLS_RECORD_HEADER_LEN + record.length;
	}
	return r;
}

int hello_look(const uint8_t *data, size_t len, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN],
	uint8_t *scratch, enum hello_offer *offer)
{
	enum first_bytes what = first_bytes_judge(data, len);
	struct tls_record_header first;
	struct client_hello hello;

	if (what == FIRST_BYTES_INCOMPLETE)
		return HELLO_INCOMPLETE;
	if (what != FIRST_BYTES_HANDSHAKE)
		return CSSL_E_TYPE;
	if (tls_record_scan(data, len, &first) == TLS_RECORD_INCOMPLETE)
		return HELLO_INCOMPLETE;
	if (watch(data, len) < 0)
		return CSSL_E_TOO_LONG;
	*offer = HELLO_FULL;
	int r = client_hello_scan(data, len, scratch, CLIENT_HELLO_MAX, &hello);
	if (r == 0)
		*offer = offer_of(&hello, check_key);
	return r == CLIENT_HELLO_INCOMPLETE && len < CLIENT_HELLO_MAX ? HELLO_INCOMPLETE : 0;
}
