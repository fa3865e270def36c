/* ja4.h: the fingerprint of a TLS client by its ClientHello: JA4 of FoxIO's public specification
 * (github.com/FoxIO-LLC/ja4, technical_details/JA4.md), for TLS over TCP. */
#pragma once

#include <stdint.h>

#include "proto/client_hello.h"

#define JA4_TEXT_MAX 37u

/* All zero: there is none. Bytes only, so it travels as it is. */
struct ja4 {
	char kind[10];                     /* "t13d1516h2" */
	uint8_t ciphers[6], extensions[6]; /* the first bytes of two hashes */
};

/* There is none for a hello with more than 512 cipher suites, extensions or signature algorithms. */
void ja4_make(const struct client_hello *h, struct ja4 *out);

/* "t13d1516h2_8daaf6152771_e5627efa2ab1", or "" if there is none. Returns @out. */
const char *ja4_text(const struct ja4 *j, char out[static JA4_TEXT_MAX]);
