/* client_hello.c: first finds the hello (in place if one record holds it, else gathered in the caller's scratch),
 * then reads its fields. Every length is checked to the last byte, although only a few extensions are read: a hello
 * that OpenSSL would refuse must not have an effect here. */
#include "proto/client_hello.h"

#include <string.h>

#include "proto/error.h"
#include "proto/tls_record.h"
#include "proto/wire.h"

#define HANDSHAKE_HEADER_LEN   4u
#define HANDSHAKE_CLIENT_HELLO 1u
#define RANDOM_LEN             32u
#define LEGACY_SESSION_ID_MAX  32u
#define BINDER_MIN             32u

enum extension {
	EXT_SERVER_NAME = 0,
	EXT_SESSION_TICKET = 35,
	EXT_PRE_SHARED_KEY = 41,
	EXT_SUPPORTED_VERSIONS = 43,
};

/* RFC 6066 3: a list that is not empty, of names of which only type 0 (host_name) is defined. */
static int read_server_name(struct wire_reader *ext, struct client_hello *out)
{
	struct wire_reader list = wire_sub(ext, wire_u16(ext));
	if (!wire_left(&list))
		return CSSL_E_TRUNCATED;
	while (wire_left(&list)) {
		uint8_t type = wire_u8(&list);
		uint16_t len = wire_u16(&list);
		const uint8_t *name = wire_bytes(&list, len);
		if (!name)
			return CSSL_E_TRUNCATED;
		if (type != 0 || out->server_name)
			continue;
		if (len == 0 || len > HOST_NAME_MAX_LEN || memchr(name, 0, len))
			return CSSL_E_RANGE;
		out->server_name = (const char *)name;
		out->server_name_len = len;
	}
	return wire_reader_end(&list);
}

/* RFC 5077 3.2: the whole body of the extension is the ticket. */
static int read_session_ticket(struct wire_reader *ext, struct client_hello *out)
{
	size_t len = wire_left(ext);
	out->flags |= CLIENT_HELLO_HAS_TICKET_EXT | (len ? CLIENT_HELLO_HAS_TICKET : 0);
	wire_bytes(ext, len);
	return 0;
}

/* RFC 8446 4.2.11: identities and as many binders. */
static int read_pre_shared_key(struct wire_reader *ext, struct client_hello *out)
{
	struct wire_reader identities = wire_sub(ext, wire_u16(ext));
	struct wire_reader binders = wire_sub(ext, wire_u16(ext));
	unsigned offered = 0, bound = 0;

	for (; wire_left(&identities); offered++) {
		uint16_t len = wire_u16(&identities);
		const uint8_t *identity = wire_bytes(&identities, len);
		wire_u32(&identities);
		if (len == 0)
			return CSSL_E_RANGE;
		if (offered > 0)
			continue;
		out->psk = identity;
		out->psk_len = len;
	}
	for (; wire_left(&binders); bound++) {
		uint8_t len = wire_u8(&binders);
		if (len < BINDER_MIN)
			return CSSL_E_RANGE;
		wire_bytes(&binders, len);
	}
	if (wire_reader_end(&identities) < 0 || wire_reader_end(&binders) < 0)
		return CSSL_E_TRUNCATED;
	if (offered == 0 || offered != bound)
		return CSSL_E_RANGE;
	out->flags |= CLIENT_HELLO_HAS_PSK;
	return 0;
}

/* RFC 8446 4.2.1 */
static int read_supported_versions(struct wire_reader *ext, struct client_hello *out)
{
	struct wire_reader list = wire_sub(ext, wire_u8(ext));
	if (!wire_left(&list))
		return CSSL_E_TRUNCATED;
	while (wire_left(&list)) {
		if (wire_u16(&list) == TLS13_VERSION_WIRE)
			out->flags |= CLIENT_HELLO_OFFERS_TLS13;
	}
	return wire_reader_end(&list);
}

static const struct extension_reader {
	uint16_t type;
	int (*read)(struct wire_reader *ext, struct client_hello *out);
} readers[] = {
	{ EXT_SERVER_NAME, read_server_name },
	{ EXT_SESSION_TICKET, read_session_ticket },
	{ EXT_PRE_SHARED_KEY, read_pre_shared_key },
	{ EXT_SUPPORTED_VERSIONS, read_supported_versions },
};
#define READERS (sizeof readers / sizeof readers[0])

