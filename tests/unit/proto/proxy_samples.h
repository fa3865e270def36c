/* proxy_samples.h: PROXY v2 headers byte by byte, made without the code under test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample {
	uint8_t bytes[8192];
	size_t len;
};

/* The fixed part: version and command, family and protocol. Its length field grows with the added bytes. */
void sample_begin(struct sample *s, uint8_t version_command, uint8_t family);
void sample_add(struct sample *s, const void *bytes, size_t len);
void sample_add_tlv(struct sample *s, uint8_t type, const void *value, size_t len);

/* A CRC32C TLV over all that is there and itself; nothing may be added behind it. */
void sample_seal(struct sample *s);

/* PROXY over TCP4, 192.0.2.1:40000 to 198.51.100.2:443. */
void sample_tcp4(struct sample *s);

/* CRC-32C bit by bit, from its polynomial. */
uint32_t sample_crc32c(const uint8_t *in, size_t len);
