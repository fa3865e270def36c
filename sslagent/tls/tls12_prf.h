/* tls12_prf.h: the pseudorandom function of TLS 1.2 (RFC 5246 5) as an algorithm that OpenSSL fetches: the TLS1-PRF of
 * own_provider.h. OpenSSL's own PRF looks up two algorithms and makes six contexts for each derivation; a handshake has
 * four. */
#ifndef CSSL_SSLAGENT_TLS12_PRF_H
#define CSSL_SSLAGENT_TLS12_PRF_H

#include <stddef.h>
#include <stdint.h>

/* Set the callback that gets, on this thread, each key block (RFC 5246 6.3) when it is derived; NULL: none. The keys
 * begin at @block; @len is in bytes, and may be more than they need. */
typedef void tls12_prf_watcher(void *ctx, const uint8_t *block, size_t len);
void tls12_prf_watch(tls12_prf_watcher *fn, void *ctx);

#endif
