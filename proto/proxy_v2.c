/* proxy_v2.c: section numbers are those of haproxy doc/proxy-protocol.txt. A LOCAL header's content is ignored. In
 * other headers every TLV is checked to its end; a TLV that we use may come only once. */
#include "proto/proxy_header.h"

#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define FIXED_LEN      16u
#define VERSION        2u
#define UNIX_BLOCK_LEN 216u
#define NAME_MAX_LEN   255u
#define CRC32C_LEN     4u
#define SSL_FIXED_LEN  5u

enum tlv { /* section 2.2 */
	TLV_ALPN = 0x01,
	TLV_AUTHORITY = 0x02,
	TLV_CRC32C = 0x03,
	TLV_UNIQUE_ID = 0x05,
	TLV_SSL = 0x20,
	TLV_SSL_VERSION = 0x21,
	TLV_SSL_CN = 0x22,
	TLV_SSL_CIPHER = 0x23,
	TLV_SSL_CLIENT_CERT = 0x28,
	/* of the application's range; doc/services.md */
	TLV_SUBJECT = 0xe0,
	TLV_ISSUER = 0xe1,
	TLV_SERIAL = 0xe2,
	TLV_FINGERPRINT = 0xe3,
	TLV_JA4 = 0xe4,
};

/* The values of TLVs, the most important first. In the header they stand in this order, those of the SSL TLV in it. */
enum tlv_place { PLACE_HEADER, PLACE_SSL };
#define VALUE(type, place, member)                                                                                     \
	{                                                                                                              \
		type, place, offsetof(struct proxy_header, member), offsetof(struct proxy_header, member##_len)        \
	}
static const struct value_row {
	uint8_t type, place; /* enum tlv, enum tlv_place */
	uint16_t value, len; /* where they are in struct proxy_header */
} values[] = {
	VALUE(TLV_UNIQUE_ID, PLACE_HEADER, unique_id),
	VALUE(TLV_SSL_VERSION, PLACE_SSL, ssl_version),
	VALUE(TLV_SSL_CIPHER, PLACE_SSL, ssl_cipher),
	VALUE(TLV_SSL_CN, PLACE_SSL, ssl_cn),
	VALUE(TLV_FINGERPRINT, PLACE_HEADER, fingerprint),
	VALUE(TLV_ALPN, PLACE_HEADER, alpn),
	VALUE(TLV_AUTHORITY, PLACE_HEADER, authority), /* the client chooses how long it is */
	VALUE(TLV_SUBJECT, PLACE_HEADER, subject),
	VALUE(TLV_SERIAL, PLACE_HEADER, serial),
	VALUE(TLV_ISSUER, PLACE_HEADER, issuer),
	VALUE(TLV_JA4, PLACE_HEADER, ja4),
	VALUE(TLV_SSL_CLIENT_CERT, PLACE_SSL, certificate),
};
#define VALUES (sizeof values / sizeof values[0])

static uint16_t *len_of(const struct proxy_header *h, size_t i)
{
	return (uint16_t *)((char *)h + values[i].len);
}

/* Family and protocol byte, and the form of its address block. Values of the specification that CSSL does not carry
 * (datagrams) count as unspecified, as section 2.2 asks. All other values are refused. */
static const struct family_row {
	uint8_t wire;
	uint8_t family;
	uint8_t address_len;
	uint8_t block_len;
} families[] = {
	/* the first row of a family is the one that is written */
	{ 0x00, PROXY_UNSPEC, 0, 0 },
	{ 0x11, PROXY_TCP4, 4, 12 },
	{ 0x21, PROXY_TCP6, 16, 36 },
	{ 0x31, PROXY_UNIX, 0, UNIX_BLOCK_LEN },
	{ 0x12, PROXY_UNSPEC, 0, 12 },
	{ 0x22, PROXY_UNSPEC, 0, 36 },
	{ 0x32, PROXY_UNSPEC, 0, UNIX_BLOCK_LEN },
};
#define FAMILIES (sizeof families / sizeof families[0])

/* CRC-32C (RFC 3720 appendix B.4, reflected), a nibble at a time: headers are short, a table of 64 bytes is enough. */
static uint32_t proxy_v2_crc32c(uint32_t crc, const uint8_t *in, size_t len)
{
	static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab,
		0xe330a81a, 0xf36e6f75 };
	for (size_t i = 0; i < len; i++) {
		crc ^= in[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

/* The checksum of a complete header, with the four bytes at @at counted as zero. */
static uint32_t header_crc32c(const uint8_t *in, size_t len, size_t at)
{
	static const uint8_t zero[CRC32C_LEN];
	uint32_t crc = proxy_v2_crc32c(UINT32_MAX, in, at);
	crc = proxy_v2_crc32c(crc, zero, CRC32C_LEN);
	return ~proxy_v2_crc32c(crc, in + at + CRC32C_LEN, len - at - CRC32C_LEN);
}

/* A v2 header while its TLVs are walked. */
struct walk {
	const uint8_t *header;
	size_t header_len;
	uint64_t seen; /* a bit for each type that is read */
	struct proxy_header *out;
};

typedef int (*tlv_reader)(struct walk *w, uint8_t type, struct wire_reader *value);

static int walk_tlvs(struct walk *w, struct wire_reader *list, tlv_reader read)
{
	while (wire_left(list)) {
		uint8_t type = wire_u8(list);
		struct wire_reader value = wire_sub(list, wire_u16(list));
		if (!value.at)
			return CSSL_E_TRUNCATED;
		int r = read(w, type, &value);
		if (r < 0)
			return r;
	}
	return 0;
}

/* With two values of one type, different readers might believe different ones. */
static int first_of_type(struct walk *w, uint8_t type)
{
	uint64_t bit = UINT64_C(1) << type;
	if (w->seen & bit)
		return CSSL_E_RANGE;
	w->seen |= bit;
	return 0;
}

static int read_value(struct walk *w, enum tlv_place place, uint8_t type, struct wire_reader *value)
{
	size_t len = wire_left(value), i = 0;
	while (i < VALUES && (values[i].type != type || values[i].place != place))
		i++;
	if (i == VALUES || type >= TLV_SSL_CLIENT_CERT) /* these are written only */
		return 0;                               /* section 2.2: receivers skip types that they do not know */
	int r = first_of_type(w, type);
	if (r < 0 || len == 0)
		return r;
	const void *bytes = wire_bytes(value, len);
	memcpy((char *)w->out + values[i].value, &bytes, sizeof bytes);
	*len_of(w->out, i) = (uint16_t)len;
	return 0;
}

static int read_crc32c(struct walk *w, struct wire_reader *value)
{
	size_t at = (size_t)(value->at - w->header);
	int r = first_of_type(w, TLV_CRC32C);
	if (r < 0)
		return r;
	uint32_t said = wire_u32(value);
	r = wire_reader_end(value);
	if (r < 0)
		return r;
	w->out->checksum = PROXY_WITH_CRC32C;
	return said == header_crc32c(w->header, w->header_len, at) ? 0 : CSSL_E_RANGE;
}

static int read_ssl_tlv(struct walk *w, uint8_t type, struct wire_reader *value)
{
	return read_value(w, PLACE_SSL, type, value);
}

static int read_ssl(struct walk *w, struct wire_reader *value)
{
	int r = first_of_type(w, TLV_SSL);
	if (r < 0)
		return r;
	uint8_t flags = wire_u8(value) & (PROXY_SSL | PROXY_CERT_CONN | PROXY_CERT_SESS);
	uint32_t verify = wire_u32(value);
	if (!value->at)
		return CSSL_E_TRUNCATED;
	if (!(flags & PROXY_SSL)) /* without TLS there is no certificate, and the other fields have no meaning */
		return flags ? CSSL_E_RANGE : 0;
	w->out->ssl_flags = flags;
	w->out->ssl_verify = verify;
	return walk_tlvs(w, value, read_ssl_tlv);
}

static int read_tlv(struct walk *w, uint8_t type, struct wire_reader *value)
{
	switch (type) {
	case TLV_CRC32C: return read_crc32c(w, value);
	case TLV_SSL: return read_ssl(w, value);
	default: return read_value(w, PLACE_HEADER, type, value);
	}
}

static bool is_printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];
		if (c <= ' ' || c == 0x7f)
			return false;
	}
	return true;
}

