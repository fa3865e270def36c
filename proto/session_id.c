/* session_id.c: the check is SipHash-2-4 over all the rest, cut to 5 bytes: 1 in 2^40 random legacy ids passes by
 * chance, and then costs one pull that finds nothing. */
#include "proto/session_id.h"

#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define CHECK_AT  5u
#define CHECK_LEN 5u
#define RANDOM_AT (CHECK_AT + CHECK_LEN)

_Static_assert(SESSION_ID_CHECK_KEY_LEN == crypto_shorthash_KEYBYTES, "SipHash takes the check key");
_Static_assert(RANDOM_AT + 22 == SESSION_ID_LEN, "an id is full");

static void check_compute(uint8_t out[static CHECK_LEN], const uint8_t id[static SESSION_ID_LEN], const uint8_t *key)
{
	uint8_t checked[SESSION_ID_LEN - CHECK_LEN];
	uint8_t hash[crypto_shorthash_BYTES];

	memcpy(checked, id, CHECK_AT);
	memcpy(checked + CHECK_AT, id + RANDOM_AT, SESSION_ID_LEN - RANDOM_AT);
	crypto_shorthash(hash, checked, sizeof checked, key);
	memcpy(out, hash, CHECK_LEN);
}

void session_id_make(uint8_t out[static SESSION_ID_LEN], uint16_t origin, uint64_t now_s,
	const uint8_t random[static 22], const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN])
{
	struct wire_writer w = wire_writer(out, SESSION_ID_LEN);

	wire_put_u16(&w, origin);
	wire_put_u24(&w, (uint32_t)(now_s / SESSION_ID_TICK_S));
	wire_put_bytes(&w, (uint8_t[CHECK_LEN]){ 0 }, CHECK_LEN);
	wire_put_bytes(&w, random, SESSION_ID_LEN - RANDOM_AT);
	check_compute(out + CHECK_AT, out, check_key);
}

int session_id_check(const uint8_t *id, size_t len, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN],
	struct session_id_facts *out)
{
	uint8_t expected[CHECK_LEN];
	struct wire_reader r = wire_reader(id, len);

	if (len != SESSION_ID_LEN)
		return CSSL_E_MISMATCH;
	check_compute(expected, id, check_key);
	if (sodium_memcmp(expected, id + CHECK_AT, CHECK_LEN) != 0)
		return CSSL_E_MISMATCH;
	if (out) {
		out->origin = wire_u16(&r);
		out->issued_tick = wire_u24(&r);
	}
	return 0;
}

int session_id_compare(const uint8_t a[static SESSION_ID_LEN], const uint8_t b[static SESSION_ID_LEN])
{
	const int order = memcmp(a + RANDOM_AT, b + RANDOM_AT, SESSION_ID_LEN - RANDOM_AT);

	return order ? order : memcmp(a, b, RANDOM_AT);
}

uint64_t session_id_rank(const uint8_t id[static SESSION_ID_LEN])
{
	return wire_load_u64(id + RANDOM_AT);
}

uint16_t session_id_origin(const char *agent_name)
{
	uint8_t hash[crypto_generichash_BYTES_MIN];

	crypto_generichash(hash, sizeof hash, (const uint8_t *)agent_name, strlen(agent_name), NULL, 0);
	return wire_load_u16(hash);
}
