/* test_proxy_v2.c: facts of the PROXY protocol's version 2. */
#include <string.h>

#include "proto/error.h"
#include "proto/proxy_header.h"
#include "tests/unit/proto/proxy_samples.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* Sub-TLVs of an SSL TLV: TLSv1.3, its suite, a common name. */
#define SSL_SUBS "\x21\0\7TLSv1.3\x23\0\x16TLS_AES_128_GCM_SHA256\x22\0\6client"

static struct sample sample;
static struct proxy_header header;
static size_t taken;

static int parse(void)
{
	return proxy_header_parse(sample.bytes, sample.len, &header, &taken);
}

/* Of a sample with one more TLV. */
static int parse_with_tlv(uint8_t type, const void *value, size_t len)
{
	sample_tcp4(&sample);
	sample_add_tlv(&sample, type, value, len);
	return parse();
}
#define PARSE_WITH_TLV(type, value) parse_with_tlv(type, value, sizeof(value) - 1)

START_TEST(a_tcp4_header_is_read)
{
	sample_tcp4(&sample);
	size_t whole = sample.len;
	memcpy(sample.bytes + sample.len, "hello", 5);
	sample.len += 5;
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(taken, whole);
	ck_assert_uint_eq(header.version, 2);
	ck_assert_int_eq(header.command, PROXY_PROXIED);
	ck_assert_int_eq(header.family, PROXY_TCP4);
	ck_assert_mem_eq(header.source, "\xc0\0\2\1", 4);
	ck_assert_mem_eq(header.destination, "\xc6\x33\x64\2", 4);
	ck_assert_uint_eq(header.source_port, 40000);
	ck_assert_uint_eq(header.destination_port, 443);
	ck_assert_int_eq(header.checksum, PROXY_WITHOUT_CRC32C);
}
END_TEST

START_TEST(a_tcp6_header_is_read)
{
	sample_begin(&sample, 0x21, 0x21);
	sample_add(&sample, "0123456789abcdefFEDCBA9876543210\0\1\0\2", 36);
	ck_assert_int_eq(parse(), 0);
	ck_assert_int_eq(header.family, PROXY_TCP6);
	ck_assert_mem_eq(header.source, "0123456789abcdef", 16);
	ck_assert_mem_eq(header.destination, "FEDCBA9876543210", 16);
	ck_assert_uint_eq(header.source_port, 1);
	ck_assert_uint_eq(header.destination_port, 2);
}
END_TEST

START_TEST(every_tlv_that_we_know_is_read)
{
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x01, "h2", 2);
	sample_add_tlv(&sample, 0x02, "host.example", 12);
	sample_add_tlv(&sample, 0x05, "0123456789abcdef", 16);
	sample_add_tlv(&sample, 0x20, "\7\0\0\0\x14" SSL_SUBS, 5 + sizeof(SSL_SUBS) - 1);
	sample_seal(&sample);
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(header.alpn_len, 2);
	ck_assert_mem_eq(header.alpn, "h2", 2);
	ck_assert_uint_eq(header.authority_len, 12);
	ck_assert_mem_eq(header.authority, "host.example", 12);
	ck_assert_uint_eq(header.unique_id_len, 16);
	ck_assert_mem_eq(header.unique_id, "0123456789abcdef", 16);
	ck_assert_uint_eq(header.ssl_flags, PROXY_SSL | PROXY_CERT_CONN | PROXY_CERT_SESS);
	ck_assert_uint_eq(header.ssl_verify, 0x14);
	ck_assert_uint_eq(header.ssl_version_len, 7);
	ck_assert_mem_eq(header.ssl_version, "TLSv1.3", 7);
	ck_assert_uint_eq(header.ssl_cipher_len, 22);
	ck_assert_mem_eq(header.ssl_cipher, "TLS_AES_128_GCM_SHA256", 22);
	ck_assert_uint_eq(header.ssl_cn_len, 6);
	ck_assert_mem_eq(header.ssl_cn, "client", 6);
	ck_assert_int_eq(header.checksum, PROXY_WITH_CRC32C);
}
END_TEST