/* One extension. @seen has a bit for each reader, because none may come twice (RFC 8446 4.2). */
static int read_extension(uint16_t type, struct wire_reader *ext, unsigned *seen, struct client_hello *out)
{
	for (unsigned i = 0; i < READERS; i++) {
		if (readers[i].type != type)
			continue;
		if (*seen & 1u << i)
			return CSSL_E_RANGE;
		*seen |= 1u << i;
		int r = readers[i].read(ext, out);
		return r < 0 ? r : wire_reader_end(ext);
	}
	return 0;
}

static int read_extensions(struct wire_reader *list, struct client_hello *out)
{
	unsigned seen = 0;
	while (wire_left(list)) {
		/* The binders cover all that comes before them, so nothing may come after (RFC 8446 4.2.11). */
		if (out->flags & CLIENT_HELLO_HAS_PSK)
			return CSSL_E_RANGE;
		uint16_t type = wire_u16(list);
		struct wire_reader ext = wire_sub(list, wire_u16(list));
		if (!list->at)
			return CSSL_E_TRUNCATED;
		int r = read_extension(type, &ext, &seen, out);
		if (r < 0)
			return r;
	}
	return wire_reader_end(list);
}

static int read_hello(const uint8_t *body, size_t len, struct client_hello *out)
{
	struct wire_reader r = wire_reader(body, len);
	out->version = wire_u16(&r);
	wire_bytes(&r, RANDOM_LEN);
	out->session_id_len = wire_u8(&r);
	out->session_id = wire_bytes(&r, out->session_id_len);
	struct wire_reader suites = wire_sub(&r, wire_u16(&r));
	struct wire_reader compressions = wire_sub(&r, wire_u8(&r));
	if (!r.at)
		return CSSL_E_TRUNCATED;
	if (out->version >> 8 != TLS12_VERSION_WIRE >> 8)
		return CSSL_E_VERSION;
	if (out->session_id_len > LEGACY_SESSION_ID_MAX || !wire_left(&suites) || wire_left(&suites) % 2 ||
		!wire_left(&compressions))
		return CSSL_E_RANGE;
	out->suites = suites.at;
	out->suites_len = (uint16_t)wire_left(&suites);
	if (!wire_left(&r))
		return 0; /* TLS 1.2 may come without extensions (RFC 5246 7.4.1.2) */
	struct wire_reader extensions = wire_sub(&r, wire_u16(&r));
	int e = wire_reader_end(&r);
	out->extensions = extensions.at;
	out->extensions_len = (uint16_t)wire_left(&extensions);
	return e < 0 ? e : read_extensions(&extensions, out);
}

/* The handshake message, as far as its records have come; never empty. */
struct message {
	const uint8_t *at;
	size_t have;
};

/* 0: exactly one ClientHello. CLIENT_HELLO_INCOMPLETE: the beginning of one. Or negative. */
static int message_check(const struct message *m)
{
	if (m->at[0] != HANDSHAKE_CLIENT_HELLO)
		return CSSL_E_TYPE;
	if (m->have < HANDSHAKE_HEADER_LEN)
		return CLIENT_HELLO_INCOMPLETE;
	struct wire_reader r = wire_reader(m->at, HANDSHAKE_HEADER_LEN);
	wire_u8(&r);
	size_t whole = HANDSHAKE_HEADER_LEN + wire_u24(&r);
	if (whole > CLIENT_HELLO_MAX)
		return CSSL_E_TOO_LONG;
	/* The client sends nothing more before it gets an answer. */
	if (m->have > whole)
		return CSSL_E_TRAILING;
	return m->have < whole ? CLIENT_HELLO_INCOMPLETE : 0;
}

/* A complete record at the head of @in that may carry a part of a hello. 0, CLIENT_HELLO_INCOMPLETE or negative. */
static int scan_part(const uint8_t *in, size_t len, struct tls_record_header *part)
{
	int r = tls_record_scan(in, len, part);
	if (r < 0)
		return r;
	if (part->type != 0 && part->type != TLS_HANDSHAKE)
		return CSSL_E_TYPE;
	if (part->length > TLS_PLAINTEXT_MAX)
		return CSSL_E_TOO_LONG;
	/* Handshake records are never empty (RFC 8446 5.1). */
	if (part->type != 0 && part->length == 0)
		return CSSL_E_RANGE;
	return r == TLS_RECORD_INCOMPLETE ? CLIENT_HELLO_INCOMPLETE : 0;
}

