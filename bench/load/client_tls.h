/* client_tls.h: the TLS side of a pseudo client: OpenSSL between a stream's bytes and plaintext. Each connection has
 * its own SSL object. Bytes are copied once each way: from the stream's read buffer to OpenSSL, and from OpenSSL to the
 * stream's output.
 */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/load/stream_bio.h"
#include "bench/measure/tally.h"
#include "net/stream/stream.h"

#define CLIENT_TLS_NO_ALERT (-1)

enum client_tls_version { CLIENT_TLS_ANY, CLIENT_TLS_1_2, CLIENT_TLS_1_3 };
#define CLIENT_TLS_VERSIONS "any|1.2|1.3"                              /* the same as words of an option */
enum client_tls_tickets { CLIENT_TLS_TICKETS, CLIENT_TLS_NO_TICKETS }; /* of TLS 1.2 */
enum client_tls_memory { CLIENT_TLS_KEEP, CLIENT_TLS_SPARE };          /* of buffers of idle connections */

struct client_tls_options {
	const char *who;                                      /* for error messages: the command */
	unsigned version, tickets, memory;                    /* the enums above */
	const char *suite, *groups, *server_name, *alpn, *ca; /* NULL: not set; server_name always is */
};

/* Shared by all clients of a process. All zero before it is opened. */
struct client_tls_shared {
	SSL_CTX *ctx;
	BIO_METHOD *wire;
	const char *server_name;
};

/* The TLS state of one client. All zero before its first connection. */
struct client_tls {
	SSL *ssl;             /* of the current connection, or NULL */
	SSL_SESSION *session; /* the newest, or NULL */
	struct stream_bio wire;
	uint32_t sessions; /* sessions that came on this connection */
	int alert;         /* AlertDescription received on this connection, or CLIENT_TLS_NO_ALERT */
};

enum client_tls_offer { CLIENT_TLS_OFFER_NOTHING, CLIENT_TLS_OFFER_SESSION };

/* Complains on standard error. 0 or CSSL_E_CONFIG. */
int client_tls_open(struct client_tls_shared *shared, const struct client_tls_options *o);
void client_tls_close(struct client_tls_shared *shared);

/* Before each connection, over @stream. 0 or CSSL_E_NO_MEMORY. */
int client_tls_begin(struct client_tls *t, const struct client_tls_shared *shared, struct stream *stream,
	enum client_tls_offer offer);

/* After each connection, even if it did not end in order; the session can still be resumed. */
void client_tls_end(struct client_tls *t);
void client_tls_wipe(struct client_tls *t);

/* Count a finished handshake of @ssl by TLS version and cipher suite, in a table of TALLY_SUITES_MAX rows. */
void client_tls_tally_suite(const SSL *ssl, struct tally *suites);

/* The reason why the last call failed, in a few words. Clears it. */
const char *client_tls_failure(void);