START_TEST(the_crc_of_these_tests_is_crc32c)
{
	ck_assert_uint_eq(sample_crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
}
END_TEST

START_TEST(v2_header_with_bad_crc_is_refused)
{
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x02, "host.example", 12);
	sample_seal(&sample);
	ck_assert_int_eq(parse(), 0);
	/* Every bit behind the fixed part: of the addresses, the TLVs and the checksum itself. */
	for (size_t bit = 8 * 16; bit < 8 * sample.len; bit++) {
		sample.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* A flip in a TLV's head may hide the checksum behind another length or type: an unknown TLV then. */
		if (parse() == 0)
			ck_assert_int_eq(header.checksum, PROXY_WITHOUT_CRC32C);
		sample.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}
END_TEST

START_TEST(a_changed_address_fails_the_crc)
{
	sample_tcp4(&sample);
	sample_seal(&sample);
	sample.bytes[16] ^= 1;
	ck_assert_int_eq(parse(), CSSL_E_RANGE);
}
END_TEST

START_TEST(the_crc_may_stand_before_other_tlvs)
{
	sample_tcp4(&sample);
	size_t at = sample.len + 3;
	sample_add_tlv(&sample, 0x03, "\0\0\0\0", 4);
	sample_add_tlv(&sample, 0x01, "h2", 2);
	uint32_t crc = sample_crc32c(sample.bytes, sample.len);
	for (unsigned i = 0; i < 4; i++)
		sample.bytes[at + i] = (uint8_t)(crc >> (24 - 8 * i));
	ck_assert_int_eq(parse(), 0);
	sample.bytes[sample.len - 1] ^= 1;
	ck_assert_int_eq(parse(), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_crc_has_four_bytes)
{
	ck_assert_int_eq(PARSE_WITH_TLV(0x03, "\0\0\0"), CSSL_E_TRUNCATED);
	ck_assert_int_eq(PARSE_WITH_TLV(0x03, "\0\0\0\0\0"), CSSL_E_TRAILING);
}
END_TEST

START_TEST(every_shorter_header_is_incomplete)
{
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x02, "host.example", 12);
	size_t whole = sample.len;
	for (sample.len = 0; sample.len < whole; sample.len++)
		ck_assert_int_eq(parse(), PROXY_INCOMPLETE);
	ck_assert_int_eq(parse(), 0);
}
END_TEST

START_TEST(only_version_2_and_its_two_commands_exist)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		sample_tcp4(&sample);
		sample.bytes[12] = (uint8_t)byte;
		int expected = byte >> 4 != 2 ? CSSL_E_VERSION : (byte & 15) > 1 ? CSSL_E_TYPE : 0;
		ck_assert_int_eq(parse(), expected);
	}
}
END_TEST

START_TEST(only_the_families_of_the_specification_exist)
{
	static const uint8_t known[] = { 0x00, 0x11, 0x12, 0x21, 0x22, 0x31, 0x32 };
	static const uint8_t block[216];
	for (unsigned byte = 0; byte < 256; byte++) {
		sample_begin(&sample, 0x21, (uint8_t)byte);
		sample_add(&sample, block, sizeof(block));
		int expected = memchr(known, (int)byte, sizeof(known)) ? 0 : CSSL_E_TYPE;
		ck_assert_int_eq(parse(), expected);
	}
}
END_TEST

START_TEST(datagram_families_give_no_address_but_their_tlvs)
{
	static const struct {
		uint8_t family;
		size_t block_len;
	} rows[] = { { 0x00, 0 }, { 0x12, 12 }, { 0x22, 36 }, { 0x32, 216 } };
	uint8_t block[216];
	memset(block, 0xee, sizeof(block));
	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		sample_begin(&sample, 0x21, rows[i].family);
		sample_add(&sample, block, rows[i].block_len);
		sample_add_tlv(&sample, 0x01, "h2", 2);
		ck_assert_int_eq(parse(), 0);
		ck_assert_int_eq(header.family, PROXY_UNSPEC);
		ck_assert_uint_eq(header.source_port, 0);
		ck_assert_uint_eq(header.alpn_len, 2);
	}
}
END_TEST