/* The bounds that hold for values both ways. */
static int check_values(const struct proxy_header *h)
{
	if (h->alpn_len > NAME_MAX_LEN || h->authority_len > NAME_MAX_LEN || h->unique_id_len > PROXY_UNIQUE_ID_MAX)
		return CSSL_E_TOO_LONG;
	return is_printable(h->authority, h->authority_len) ? 0 : CSSL_E_RANGE;
}

static const struct family_row *family_by_wire(uint8_t wire)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		if (families[i].wire == wire)
			return &families[i];
	}
	return NULL;
}

static const struct family_row *family_by_enum(enum proxy_family family)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		if (families[i].family == family)
			return &families[i];
	}
	return NULL;
}

static int parse_block(const uint8_t *in, size_t len, const struct family_row *row, struct proxy_header *out)
{
	struct wire_reader r = wire_reader(in + FIXED_LEN, len - FIXED_LEN);
	struct wire_reader block = wire_sub(&r, row->block_len);
	if (!block.at)
		return CSSL_E_TRUNCATED;
	out->family = row->family;
	if (row->address_len) {
		memcpy(out->source, wire_bytes(&block, row->address_len), row->address_len);
		memcpy(out->destination, wire_bytes(&block, row->address_len), row->address_len);
		out->source_port = wire_u16(&block);
		out->destination_port = wire_u16(&block);
	}
	struct walk w = { .header = in, .header_len = len, .out = out };
	int e = walk_tlvs(&w, &r, read_tlv);
	return e < 0 ? e : check_values(out);
}

