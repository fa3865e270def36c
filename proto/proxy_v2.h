/* proxy_v2.h: version 2 of the PROXY protocol, a fixed part, an address block and TLVs; called by proxy_header.c. */
#ifndef CSSL_PROTO_PROXY_V2_H
#define CSSL_PROTO_PROXY_V2_H

#include "proto/proxy_header.h"

#define PROXY_V2_SIGNATURE     "\r\n\r\n\0\r\nQUIT\n"
#define PROXY_V2_SIGNATURE_LEN (sizeof(PROXY_V2_SIGNATURE) - 1)

/* As proxy_header_parse(), for an input that begins with the whole signature and a zeroed @out. */
int proxy_v2_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken);

/* As proxy_header_write(). */
ptrdiff_t proxy_v2_write(const struct proxy_header *h, uint8_t *out, size_t cap);

#endif
