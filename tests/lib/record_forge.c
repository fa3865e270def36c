/* record_forge.c: the record layer's own AEAD and key schedule without its rules. */
#include "tests/lib/record_forge.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/key_schedule.h"
#include "sslagent/tls/record_aead.h"

struct record_forge {
	const struct cipher_suite *suite;
	struct record_aead *aead;
	EVP_KDF_CTX *schedule;
	struct direction_keys keys;
	struct record_key key;
	uint64_t sequence;
	uint8_t inner[FORGED_RECORD_MAX];
};

static int is_tls13(const struct record_forge *f)
{
	return f->suite->protocol_version == TLS13_VERSION_WIRE;
}

struct record_forge *record_forge_create(
	const struct cipher_suite *suite, const struct direction_keys *keys, uint64_t sequence)
{
	struct record_forge *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->suite = suite;
	f->keys = *keys;
	f->sequence = sequence;
	f->key.bytes = f->keys.key;
	f->aead = record_aead_create();
	f->schedule = key_schedule_create(tls_library_best());
	if (f->aead && f->schedule && record_cipher_find(suite->aead, &f->key.cipher) == 0 &&
		(!is_tls13(f) || key_schedule_derive(f->schedule, suite, &f->keys) == 0))
		return f;
	record_forge_destroy(f);
	return NULL;
}

void record_forge_destroy(struct record_forge *f)
{
	if (!f)
		return;
	if (f->aead)
		record_key_drop(f->aead, &f->key);
	record_aead_destroy(f->aead);
	EVP_KDF_CTX_free(f->schedule);
	free(f);
}

int record_forge_step(struct record_forge *f)
{
	int r = key_schedule_next_secret(f->schedule, f->suite, f->keys.secret, f->keys.secret);

	record_key_drop(f->aead, &f->key);
	f->sequence = 0;
	return r < 0 ? r : key_schedule_derive(f->schedule, f->suite, &f->keys);
}

uint64_t record_forge_sequence(const struct record_forge *f)
{
	return f->sequence;
}

/* content | type | zeros */
static size_t put_inner(struct record_forge *f, const struct forged_record *r)
{
	struct wire_writer w = wire_writer(f->inner, sizeof(f->inner));

	if (r->len > 0)
		wire_put_bytes(&w, r->content, r->len);
	if (is_tls13(f)) {
		wire_put_u8(&w, r->type);
		for (size_t i = 0; i < r->padding; i++)
			wire_put_u8(&w, 0);
	}
	ptrdiff_t len = wire_writer_len(&w);
	return len < 0 ? 0 : (size_t)len;
}

static size_t put_ad(
	struct record_forge *f, const struct forged_record *r, const uint8_t *header, size_t len, uint8_t *ad)
{
	struct wire_writer w = wire_writer(ad, 13);

	if (is_tls13(f)) {
		wire_put_bytes(&w, header, TLS_RECORD_HEADER_LEN);
	} else {
		wire_put_u64(&w, f->sequence);
		wire_put_u8(&w, r->type);
		wire_put_u16(&w, r->version ? r->version : TLS12_VERSION_WIRE);
		wire_put_u16(&w, (uint16_t)len);
	}
	return (size_t)wire_writer_len(&w);
}

ptrdiff_t record_forge_seal(struct record_forge *f, const struct forged_record *r, uint8_t *out, size_t cap)
{
	size_t explicit_len = is_tls13(f) ? 0 : AEAD_IV_LEN - f->suite->iv_len;
	size_t len = put_inner(f, r), body = explicit_len + len + RECORD_TAG_LEN;
	uint8_t outer = is_tls13(f) ? r->outer_type : r->type, ad[13];
	struct record_operation o = {
		.ad = ad, .in = f->inner, .len = len, .out = out + TLS_RECORD_HEADER_LEN + explicit_len
	};

	if (body > UINT16_MAX || TLS_RECORD_HEADER_LEN + body > cap)
		return CSSL_E_TOO_LONG;
	tls_record_header_write(out, outer || !is_tls13(f) ? outer : (uint8_t)TLS_APPLICATION_DATA,
		r->version ? r->version : TLS12_VERSION_WIRE, (uint16_t)body);
	memcpy(o.nonce, f->keys.iv, f->keys.iv_len);
	for (unsigned i = 0; i < 8; i++)
		o.nonce[AEAD_IV_LEN - 1 - i] ^= (uint8_t)(f->sequence >> (8 * i));
	/* An explicit nonce only has to differ from the client's earlier ones, which count up from a random number. */
	if (explicit_len > 0) {
		o.nonce[f->suite->iv_len] ^= 0x5a;
		memcpy(out + TLS_RECORD_HEADER_LEN, o.nonce + f->suite->iv_len, explicit_len);
	}
	o.ad_len = put_ad(f, r, out, len, ad);
	int result = record_aead_seal(f->aead, &f->key, &o, NULL);
	if (result < 0)
		return result;
	if (r->tag == FORGED_TAG_WRONG)
		out[TLS_RECORD_HEADER_LEN + body - 1] ^= 1;
	f->sequence++;
	return (ptrdiff_t)(TLS_RECORD_HEADER_LEN + body);
}
