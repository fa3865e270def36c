/* hello.h: reads a connection's first records for the dispatcher: whether they are TLS, and whether the client offers a
 * resumption. Pure.
 */
#ifndef CSSL_RAGENT_HELLO_H
#define CSSL_RAGENT_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "proto/session_id.h"

enum hello_offer { HELLO_FULL, HELLO_RESUMING };

#define HELLO_INCOMPLETE 1

/* 0 with *offer: dispatch. The handshake agent answers a malformed or endless hello, so that is HELLO_FULL.
 * HELLO_INCOMPLETE: more bytes are needed. CSSL_E_TYPE: not TLS. CSSL_E_TOO_LONG: it claims more bytes than a hello
 * may have. @scratch: CLIENT_HELLO_MAX bytes. */
int hello_look(const uint8_t *data, size_t len, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN],
	uint8_t *scratch, enum hello_offer *offer);

#endif