START_TEST(a_block_shorter_than_its_family_is_refused)
{
	sample_begin(&sample, 0x21, 0x11);
	sample_add(&sample, "0123456789", 11);
	ck_assert_int_eq(parse(), CSSL_E_TRUNCATED);
	sample_begin(&sample, 0x21, 0x21);
	sample_add(&sample, "0123456789abcdef0123456789abcdef012", 35);
	ck_assert_int_eq(parse(), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(of_a_local_header_nothing_is_believed)
{
	sample_tcp4(&sample);
	sample.bytes[12] = 0x20;
	sample_add_tlv(&sample, 0x02, "host.example", 12);
	sample_add(&sample, "garbage", 7);
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(taken, sample.len);
	ck_assert_int_eq(header.command, PROXY_LOCAL);
	ck_assert_int_eq(header.family, PROXY_UNSPEC);
	ck_assert_uint_eq(header.source_port, 0);
	ck_assert_ptr_null(header.authority);
}
END_TEST

START_TEST(a_tlv_that_overruns_is_refused)
{
	sample_tcp4(&sample);
	sample_add(&sample, "\1\0\3h2", 5);
	ck_assert_int_eq(parse(), CSSL_E_TRUNCATED);
	sample_tcp4(&sample);
	sample_add(&sample, "\xee\0", 2);
	ck_assert_int_eq(parse(), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(unknown_tlvs_are_skipped)
{
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x04, "\0\0\0", 3);
	sample_add_tlv(&sample, 0x04, "", 0);
	sample_add_tlv(&sample, 0x30, "netns", 5);
	sample_add_tlv(&sample, 0xe0, "\1\0\xff", 3);
	sample_add_tlv(&sample, 0x01, "h2", 2);
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(header.alpn_len, 2);
}
END_TEST

START_TEST(a_tlv_that_comes_twice_is_refused)
{
	static const uint8_t types[] = { 0x01, 0x02, 0x05 };
	for (size_t i = 0; i < SUITE_LEN(types); i++) {
		sample_tcp4(&sample);
		sample_add_tlv(&sample, types[i], "a", 1);
		ck_assert_int_eq(parse(), 0);
		sample_add_tlv(&sample, types[i], "b", 1);
		ck_assert_int_eq(parse(), CSSL_E_RANGE);
	}
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x20, "\1\0\0\0\0", 5);
	sample_add_tlv(&sample, 0x20, "\0\0\0\0\0", 5);
	ck_assert_int_eq(parse(), CSSL_E_RANGE);
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\1\0\0\0\0\x22\0\1a\x22\0\1b"), CSSL_E_RANGE);
}
END_TEST

START_TEST(empty_values_are_as_if_absent)
{
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x01, "", 0);
	sample_add_tlv(&sample, 0x05, "", 0);
	ck_assert_int_eq(parse(), 0);
	ck_assert_ptr_null(header.alpn);
	ck_assert_ptr_null(header.unique_id);
}
END_TEST

START_TEST(values_have_their_maximum)
{
	uint8_t value[257];
	memset(value, 'a', sizeof(value));
	ck_assert_int_eq(parse_with_tlv(0x05, value, 128), 0);
	ck_assert_int_eq(parse_with_tlv(0x05, value, 129), CSSL_E_TOO_LONG);
	ck_assert_int_eq(parse_with_tlv(0x02, value, 255), 0);
	ck_assert_int_eq(parse_with_tlv(0x02, value, 256), CSSL_E_TOO_LONG);
	ck_assert_int_eq(parse_with_tlv(0x01, value, 255), 0);
	ck_assert_int_eq(parse_with_tlv(0x01, value, 256), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(an_authority_has_no_control_characters)
{
	ck_assert_int_eq(PARSE_WITH_TLV(0x02, "host\r\nX-Admin:1"), CSSL_E_RANGE);
	ck_assert_int_eq(PARSE_WITH_TLV(0x02, "host\0example"), CSSL_E_RANGE);
	ck_assert_int_eq(PARSE_WITH_TLV(0x02, "host example"), CSSL_E_RANGE);
	ck_assert_int_eq(PARSE_WITH_TLV(0x02, "h\xc3\xb6st.example"), 0); /* UTF-8 */
}
END_TEST

START_TEST(certificate_on_connection_and_in_session_are_told_apart)
{
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\3\0\0\0\0"), 0);
	ck_assert_uint_eq(header.ssl_flags, PROXY_SSL | PROXY_CERT_CONN);
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\5\0\0\0\0"), 0);
	ck_assert_uint_eq(header.ssl_flags, PROXY_SSL | PROXY_CERT_SESS);
}
END_TEST

START_TEST(without_tls_there_is_no_certificate)
{
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\0\0\0\0\0\x22\0\1a"), 0);
	ck_assert_uint_eq(header.ssl_flags, 0);
	ck_assert_ptr_null(header.ssl_cn);
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\2\0\0\0\0"), CSSL_E_RANGE);
}
END_TEST

START_TEST(an_ssl_tlv_and_its_parts_may_not_overrun)
{
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\1\0\0\0"), CSSL_E_TRUNCATED);
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\1\0\0\0\0\x22\0\2a"), CSSL_E_TRUNCATED);
	ck_assert_int_eq(PARSE_WITH_TLV(0x20, "\1\0\0\0\0\x22\0"), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(a_header_longer_than_4096_is_refused_before_it_is_there)
{
	static const uint8_t filler[4096];
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0xe0, filler, 4096 - 12 - 3);
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(taken, PROXY_V2_MAX);
	sample_add(&sample, "", 1);
	sample.len = 16;
	ck_assert_int_eq(parse(), CSSL_E_TOO_LONG);
}
END_TEST

static const struct proxy_header full = {
	.version = 2,
	.command = PROXY_PROXIED,
	.family = PROXY_TCP4,
	.source = { 192, 0, 2, 1 },
	.destination = { 198, 51, 100, 2 },
	.source_port = 40000,
	.destination_port = 443,
	.alpn = "h2",
	.alpn_len = 2,
	.authority = "host.example",
	.authority_len = 12,
	.unique_id = (const uint8_t *)"0123456789abcdef",
	.unique_id_len = 16,
	.ssl_flags = PROXY_SSL | PROXY_CERT_CONN | PROXY_CERT_SESS,
	.ssl_verify = 0x14,
	.ssl_version = "TLSv1.3",
	.ssl_version_len = 7,
	.ssl_cipher = "TLS_AES_128_GCM_SHA256",
	.ssl_cipher_len = 22,
	.ssl_cn = "client",
	.ssl_cn_len = 6,
	.checksum = PROXY_WITH_CRC32C,
};

START_TEST(a_full_header_is_written_byte_by_byte)
{
	uint8_t out[PROXY_V2_MAX];
	sample_tcp4(&sample);
	sample_add_tlv(&sample, 0x05, "0123456789abcdef", 16);
	sample_add_tlv(&sample, 0x01, "h2", 2);
	sample_add_tlv(&sample, 0x02, "host.example", 12);
	sample_add_tlv(&sample, 0x20, "\7\0\0\0\x14" SSL_SUBS, 5 + sizeof(SSL_SUBS) - 1);
	sample_seal(&sample);
	ck_assert_int_eq(proxy_header_write(&full, out, sizeof(out)), (int)sample.len);
	ck_assert_mem_eq(out, sample.bytes, sample.len);
}
END_TEST

START_TEST(a_header_is_not_written_where_it_does_not_fit)
{
	uint8_t out[PROXY_V2_MAX];
	ptrdiff_t len = proxy_header_write(&full, out, sizeof(out));
	for (ptrdiff_t cap = 0; cap < len; cap++)
		ck_assert_int_eq(proxy_header_write(&full, out, (size_t)cap), CSSL_E_TOO_LONG);
	ck_assert_int_eq(proxy_header_write(&full, out, (size_t)len), len);
}
END_TEST

START_TEST(the_longest_header_that_is_read_is_written)
{
	static uint8_t out[PROXY_V2_WRITE_MAX + 1];
	static char cn[PROXY_V2_WRITE_MAX];
	struct proxy_header h = full;
	h.ssl_cn = cn;
	h.ssl_cn_len = 0;
	ptrdiff_t rest = proxy_header_write(&h, out, sizeof(out)) + 3;
	h.ssl_cn_len = (uint16_t)(PROXY_V2_MAX - (size_t)rest);
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), PROXY_V2_MAX);
	ck_assert_int_eq(proxy_header_parse(out, PROXY_V2_MAX, &header, &taken), 0);
	h.ssl_cn_len = (uint16_t)(PROXY_V2_WRITE_MAX - (size_t)rest);
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), PROXY_V2_WRITE_MAX);
	h.ssl_cn_len++;
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), CSSL_E_TOO_LONG);
}
END_TEST

