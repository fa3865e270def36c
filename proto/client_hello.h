/* client_hello.h: reads from a ClientHello (RFC 8446 4.1.2, RFC 5246 7.4.1.2) whether it offers a resumption, and for
 * which server name: RAgent needs that to choose an agent. And the lists by which its client is known (ja4.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum client_hello_flag {
	CLIENT_HELLO_OFFERS_TLS13 = 1 << 0,   /* supported_versions has 0x0304 */
	CLIENT_HELLO_HAS_PSK = 1 << 1,        /* pre_shared_key extension */
	CLIENT_HELLO_HAS_TICKET_EXT = 1 << 2, /* session_ticket extension (RFC 5077), maybe empty */
	CLIENT_HELLO_HAS_TICKET = 1 << 3,     /* that extension is not empty */
};

struct client_hello {
	unsigned flags;
	const uint8_t *session_id; /* legacy_session_id, into the input */
	uint8_t session_id_len;    /* 0..32 */
	const uint8_t *psk;        /* first PSK identity, into the input; NULL without */
	uint16_t psk_len;
	const char *server_name; /* first host_name, not terminated; NULL without */
	uint16_t server_name_len;

	uint16_t version; /* legacy_version */
	uint16_t suites_len, extensions_len;
	const uint8_t *suites;     /* into the input; 2 bytes each */
	const uint8_t *extensions; /* likewise; each is type (2), length (2), body. NULL without */
};

#define HOST_NAME_MAX_LEN       255u
#define CLIENT_HELLO_INCOMPLETE 1

/* Scan a ClientHello in the whole TLS records at the head of @in. 0: @out is filled. CLIENT_HELLO_INCOMPLETE: it needs
 * more records. Negative: not a ClientHello, or malformed. A dispatcher then assumes no resumption, and the agent
 * answers with an alert. A hello in several records is put together in @scratch, which has room for CLIENT_HELLO_MAX
 * bytes; pointers in @out may point into it.
 */
#define CLIENT_HELLO_MAX 32768u
int client_hello_scan(const uint8_t *in, size_t len, uint8_t *scratch, size_t scratch_len, struct client_hello *out);

/* The same for a whole handshake message: its header (4) and the body. 0 or negative. */
int client_hello_read(const uint8_t *message, size_t len, struct client_hello *out);

/* Write a host name in the form for comparisons: lower case, no NUL inside, at most HOST_NAME_MAX_LEN bytes, without
 * the dot of the root at its end (RFC 6066 3 has none; some clients send it). @out is terminated, empty when @name is
 * no host name. */
void host_name_normalize(const char *name, size_t len, char out[static HOST_NAME_MAX_LEN + 1]);

/* Watches what a client's handshake records say before any of them is encrypted. OpenSSL makes room for a message as
 * soon as it knows the length that its header claims, 131396 bytes for nine. No real hello is longer than
 * CLIENT_HELLO_MAX: BoringSSL's servers refuse more than 16384 bytes (ssl_max_handshake_message_len), and a TLS 1.2
 * ticket of our own has up to SESSION_DER_MAX and some bytes more. The first message that is no hello ends the watch.
 */
struct client_hello_watch {
	uint8_t head[4]; /* of the message under way */
	uint8_t head_len;
	uint8_t state; /* client_hello.c */
	uint32_t left; /* of its body */
};

/* @payload is that of the next handshake record. 0, or CSSL_E_TOO_LONG: it must not be read. */
int client_hello_watch(struct client_hello_watch *w, const uint8_t *payload, size_t len);
/* Call it when the next bytes are encrypted, as behind ChangeCipherSpec in TLS 1.2: a ciphertext may begin as a hello
 * does. */
void client_hello_watch_end(struct client_hello_watch *w);
