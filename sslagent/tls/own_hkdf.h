/* own_hkdf.h: HKDF (RFC 5869) over the HMAC of own_hmac.h, for the key schedule (tls13_kdf.c). The caller sets hash and
 * ctx of @h before, and wipes @h behind it. Both return 1 or 0, as OpenSSL's functions do. */
#ifndef CSSL_SSLAGENT_OWN_HKDF_H
#define CSSL_SSLAGENT_OWN_HKDF_H

#include "sslagent/tls/own_hmac.h"

/* Writes h->hash->len bytes to @out. An empty @salt counts as hash->len zeros (RFC 5869 2.2). */
int own_hkdf_extract(struct own_hmac *h, struct own_bytes salt, struct own_bytes key, uint8_t *out);
/* Writes @len bytes to @out. Refuses more than 255 * hash->len bytes (RFC 5869 2.3). */
int own_hkdf_expand(struct own_hmac *h, struct own_bytes key, struct own_bytes info, uint8_t *out, size_t len);

#endif