/* With all that tells who the client is. */
static struct proxy_header with_certificate(void)
{
	static const uint8_t der[600] = { 0x30, 0x82 };
	struct proxy_header h = full;
	h.checksum = PROXY_WITHOUT_CRC32C;
	h.certificate = der;
	h.certificate_len = sizeof(der);
	h.subject = "CN=client";
	h.subject_len = 9;
	h.issuer = "CN=ca,O=x";
	h.issuer_len = 9;
	h.serial = "5E55";
	h.serial_len = 4;
	h.fingerprint = "ab";
	h.fingerprint_len = 2;
	h.ja4 = "t13d";
	h.ja4_len = 4;
	return h;
}

/* The value of a TLV behind the addresses of @out; NULL: there is none. @at: of the SSL TLV, 5 bytes in. */
static const uint8_t *value_in(const uint8_t *at, const uint8_t *end, uint8_t type, size_t *len)
{
	for (; at + 3 <= end; at += 3 + *len) {
		*len = (size_t)at[1] << 8 | at[2];
		if (at[0] == type)
			return at + 3;
	}
	return NULL;
}

START_TEST(a_header_tells_who_the_client_is)
{
	static const struct {
		uint8_t type;
		const char *value;
	} rows[] = { { 0xe0, "CN=client" }, { 0xe1, "CN=ca,O=x" }, { 0xe2, "5E55" }, { 0xe3, "ab" }, { 0xe4, "t13d" } };
	struct proxy_header h = with_certificate();
	uint8_t out[PROXY_V2_MAX];
	size_t len, ssl_len;
	ptrdiff_t whole = proxy_header_write(&h, out, sizeof(out));
	ck_assert_int_gt(whole, 0);
	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		const uint8_t *value = value_in(out + 28, out + whole, rows[i].type, &len);
		ck_assert_ptr_nonnull(value);
		ck_assert_uint_eq(len, strlen(rows[i].value));
		ck_assert_mem_eq(value, rows[i].value, len);
	}
	const uint8_t *ssl = value_in(out + 28, out + whole, 0x20, &ssl_len);
	const uint8_t *der = value_in(ssl + 5, ssl + ssl_len, 0x28, &len);
	ck_assert_uint_eq(len, h.certificate_len);
	ck_assert_mem_eq(der, h.certificate, len);
	/* readers that know none of these read the rest */
	ck_assert_int_eq(proxy_header_parse(out, (size_t)whole, &header, &taken), 0);
	ck_assert_mem_eq(header.ssl_cn, "client", 6);
	ck_assert_ptr_null(header.subject);
}
END_TEST

