/* source_target.h: the server that smtp-source loads, by address or by name. */
#ifndef CSSL_BENCH_MAIL_SOURCE_TARGET_H
#define CSSL_BENCH_MAIL_SOURCE_TARGET_H

#include <sys/socket.h>

/* @text: "127.0.0.1:25", "[::1]:25", "mx.example:25" or "[mx.example]:25", also behind "inet:" and without the port 25;
 * or "unix:/path". @family: AF_INET, AF_INET6, or AF_UNSPEC for any; it does not concern "unix:". A name is looked up,
 * which may take seconds; its first address counts. 0, or CSSL_E_CONFIG: it is no address, or the name has none of the
 * family. */
int source_target_find(const char *text, int family, struct sockaddr_storage *out);

#endif
