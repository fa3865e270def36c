/* tls13_kdf.h: the key schedule of TLS 1.3 (RFC 8446 7.1) as an algorithm that OpenSSL fetches: the TLS13-KDF of
 * own_provider.h. OpenSSL's own KDF looks up two algorithms and makes five contexts for each derivation, and a
 * handshake has some twenty. This one looks up nothing. It also sees the traffic secrets; OpenSSL's only other
 * interface gives them as lines of text, with three more secrets. */
#ifndef CSSL_SSLAGENT_TLS13_KDF_H
#define CSSL_SSLAGENT_TLS13_KDF_H

#include <stddef.h>
#include <stdint.h>

/* Set the callback that gets, on this thread, application traffic secrets when they are derived; NULL: none. */
enum traffic_direction { CLIENT_TRAFFIC, SERVER_TRAFFIC };
typedef void tls13_kdf_watcher(void *ctx, enum traffic_direction direction, const uint8_t *secret, size_t len);
void tls13_kdf_watch(tls13_kdf_watcher *fn, void *ctx);

#endif