START_TEST(what_does_not_fit_is_left_out_as_a_whole)
{
	/* certificate, JA4, issuer, serial, subject, then what the client may choose, fingerprint, name */
	const size_t order[] = { 603, 7, 12, 7, 12, 15, 5, 5, 9 };
	uint8_t out[PROXY_V2_MAX];
	struct proxy_header all = with_certificate(), h = all;
	size_t max = (size_t)proxy_header_write(&all, out, sizeof(out));
	ck_assert_uint_eq(proxy_header_fit(&h, max), 0);
	ck_assert_int_eq(proxy_header_write(&h, out, max), (ptrdiff_t)max);
	for (unsigned i = 0; i < SUITE_LEN(order); i++) {
		h = all;
		ck_assert_uint_eq(proxy_header_fit(&h, max - 1), i + 1);
		max -= order[i];
		ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), (ptrdiff_t)max);
	}
	h = all;
	proxy_header_fit(&h, 0); /* an address is never left out */
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), 28 + 3 + 5);
}
END_TEST

START_TEST(a_long_server_name_leaves_out_nothing_that_tells_who_the_client_is)
{
	uint8_t out[536];
	char name[255], words[64];
	struct proxy_header h = with_certificate();
	memset(name, 'n', sizeof(name));
	memset(words, 'w', sizeof(words));
	h.authority = name;
	h.authority_len = sizeof(name);
	h.ssl_cn = h.fingerprint = words;
	h.ssl_cn_len = h.fingerprint_len = sizeof(words);
	proxy_header_fit(&h, sizeof(out));
	ck_assert_int_gt(proxy_header_write(&h, out, sizeof(out)), 0);
	ck_assert(h.unique_id_len && h.ssl_version_len && h.ssl_cn_len && h.fingerprint_len);
	h.authority_len = sizeof(name);
	h.ssl_cn_len = 250; /* now only one of the two fits */
	h.ssl_cn = name;
	proxy_header_fit(&h, sizeof(out));
	ck_assert(h.unique_id_len && h.ssl_version_len && h.ssl_cn_len && h.fingerprint_len && !h.authority_len);
}
END_TEST