int proxy_v2_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken)
{
	if (len < FIXED_LEN)
		return PROXY_INCOMPLETE;
	struct wire_reader r = wire_reader(in + PROXY_V2_SIGNATURE_LEN, FIXED_LEN - PROXY_V2_SIGNATURE_LEN);
	uint8_t version_command = wire_u8(&r);
	const struct family_row *row = family_by_wire(wire_u8(&r));
	size_t whole = FIXED_LEN + wire_u16(&r);

	if (version_command >> 4 != VERSION)
		return CSSL_E_VERSION;
	if ((version_command & 15) > PROXY_PROXIED || !row)
		return CSSL_E_TYPE;
	if (whole > PROXY_V2_MAX)
		return CSSL_E_TOO_LONG;
	if (len < whole)
		return PROXY_INCOMPLETE;
	out->version = 2;
	out->command = version_command & 15;
	*taken = whole;
	/* Section 2.2: the whole block of LOCAL is discarded, with its family. */
	return out->command == PROXY_LOCAL ? 0 : parse_block(in, whole, row, out);
}

/* Bytes that a TLV takes. */
static size_t tlv_len(size_t len)
{
	return len ? 3 + len : 0;
}

static void put_tlv(struct wire_writer *w, enum tlv type, const void *value, uint16_t len)
{
	if (len == 0)
		return;
	wire_put_u8(w, (uint8_t)type);
	wire_put_u16(w, len);
	wire_put_bytes(w, value, len);
}

static size_t values_len(const struct proxy_header *h, enum tlv_place place)
{
	size_t len = 0;
	for (size_t i = 0; i < VALUES; i++)
		len += values[i].place == place ? tlv_len(*len_of(h, i)) : 0;
	return len;
}