/* Find the message of which the first record holds only a part. */
static int hello_gather(const uint8_t *in, size_t len, uint8_t *scratch, size_t scratch_len, struct message *m)
{
	struct wire_writer w = wire_writer(scratch, scratch_len);
	struct tls_record_header part;
	int r;

	do {
		r = scan_part(in, len, &part);
		if (r != 0)
			return r;
		wire_put_bytes(&w, in + TLS_RECORD_HEADER_LEN, part.length);
		ptrdiff_t have = wire_writer_len(&w);
		if (have < 0)
			return (int)have;
		*m = (struct message){ .at = scratch, .have = (size_t)have };
		in += TLS_RECORD_HEADER_LEN + part.length;
		len -= TLS_RECORD_HEADER_LEN + part.length;
		r = message_check(m);
	} while (r == CLIENT_HELLO_INCOMPLETE);
	return r;
}

int client_hello_read(const uint8_t *message, size_t len, struct client_hello *out)
{
	const struct message m = { .at = message, .have = len };

	*out = (struct client_hello){ 0 };
	int r = len == 0 ? CSSL_E_TRUNCATED : message_check(&m);
	if (r == 0)
		r = read_hello(message + HANDSHAKE_HEADER_LEN, len - HANDSHAKE_HEADER_LEN, out);
	if (r != 0)
		*out = (struct client_hello){ 0 };
	return r == CLIENT_HELLO_INCOMPLETE ? CSSL_E_TRUNCATED : r;
}

int client_hello_scan(const uint8_t *in, size_t len, uint8_t *scratch, size_t scratch_len, struct client_hello *out)
{
	struct tls_record_header first;

	*out = (struct client_hello){ 0 };
	int r = scan_part(in, len, &first);
	if (r != 0)
		return r;
	struct message m = { .at = in + TLS_RECORD_HEADER_LEN, .have = first.length };
	r = message_check(&m);
	if (r == CLIENT_HELLO_INCOMPLETE)
		r = hello_gather(in, len, scratch, scratch_len, &m);
	if (r != 0)
		return r;
	return client_hello_read(m.at, m.have, out);
}

void host_name_normalize(const char *name, size_t len, char out[static HOST_NAME_MAX_LEN + 1])
{
	out[0] = '\0';
	if (len > 0 && name[len - 1] == '.')
		len--;
	if (len > HOST_NAME_MAX_LEN || memchr(name, '\0', len))
		return;
	for (size_t i = 0; i < len; i++)
		out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
	out[len] = '\0';
}

/* --- the watch --- */

enum watch_state { WATCH_HELLOS, WATCH_ENDED };

/* The header of the next message, as far as it has come. Returns the bytes used. */
static size_t watch_head(struct client_hello_watch *w, const uint8_t *at, size_t len)
{
	const size_t want = HANDSHAKE_HEADER_LEN - w->head_len;
	const size_t n = len < want ? len : want;

	memcpy(w->head + w->head_len, at, n);
	w->head_len += (uint8_t)n;
	if (w->head[0] != HANDSHAKE_CLIENT_HELLO)
		w->state = WATCH_ENDED;
	if (w->head_len == HANDSHAKE_HEADER_LEN) {
		struct wire_reader r = wire_reader(w->head + 1, HANDSHAKE_HEADER_LEN - 1);
		w->left = wire_u24(&r);
	}
	return n;
}

int client_hello_watch(struct client_hello_watch *w, const uint8_t *payload, size_t len)
{
	while (len > 0 && w->state == WATCH_HELLOS) {
		size_t n = w->left < len ? w->left : len;
		if (w->head_len < HANDSHAKE_HEADER_LEN)
			n = watch_head(w, payload, len);
		else
			w->left -= (uint32_t)n;
		if (w->state == WATCH_HELLOS && HANDSHAKE_HEADER_LEN + w->left > CLIENT_HELLO_MAX)
			return CSSL_E_TOO_LONG;
		if (w->head_len == HANDSHAKE_HEADER_LEN && w->left == 0)
			w->head_len = 0; /* behind a HelloRetryRequest there is a second one */
		payload += n;
		len -= n;
	}
	return 0;
}

void client_hello_watch_end(struct client_hello_watch *w)
{
	w->state = WATCH_ENDED;
}
