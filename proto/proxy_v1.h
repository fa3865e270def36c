/* proxy_v1.h: version 1 of the PROXY protocol, a line of text; called by proxy_header.c. */
#ifndef CSSL_PROTO_PROXY_V1_H
#define CSSL_PROTO_PROXY_V1_H

#include "proto/proxy_header.h"

#define PROXY_V1_PREFIX     "PROXY "
#define PROXY_V1_PREFIX_LEN (sizeof(PROXY_V1_PREFIX) - 1)

/* As proxy_header_parse(), for an input that begins with the whole prefix and a zeroed @out. */
int proxy_v1_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken);

/* As proxy_header_write(). */
ptrdiff_t proxy_v1_write(const struct proxy_header *h, uint8_t *out, size_t cap);

#endif
