/* proxy_header.h: PROXY protocol v1 and v2 both ways (haproxy doc/proxy-protocol.txt), with TLVs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PROXY_V1_MAX        107u
#define PROXY_V2_MAX        (16u + 4096u) /* a longer header is refused */
#define PROXY_V2_WRITE_MAX  32768u        /* a longer one is not written; some readers take more than ours does */
#define PROXY_UNIQUE_ID_MAX 128u

enum proxy_command { PROXY_LOCAL, PROXY_PROXIED };
enum proxy_family { PROXY_UNSPEC, PROXY_TCP4, PROXY_TCP6, PROXY_UNIX };

/* client field of PP2_TYPE_SSL */
enum proxy_ssl_flag { PROXY_SSL = 1, PROXY_CERT_CONN = 2, PROXY_CERT_SESS = 4 };

struct proxy_header {
	uint8_t version; /* 1 or 2 */
	enum proxy_command command;
	enum proxy_family family;
	uint8_t source[16], destination[16]; /* 4 or 16 bytes in use */
	uint16_t source_port, destination_port;

	/* TLVs of v2. Pointers into the input when parsed, into the caller's memory when written; NULL or 0: absent */
	const char *alpn;
	uint16_t alpn_len;
	const char *authority;
	uint16_t authority_len;
	const uint8_t *unique_id;
	uint16_t unique_id_len;

	uint8_t ssl_flags;       /* enum proxy_ssl_flag; 0: no SSL TLV */
	uint32_t ssl_verify;     /* 0: the client presented a certificate and it was verified */
	const char *ssl_version; /* "TLSv1.3" */
	uint16_t ssl_version_len;
	const char *ssl_cipher; /* "TLS_AES_128_GCM_SHA256" */
	uint16_t ssl_cipher_len;
	const char *ssl_cn;
	uint16_t ssl_cn_len;

	/* These are written only: a balancer may give other meanings to such types. Of the client's certificate: */
	const uint8_t *certificate; /* DER */
	uint16_t certificate_len;
	const char *fingerprint, *serial, *subject, *issuer; /* doc/services.md */
	uint16_t fingerprint_len, serial_len, subject_len, issuer_len;
	const char *ja4;
	uint16_t ja4_len;

	enum { PROXY_WITHOUT_CRC32C, PROXY_WITH_CRC32C } checksum; /* parsed: it was there; written: add it */
};

#define PROXY_INCOMPLETE 1

/* Parse the header at the head of @in. 0: *taken bytes belong to it. PROXY_INCOMPLETE: the beginning of a header.
 * Negative: not a valid header, close the connection: an unknown version, command or family; a bad CRC32C; a TLV that
 * overruns, comes twice or is too long; an AUTHORITY with control characters. LOCAL, v1's UNKNOWN and families other
 * than TCP over IP give PROXY_UNSPEC: the addresses of the connection itself are valid. */
int proxy_header_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken);

/* Take so many TLVs out of @h that it is written with at most @max bytes, the least important ones first; each goes as
 * a whole. Returns how many it took. */
unsigned proxy_header_fit(struct proxy_header *h, size_t max);

/* Write a header of version h->version. TLVs of length 0 are left out; for LOCAL, all TLVs and the addresses are. Bytes
 * written, or CSSL_E_VERSION, CSSL_E_TYPE, CSSL_E_TOO_LONG (a value, the header, or @cap). */
ptrdiff_t proxy_header_write(const struct proxy_header *h, uint8_t *out, size_t cap);

/* proxy_v2.c, for proxy_header.c: the same for version 2, a fixed part, an address block and TLVs. The input begins
 * with the whole signature, and @out is zeroed. */
#define PROXY_V2_SIGNATURE     "\r\n\r\n\0\r\nQUIT\n"
#define PROXY_V2_SIGNATURE_LEN (sizeof(PROXY_V2_SIGNATURE) - 1)
int proxy_v2_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken);
ptrdiff_t proxy_v2_write(const struct proxy_header *h, uint8_t *out, size_t cap);
