/* live_pair.c */
#include "tests/lib/live_pair.h"

#include <string.h>

#include "proto/error.h"

struct live_position live_part_position(const struct live_part *part)
{
	return (struct live_position){ part->read_generation, part->write_generation, part->read_sequence,
		part->write_sequence };
}

struct live_part live_part_mirror(const struct live_part *part)
{
	struct live_part m = *part;

	m.client_write = part->server_write;
	m.server_write = part->client_write;
	m.read_generation = part->write_generation;
	m.write_generation = part->read_generation;
	m.read_sequence = part->write_sequence;
	m.write_sequence = part->read_sequence;
	return m;
}

static void invent_keys(const struct cipher_suite *suite, uint8_t seed, struct direction_keys *out)
{
	if (suite->protocol_version == TLS13_VERSION_WIRE) {
		out->secret_len = suite->hash_len;
		memset(out->secret, seed, out->secret_len);
		return;
	}
	out->key_len = suite->key_len;
	out->iv_len = suite->iv_len;
	memset(out->key, seed, out->key_len);
	memset(out->iv, seed + 1, out->iv_len);
}

int live_pair_start(struct live_pair *p, uint16_t suite, uint16_t max_fragment)
{
	uint64_t sequence;

	*p = (struct live_pair){ .suite = cipher_suite_find(suite), .pool = live_pool_create(tls_library_best()) };
	if (!p->suite || !p->pool)
		return CSSL_E_NO_MEMORY;
	sequence = p->suite->protocol_version == TLS13_VERSION_WIRE ? 0 : 1;
	p->part = (struct live_part){ .epoch = 1,
		.max_fragment = max_fragment,
		.read_sequence = sequence,
		.write_sequence = sequence,
		.remaining_s = 3600 };
	memset(p->part.connection.bytes, 0x77, CONNECTION_ID_LEN);
	if (p->suite->iv_len < AEAD_IV_LEN)
		memset(p->part.record_nonce, 0xfe, sizeof(p->part.record_nonce));
	invent_keys(p->suite, 0x11, &p->part.client_write);
	invent_keys(p->suite, 0x22, &p->part.server_write);
	p->client = record_forge_create(p->suite, &p->part.client_write, sequence);
	if (!p->client)
		return CSSL_E_NO_MEMORY;

	struct live_position at = live_part_position(&p->part);
	struct live_part mirror = live_part_mirror(&p->part);
	struct live_position mirrored = live_part_position(&mirror);
	int r = live_create(p->pool, &p->part, suite, &at, 1, LIVE_CONTINUES, &p->agent);
	return r < 0 ? r : live_create(p->pool, &mirror, suite, &mirrored, 1, LIVE_CONTINUES, &p->reader);
}

void live_pair_stop(struct live_pair *p)
{
	record_forge_destroy(p->client);
	live_destroy(p->agent);
	live_destroy(p->reader);
	live_pool_destroy(p->pool);
}

int live_open_bytes(struct live *l, uint8_t *bytes, size_t len, uint64_t now_ms, struct live_record *out)
{
	struct tls_record_batch batch;
	struct tls_record_header bad;
	int r = tls_record_take(bytes, len, len, &batch, &bad);

	if (r < 0 || batch.count != 1 || batch.len != len)
		return r < 0 ? r : CSSL_E_TRUNCATED;
	return live_open(l, &batch.records[0], now_ms, out);
}
