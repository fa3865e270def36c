/* hello_maker.h: ClientHellos of OpenSSL's client, for tests. Handshakes run over memory BIOs against a server of
 * its own with a throw-away certificate. */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#define HELLO_SERVER_NAME "host.example"

struct hello {
	uint8_t bytes[8192];
	size_t len;
};

/* One kind of client and its server. */
struct hello_kind {
	int version;             /* TLS1_2_VERSION or TLS1_3_VERSION, the only one spoken */
	uint64_t options;        /* SSL_OP_NO_TICKET ... of both */
	const char *suites;      /* TLS 1.2 cipher list; NULL: the default */
	unsigned alpn_names;     /* how many protocols are offered, to make a long hello */
	long fragment;           /* the longest record; 0: the default */
	const char *server_name; /* NULL: none */
};

/* The hello of a first connection. */
void hello_fresh(const struct hello_kind *kind, struct hello *out);

/* The hello of a second connection that offers the session of the first one; @session is that session (free it).
 * Aborts if the server would not resume it, because then it would be no real offer. */
void hello_resuming(const struct hello_kind *kind, struct hello *out, SSL_SESSION **session);