START_TEST(a_local_header_is_written_without_anything)
{
	struct proxy_header h = full;
	uint8_t out[PROXY_V2_MAX];
	h.command = PROXY_LOCAL;
	sample_begin(&sample, 0x20, 0x00);
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), 16);
	ck_assert_mem_eq(out, sample.bytes, 16);
}
END_TEST

START_TEST(a_header_that_no_reader_would_accept_is_not_written)
{
	uint8_t out[PROXY_V2_MAX];
	char name[256];
	memset(name, 'a', sizeof(name));
	struct proxy_header h = full;
	h.authority = name;
	h.authority_len = 256;
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), CSSL_E_TOO_LONG);
	h = full;
	h.authority = "a b";
	h.authority_len = 3;
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), CSSL_E_RANGE);
	h = full;
	h.family = (enum proxy_family)9;
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), CSSL_E_TYPE);
	h = full;
	char cn[4096];
	memset(cn, 'a', sizeof(cn));
	h.ssl_cn = cn;
	h.ssl_cn_len = sizeof(cn);
	ck_assert_int_eq(proxy_header_write(&h, out, sizeof(out)), CSSL_E_TOO_LONG);
}
END_TEST

UNIT(proxy_v2)
{
	const TTest *facts[] = {
		a_tcp4_header_is_read,
		a_tcp6_header_is_read,
		every_tlv_that_we_know_is_read,
		the_crc_of_these_tests_is_crc32c,
		v2_header_with_bad_crc_is_refused,
		a_changed_address_fails_the_crc,
		the_crc_may_stand_before_other_tlvs,
		a_crc_has_four_bytes,
		every_shorter_header_is_incomplete,
		only_version_2_and_its_two_commands_exist,
		only_the_families_of_the_specification_exist,
		datagram_families_give_no_address_but_their_tlvs,
		a_block_shorter_than_its_family_is_refused,
		of_a_local_header_nothing_is_believed,
		a_tlv_that_overruns_is_refused,
		unknown_tlvs_are_skipped,
		a_tlv_that_comes_twice_is_refused,
		empty_values_are_as_if_absent,
		values_have_their_maximum,
		an_authority_has_no_control_characters,
		certificate_on_connection_and_in_session_are_told_apart,
		without_tls_there_is_no_certificate,
		an_ssl_tlv_and_its_parts_may_not_overrun,
		a_header_longer_than_4096_is_refused_before_it_is_there,
		a_full_header_is_written_byte_by_byte,
		a_header_is_not_written_where_it_does_not_fit,
		the_longest_header_that_is_read_is_written,
		a_header_tells_who_the_client_is,
		what_does_not_fit_is_left_out_as_a_whole,
		a_long_server_name_leaves_out_nothing_that_tells_who_the_client_is,
		a_local_header_is_written_without_anything,
		a_header_that_no_reader_would_accept_is_not_written,
	};
	return suite_run("proxy_v2", facts, SUITE_LEN(facts));
}