static void put_values(struct wire_writer *w, const struct proxy_header *h, enum tlv_place place)
{
	const void *value;
	for (size_t i = 0; i < VALUES; i++) {
		memcpy(&value, (const char *)h + values[i].value, sizeof value);
		if (values[i].place == place)
			put_tlv(w, values[i].type, value, *len_of(h, i));
	}
}

static size_t ssl_value_len(const struct proxy_header *h)
{
	return h->ssl_flags & PROXY_SSL ? SSL_FIXED_LEN + values_len(h, PLACE_SSL) : 0;
}

static void put_ssl(struct wire_writer *w, const struct proxy_header *h)
{
	if (!(h->ssl_flags & PROXY_SSL))
		return;
	wire_put_u8(w, TLV_SSL);
	wire_put_u16(w, (uint16_t)ssl_value_len(h));
	wire_put_u8(w, h->ssl_flags);
	wire_put_u32(w, h->ssl_verify);
	put_values(w, h, PLACE_SSL);
}

static void put_block(struct wire_writer *w, const struct proxy_header *h, const struct family_row *row)
{
	static const uint8_t unnamed[UNIX_BLOCK_LEN];
	if (!row->address_len) {
		wire_put_bytes(w, unnamed, row->block_len);
		return;
	}
	wire_put_bytes(w, h->source, row->address_len);
	wire_put_bytes(w, h->destination, row->address_len);
	wire_put_u16(w, h->source_port);
	wire_put_u16(w, h->destination_port);
}

static size_t whole_len(const struct proxy_header *h, const struct family_row *row)
{
	size_t crc_len = h->checksum == PROXY_WITH_CRC32C ? CRC32C_LEN : 0;
	return FIXED_LEN + row->block_len + values_len(h, PLACE_HEADER) + tlv_len(ssl_value_len(h)) + tlv_len(crc_len);
}

unsigned proxy_header_fit(struct proxy_header *h, size_t max)
{
	const struct family_row *row = family_by_enum(h->family);
	unsigned taken = 0;

	for (size_t i = VALUES; row && i-- > 0 && whole_len(h, row) > max;) {
		taken += *len_of(h, i) > 0;
		*len_of(h, i) = 0;
	}
	return taken;
}

static ptrdiff_t write_all(const struct proxy_header *h, const struct family_row *row, uint8_t *out, size_t cap)
{
	static const uint8_t zero[CRC32C_LEN];
	uint16_t crc_len = h->checksum == PROXY_WITH_CRC32C ? CRC32C_LEN : 0;
	size_t whole = whole_len(h, row);
	if (whole > PROXY_V2_WRITE_MAX)
		return CSSL_E_TOO_LONG;

	struct wire_writer w = wire_writer(out, cap);
	wire_put_bytes(&w, PROXY_V2_SIGNATURE, PROXY_V2_SIGNATURE_LEN);
	wire_put_u8(&w, (uint8_t)(VERSION << 4 | h->command));
	wire_put_u8(&w, row->wire);
	wire_put_u16(&w, (uint16_t)(whole - FIXED_LEN));
	put_block(&w, h, row);
	put_values(&w, h, PLACE_HEADER);
	put_ssl(&w, h);
	put_tlv(&w, TLV_CRC32C, zero, crc_len); /* last, so that its place is known */
	ptrdiff_t len = wire_writer_len(&w);
	if (len > 0 && crc_len)
		wire_store_u32(out + len - CRC32C_LEN, header_crc32c(out, (size_t)len, (size_t)len - CRC32C_LEN));
	return len;
}

ptrdiff_t proxy_v2_write(const struct proxy_header *h, uint8_t *out, size_t cap)
{
	static const struct proxy_header local = { .version = VERSION, .command = PROXY_LOCAL };
	if (h->command == PROXY_LOCAL)
		h = &local;
	const struct family_row *row = family_by_enum(h->family);
	if (!row || h->command > PROXY_PROXIED)
		return CSSL_E_TYPE;
	int r = check_values(h);
	return r < 0 ? r : write_all(h, row, out, cap);
}
