/* proxy_header.c: version 1 of the PROXY protocol, a line of text: words between single spaces, nothing optional; and
 * the choice of the version. A header is refused as soon as its first bytes fit neither version, so a client without a
 * header is refused at once. Section numbers are those of haproxy doc/proxy-protocol.txt. */
#include "proto/proxy_header.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define PREFIX     "PROXY "
#define PREFIX_LEN (sizeof PREFIX - 1)
#define UNKNOWN    "UNKNOWN"
#define WORD_MAX   48u /* the longest address and its end */

enum place { INNER, LAST };

/* The word at the head of the line, terminated. One space must follow it, or the line must end. */
static int proxy_header_next_word(struct wire_reader *line, enum place place, char word[static WORD_MAX])
{
	size_t left = wire_left(line);
	const uint8_t *space = memchr(line->at, ' ', left);
	size_t len = space ? (size_t)(space - line->at) : left;
	if ((space == NULL) != (place == LAST) || len == 0 || len >= WORD_MAX || memchr(line->at, 0, len))
		return CSSL_E_RANGE;
	memcpy(word, wire_bytes(line, len), len);
	word[len] = 0;
	wire_bytes(line, place == INNER);
	return 0;
}

static int next_address(struct wire_reader *line, int family, uint8_t address[static 16])
{
	char word[WORD_MAX];
	int r = proxy_header_next_word(line, INNER, word);
	if (r < 0)
		return r;
	return inet_pton(family, word, address) == 1 ? 0 : CSSL_E_RANGE;
}

/* Decimal without sign or leading zeros. */
static int next_port(struct wire_reader *line, enum place place, uint16_t *port)
{
	char word[WORD_MAX];
	int r = proxy_header_next_word(line, place, word);
	if (r < 0)
		return r;
	size_t len = strlen(word);
	if (len > 5 || strspn(word, "0123456789") != len || (word[0] == '0' && len > 1))
		return CSSL_E_RANGE;
	unsigned value = 0;
	for (size_t i = 0; i < len; i++)
		value = value * 10 + (unsigned)(word[i] - '0');
	*port = (uint16_t)value;
	return value <= UINT16_MAX ? 0 : CSSL_E_RANGE;
}

/* Section 2.1: all that follows UNKNOWN is ignored. */
static bool is_unknown(const struct wire_reader *line)
{
	size_t len = sizeof UNKNOWN - 1;
	size_t left = wire_left(line);
	return left >= len && memcmp(line->at, UNKNOWN, len) == 0 && (left == len || line->at[len] == ' ');
}

static int parse_v1_line(struct wire_reader *line, struct proxy_header *out)
{
	char word[WORD_MAX];
	if (is_unknown(line))
		return 0;
	if (proxy_header_next_word(line, INNER, word) < 0)
		return CSSL_E_RANGE;
	if (strcmp(word, "TCP4") == 0)
		out->family = PROXY_TCP4;
	else if (strcmp(word, "TCP6") == 0)
		out->family = PROXY_TCP6;
	else
		return CSSL_E_TYPE;
	int af = out->family == PROXY_TCP4 ? AF_INET : AF_INET6;
	if (next_address(line, af, out->source) < 0 || next_address(line, af, out->destination) < 0 ||
		next_port(line, INNER, &out->source_port) < 0 || next_port(line, LAST, &out->destination_port) < 0)
		return CSSL_E_RANGE;
	return 0;
}

/* As proxy_header_parse(), for an input that begins with the whole prefix and a zeroed @out. */
static int v1_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken)
{
	const uint8_t *end = memmem(in, len < PROXY_V1_MAX ? len : PROXY_V1_MAX, "\r\n", 2);
	if (!end)
		return len < PROXY_V1_MAX ? PROXY_INCOMPLETE : CSSL_E_TOO_LONG;
	out->version = 1;
	out->command = PROXY_PROXIED;
	*taken = (size_t)(end - in) + 2;
	struct wire_reader line = wire_reader(in + PREFIX_LEN, (size_t)(end - in) - PREFIX_LEN);
	return parse_v1_line(&line, out);
}

static ptrdiff_t v1_write(const struct proxy_header *h, uint8_t *out, size_t cap)
{
	char line[128] = PREFIX UNKNOWN "\r\n";
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
	bool carried = h->family == PROXY_TCP4 || h->family == PROXY_TCP6;
	int af = h->family == PROXY_TCP4 ? AF_INET : AF_INET6;

	if (h->command == PROXY_PROXIED && carried) {
		inet_ntop(af, h->source, source, sizeof source);
		inet_ntop(af, h->destination, destination, sizeof destination);
		snprintf(line, sizeof line, PREFIX "%s %s %s %u %u\r\n", af == AF_INET ? "TCP4" : "TCP6", source,
			destination, h->source_port, h->destination_port);
	}
	struct wire_writer w = wire_writer(out, cap);
	wire_put_bytes(&w, line, strlen(line));
	return wire_writer_len(&w);
}

/* --- both --- */

/* As far as it has come. */
static bool begins_with(const uint8_t *in, size_t len, const char *magic, size_t magic_len)
{
	return memcmp(in, magic, len < magic_len ? len : magic_len) == 0;
}

int proxy_header_parse(const uint8_t *in, size_t len, struct proxy_header *out, size_t *taken)
{
	*out = (struct proxy_header){ 0 };
	*taken = 0;
	if (len == 0)
		return PROXY_INCOMPLETE;
	if (begins_with(in, len, PREFIX, PREFIX_LEN))
		return len < PREFIX_LEN ? PROXY_INCOMPLETE : v1_parse(in, len, out, taken);
	if (begins_with(in, len, PROXY_V2_SIGNATURE, PROXY_V2_SIGNATURE_LEN))
		return len < PROXY_V2_SIGNATURE_LEN ? PROXY_INCOMPLETE : proxy_v2_parse(in, len, out, taken);
	return CSSL_E_TYPE;
}

ptrdiff_t proxy_header_write(const struct proxy_header *h, uint8_t *out, size_t cap)
{
	switch (h->version) {
	case 1: return v1_write(h, out, cap);
	case 2: return proxy_v2_write(h, out, cap);
	default: return CSSL_E_VERSION;
	}
}
