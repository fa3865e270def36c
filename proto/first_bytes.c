/* first_bytes.c: a table of the first bytes of texts, the header of a record, and a table of answers. */
#include "proto/first_bytes.h"

#include <string.h>

#include "proto/error.h"
#include "proto/tls_record.h"

#define TEXT(bytes) bytes, sizeof bytes - 1

static const struct {
	const char *text;
	size_t len;
	enum first_bytes what;
} beginnings[] = {
	{ TEXT("GET "), FIRST_BYTES_HTTP },
	{ TEXT("HEAD "), FIRST_BYTES_HTTP },
	{ TEXT("POST "), FIRST_BYTES_HTTP },
	{ TEXT("PUT "), FIRST_BYTES_HTTP },
	{ TEXT("PATCH "), FIRST_BYTES_HTTP },
	{ TEXT("DELETE "), FIRST_BYTES_HTTP },
	{ TEXT("OPTIONS "), FIRST_BYTES_HTTP },
	{ TEXT("CONNECT "), FIRST_BYTES_HTTP },
	{ TEXT("TRACE "), FIRST_BYTES_HTTP },
	{ TEXT("PRI * HTTP/2"), FIRST_BYTES_HTTP }, /* RFC 9113 3.4 */
	{ TEXT("PROXY "), FIRST_BYTES_PROXY },
	{ TEXT("\r\n\r\n\0\r\nQUIT\n"), FIRST_BYTES_PROXY },
};

#define ALERT(description) "\x15\x03\x03\x00\x02\x02" description /* fatal, in the clear */
#define HTTP_SENTENCE      "This port takes TLS only, and the request came without. Ask again with https://.\n"
#define HTTP_ANSWER                                                                                                    \
	"HTTP/1.1 400 Bad Request\r\n"                                                                                 \
	"Content-Type: text/plain; charset=utf-8\r\n"                                                                  \
	"Content-Length: 81\r\n"                                                                                       \
	"Connection: close\r\n"                                                                                        \
	"\r\n" HTTP_SENTENCE
_Static_assert(sizeof HTTP_SENTENCE - 1 == 81, "Content-Length");

static const struct {
	const char *answer; /* NULL: none */
	size_t len;
	enum end_reason reason;
} answers[FIRST_BYTES_COUNT] = {
	[FIRST_BYTES_INCOMPLETE] = { NULL, 0, END_NOT_TLS },
	[FIRST_BYTES_HANDSHAKE] = { NULL, 0, END_NOT_TLS },
	[FIRST_BYTES_HTTP] = { TEXT(HTTP_ANSWER), END_PLAIN_HTTP },
	/* behind it usually comes the hello of a client, which a balancer passes on */
	[FIRST_BYTES_PROXY] = { TEXT(ALERT("\x0a")), END_PROXY_HEADER_UNEXPECTED }, /* unexpected_message */
	[FIRST_BYTES_SSLV2] = { TEXT(ALERT("\x46")), END_NOT_TLS },                 /* protocol_version, RFC 8446 D.5 */
	[FIRST_BYTES_OTHER_RECORD] = { TEXT(ALERT("\x0a")), END_NOT_TLS },          /* unexpected_message */
	[FIRST_BYTES_BAD_VERSION] = { TEXT(ALERT("\x46")), END_NOT_TLS },           /* protocol_version */
	[FIRST_BYTES_TOO_LONG] = { TEXT(ALERT("\x16")), END_NOT_TLS },              /* record_overflow */
	[FIRST_BYTES_OTHER] = { NULL, 0, END_NOT_TLS },
};

/* The row of a text that @data begins with, or may begin with when more of it comes; else OTHER. */
static enum first_bytes judge_text(const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
		size_t n = len < beginnings[i].len ? len : beginnings[i].len;
		if (memcmp(data, beginnings[i].text, n) == 0)
			return n == beginnings[i].len ? beginnings[i].what : FIRST_BYTES_INCOMPLETE;
	}
	return FIRST_BYTES_OTHER;
}

/* Length with its highest bit set, message type 1, and the version that the client wants at most. */
static bool is_sslv2_hello(const uint8_t *data)
{
	return (data[0] & 0x80) && data[2] == 1 && (data[3] == 3 || (data[3] == 0 && data[4] == 2));
}

static enum first_bytes judge_other_record(const uint8_t *data)
{
	bool is_record = data[1] == TLS12_VERSION_WIRE >> 8;

	/* a client that begins with an alert has ended already */
	return is_record && data[0] != TLS_ALERT ? FIRST_BYTES_OTHER_RECORD : FIRST_BYTES_OTHER;
}

static enum first_bytes judge_handshake(const uint8_t *data, size_t len)
{
	struct tls_record_header header;

	switch (tls_record_scan(data, len, &header)) {
	case CSSL_E_VERSION: return FIRST_BYTES_BAD_VERSION;
	case CSSL_E_TOO_LONG: return FIRST_BYTES_TOO_LONG;
	default: return FIRST_BYTES_HANDSHAKE;
	}
}

enum first_bytes first_bytes_judge(const uint8_t *data, size_t len)
{
	enum first_bytes text = len ? judge_text(data, len) : FIRST_BYTES_INCOMPLETE;

	if (text != FIRST_BYTES_OTHER)
		return text;
	bool may_be_record = data[0] >= TLS_CHANGE_CIPHER_SPEC && data[0] <= TLS_HEARTBEAT;
	if (!may_be_record && !(data[0] & 0x80))
		return FIRST_BYTES_OTHER;
	if (len < TLS_RECORD_HEADER_LEN)
		return FIRST_BYTES_INCOMPLETE;
	if (!may_be_record)
		return is_sslv2_hello(data) ? FIRST_BYTES_SSLV2 : FIRST_BYTES_OTHER;
	return data[0] == TLS_HANDSHAKE ? judge_handshake(data, len) : judge_other_record(data);
}

bool first_bytes_is_text(enum first_bytes what)
{
	return what == FIRST_BYTES_HTTP || what == FIRST_BYTES_PROXY || what == FIRST_BYTES_OTHER;
}

const void *first_bytes_answer(enum first_bytes what, size_t *len)
{
	*len = answers[what].len;
	return answers[what].answer;
}

enum end_reason first_bytes_reason(enum first_bytes what)
{
	return answers[what].reason;
}
