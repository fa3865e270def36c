/* link_hello.c: the hello on the wire: version_min (2) | version_max (2) | role (1) | protection (1) | aead (1) |
 * boot id (8) | worker (2) | target worker (2) | workers (2) | bytes (1) | id check key (16) | name length (1) | name.
 */
#include "proto/link_hello.h"

#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

/* Names are for logs and look-ups: no blank, no control character, ASCII only. */
static int name_check(const char *name, size_t len)
{
	if (len == 0)
		return CSSL_E_RANGE;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return CSSL_E_RANGE;
	return 0;
}

static int hello_check(const struct link_hello *h)
{
	size_t name_len = strnlen(h->name, sizeof h->name);

	if (name_len == sizeof h->name)
		return CSSL_E_RANGE;
	if (h->version_min == 0 || h->version_min > h->version_max)
		return CSSL_E_RANGE;
	if (h->role != LINK_ROLE_RAGENT && h->role != LINK_ROLE_AGENT)
		return CSSL_E_RANGE;
	if (h->protection != LINK_TRUSTED && h->protection != LINK_SEALED)
		return CSSL_E_RANGE;
	if (h->aead != AEAD_AES_256_GCM && h->aead != AEAD_CHACHA20_POLY1305)
		return CSSL_E_RANGE;
	return name_check(h->name, name_len);
}

ptrdiff_t link_hello_write(const struct link_hello *h, uint8_t out[static LINK_HELLO_LEN_MAX])
{
	struct wire_writer w = wire_writer(out, LINK_HELLO_LEN_MAX);
	int r = hello_check(h);

	if (r)
		return r;
	wire_put_u16(&w, h->version_min);
	wire_put_u16(&w, h->version_max);
	wire_put_u8(&w, (uint8_t)h->role);
	wire_put_u8(&w, (uint8_t)h->protection);
	wire_put_u8(&w, (uint8_t)h->aead);
	wire_put_u64(&w, h->boot_id);
	wire_put_u16(&w, h->worker);
	wire_put_u16(&w, h->target_worker);
	wire_put_u16(&w, h->workers);
	wire_put_u8(&w, (uint8_t)h->bytes);
	wire_put_bytes(&w, h->id_check_key, sizeof h->id_check_key);
	wire_put_u8(&w, (uint8_t)strlen(h->name));
	wire_put_bytes(&w, h->name, strlen(h->name));
	return wire_writer_len(&w);
}

int link_hello_read(const uint8_t *in, size_t len, struct link_hello *out)
{
	struct wire_reader r = wire_reader(in, len);
	struct link_hello h = { 0 };
	const uint8_t *key, *name;

	h.version_min = wire_u16(&r);
	h.version_max = wire_u16(&r);
	h.role = (enum link_role)wire_u8(&r);
	h.protection = (enum link_protection)wire_u8(&r);
	h.aead = (enum aead)wire_u8(&r);
	h.boot_id = wire_u64(&r);
	h.worker = wire_u16(&r);
	h.target_worker = wire_u16(&r);
	h.workers = wire_u16(&r);
	h.bytes = wire_u8(&r) == LINK_BYTES_IN_MEMORY ? LINK_BYTES_IN_MEMORY : LINK_BYTES_ON_SOCKET;
	key = wire_bytes(&r, sizeof h.id_check_key);
	uint8_t name_len = wire_u8(&r);
	name = wire_bytes(&r, name_len);
	if (!name)
		return CSSL_E_TRUNCATED;
	if (name_len >= sizeof h.name || name_check((const char *)name, name_len) != 0)
		return CSSL_E_RANGE;
	memcpy(h.id_check_key, key, sizeof h.id_check_key);
	memcpy(h.name, name, name_len);
	if (hello_check(&h) != 0)
		return CSSL_E_RANGE;
	*out = h;
	return 0;
}

int link_hello_match(
	const struct link_hello *mine, const struct link_hello *theirs, enum link_role expected, uint16_t *version)
{
	uint16_t lowest = mine->version_min > theirs->version_min ? mine->version_min : theirs->version_min;
	uint16_t highest = mine->version_max < theirs->version_max ? mine->version_max : theirs->version_max;

	if (theirs->role != expected || theirs->protection != mine->protection)
		return CSSL_E_MISMATCH;
	if (lowest > highest)
		return CSSL_E_VERSION;
	*version = highest;
	return 0;
}
