/* tls13_kdf.h: the key schedule of TLS 1.3 (RFC 8446 7.1) as an algorithm that OpenSSL fetches: the TLS13-KDF of
 * own_provider.h. Its own one looks up two algorithms and makes five contexts for each derivation, of which a handshake
 * has some twenty; this one has what it needs. And it sees the traffic secrets, which no other interface gives but as
 * lines of text, among three more that nobody here asked for. */
#ifndef CSSL_SSLAGENT_TLS13_KDF_H
#define CSSL_SSLAGENT_TLS13_KDF_H

#include <stddef.h>
#include <stdint.h>

/* Who is told, on this thread, of application traffic secrets as they are derived; NULL: nobody. */
enum traffic_direction { CLIENT_TRAFFIC, SERVER_TRAFFIC };
typedef void tls13_kdf_watcher(void *ctx, enum traffic_direction direction, const uint8_t *secret, size_t len);
void tls13_kdf_watch(tls13_kdf_watcher *fn, void *ctx);

#endif
