/* live.c: the ownership of a connection's record layer begins, freezes and moves here. live_open.c checks the client's
 * records, live_seal.c writes. A live part of SESS_OBJ has the struct's content without the fields that only this agent
 * needs (loaded contexts, rates). */
#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "net/points/audit.h"
#include "net/points/mutant.h"
#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/key_schedule.h"
#include "sslagent/tls/live.h"
#include "sslagent/tls/live_internal.h"

#define TLS12_NONCE_SEQUENCE_MAX (1ull << 48) /* the epoch is in the bits above */

#define TO(s) (1u << (s))
static const unsigned may_move_to[] = {
	[LIVE_OWNS] = TO(LIVE_UNCOMMITTED) | TO(LIVE_ENDED) | TO(LIVE_FROZEN),
	[LIVE_UNCOMMITTED] = TO(LIVE_OWNS) | TO(LIVE_FROZEN),
	[LIVE_ENDED] = TO(LIVE_FROZEN),
	[LIVE_FROZEN] = 0,
};

void live_move(struct live *l, enum live_state to)
{
	assert(may_move_to[l->state] & TO(to));
	l->state = (uint8_t)to;
}

struct live_pool *live_pool_create(enum tls_algorithms a)
{
	struct live_pool *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->aead = record_aead_create();
	p->schedule = key_schedule_create(a);
	slabs_init_secret(&p->lives, sizeof(struct live));
	if (p->aead && p->schedule)
		return p;
	live_pool_destroy(p);
	return NULL;
}

void live_pool_destroy(struct live_pool *p)
{
	if (!p)
		return;
	slabs_clear(&p->lives);
	EVP_KDF_CTX_free(p->schedule);
	record_aead_destroy(p->aead);
	free(p);
}

/* AES-GCM: 2^24.5 full records of one key (RFC 8446 5.5, RFC 9325 4.4). TLS 1.3 updates its keys long before; TLS 1.2
 * has to end the connection, so it goes nearer to the limit. For ChaCha20-Poly1305 the sequence number ends first. */
uint64_t live_limit(const struct live *l)
{
	if (l->pool->limit)
		return l->pool->limit;
	if (l->write.loaded.cipher == RECORD_CHACHA20_POLY1305)
		return TLS12_NONCE_SEQUENCE_MAX - 2; /* the last ones are for alerts */
	return live_is_tls13(l) ? 1ull << 23 : 1ull << 24;
}

bool live_tls12_limit_reached(const struct live *l)
{
	return !live_is_tls13(l) && (l->write.sequence >= live_limit(l) || l->read.sequence >= live_limit(l));
}

void live_nonce_from_sequence(const struct live_direction *d, uint8_t out[static AEAD_IV_LEN])
{
	memcpy(out, d->keys.iv, AEAD_IV_LEN);
	for (unsigned i = 0; i < 8; i++)
		out[AEAD_IV_LEN - 1 - i] ^= (uint8_t)(d->sequence >> (8 * i));
}

void live_tls12_ad(uint64_t sequence, uint8_t type, size_t len, uint8_t out[static TLS12_AD_LEN])
{
	struct wire_writer w = wire_writer(out, TLS12_AD_LEN);

	wire_put_u64(&w, sequence);
	wire_put_u8(&w, type);
	wire_put_u16(&w, TLS12_VERSION_WIRE);
	wire_put_u16(&w, (uint16_t)len);
}

int live_step_keys(struct live *l, struct live_direction *d)
{
	struct direction_keys next = { .secret_len = l->suite->hash_len };
	int r = key_schedule_next_secret(l->pool->schedule, l->suite, d->keys.secret, next.secret);

	if (r == 0)
		r = key_schedule_derive(l->pool->schedule, l->suite, &next);
	if (r == 0) {
		record_key_drop(l->pool->aead, &d->loaded);
		d->keys = next;
		d->generation++;
		d->sequence = 0;
	}
	OPENSSL_cleanse(&next, sizeof next);
	return r;
}

static bool keys_fit(const struct cipher_suite *suite, const struct direction_keys *d)
{
	if (suite->protocol_version == TLS13_VERSION_WIRE)
		return d->secret_len == suite->hash_len;
	return d->key_len == suite->key_len && d->iv_len == suite->iv_len;
}

static bool position_fits(
	const struct cipher_suite *suite, const struct live_part *part, const struct live_position *at)
{
	uint32_t max = suite->protocol_version == TLS13_VERSION_WIRE ? LIVE_RATCHET_MAX : 0;

	return at->read_generation >= part->read_generation && at->read_generation - part->read_generation <= max &&
	       at->write_generation >= part->write_generation && at->write_generation - part->write_generation <= max;
}

/* Could sealing from @at on repeat a nonce of an earlier owner (law 1)? */
static bool is_unsafe(const struct cipher_suite *suite, const struct live_part *part, const struct live_position *at,
	uint16_t epoch, enum live_start start)
{
	bool first_ownership = epoch == 1 && part->epoch == 1 && start == LIVE_CONTINUES;
	bool tls12 = suite->protocol_version == TLS12_VERSION_WIRE;

	/* law 2: each ownership has a higher epoch; only the first continues the handshake, in the same one */
	if (epoch == 0 || (epoch <= part->epoch && !first_ownership))
		return true;
	if (tls12 && at->write_sequence >= TLS12_NONCE_SEQUENCE_MAX)
		return true;
	if (at->write_generation == part->write_generation && at->write_sequence < part->write_sequence &&
		!mutant("position-unchecked"))
		return true; /* RAgent got the part after all records that were sealed before it */
	/* ChaCha20 of TLS 1.2: neither an epoch nor a KeyUpdate can help */
	return start == LIVE_TAKES_OVER && tls12 && !cipher_suite_has_record_nonce(suite) &&
	       !mutant("chacha20-taken-over");
}

static int direction_start(
	struct live *l, struct live_direction *d, const struct direction_keys *keys, uint32_t from, uint32_t to)
{
	int r = 0;

	d->keys = *keys;
	d->generation = from;
	d->loaded.bytes = d->keys.key;
	if (!live_is_tls13(l))
		return 0;
	/* law 3: the keys of the generation that RAgent committed, not of the one in the copy */
	for (uint32_t g = from; r == 0 && g < to && !mutant("generation-ignored"); g++)
		r = key_schedule_next_secret(l->pool->schedule, l->suite, d->keys.secret, d->keys.secret);
	d->generation = to;
	return r < 0 ? r : key_schedule_derive(l->pool->schedule, l->suite, &d->keys);
}

static int start_directions(struct live *l, const struct live_part *part, const struct live_position *at)
{
	int r = record_cipher_find(l->suite->aead, &l->read.loaded.cipher);

	if (r < 0)
		return r;
	l->write.loaded.cipher = l->read.loaded.cipher;
	r = direction_start(l, &l->read, &part->client_write, part->read_generation, at->read_generation);
	if (r < 0)
		return r;
	r = direction_start(l, &l->write, &part->server_write, part->write_generation, at->write_generation);
	if (r < 0)
		return r;
	l->read.sequence = at->read_sequence;
	/* law 3: the copy is older than the records that the owner before sealed */
	l->write.sequence = mutant("position-ignored") ? part->write_sequence : at->write_sequence;
	return 0;
}

int live_create(struct live_pool *p, const struct live_part *part, uint16_t cipher_suite,
	const struct live_position *at, uint16_t epoch, enum live_start start, struct live **out)
{
	const struct cipher_suite *suite = cipher_suite_find(cipher_suite);

	if (!suite || !keys_fit(suite, &part->client_write) || !keys_fit(suite, &part->server_write) ||
		part->max_fragment > TLS_PLAINTEXT_MAX)
		return CSSL_E_RANGE;
	if (!position_fits(suite, part, at))
		return CSSL_E_MISMATCH;
	if (is_unsafe(suite, part, at, epoch, start))
		return CSSL_E_UNSAFE;

	struct live *l = slabs_take(&p->lives);
	if (!l)
		return CSSL_E_NO_MEMORY;
	*l = (struct live){ .pool = p,
		.suite = suite,
		.connection = part->connection,
		.epoch = epoch,
		.max_fragment = part->max_fragment,
		.remaining_s = part->remaining_s,
		.state = LIVE_OWNS,
		.end_reason = END_DONE };
	memcpy(l->nonce_base, part->record_nonce, sizeof l->nonce_base);
	/* law 5: the owner before may have sealed here already. Law 6: it may have owed a KeyUpdate, which is still
	 * owed. */
	bool in_doubt = start == LIVE_TAKES_OVER && !mutant("key-update-omitted");
	if (live_is_tls13(l) && (in_doubt || part->key_update == KEY_UPDATE_OWED))
		l->owed = OWES_KEY_UPDATE;
	int r = start_directions(l, part, at);
	if (r < 0) {
		live_destroy(l);
		return r;
	}
	*out = l;
	return 0;
}

void live_destroy(struct live *l)
{
	if (!l)
		return;
	record_key_drop(l->pool->aead, &l->read.loaded);
	record_key_drop(l->pool->aead, &l->write.loaded);
	slabs_give(&l->pool->lives, l);
}

unsigned live_ends(const struct live *l)
{
	enum live_state s = l->state == LIVE_FROZEN ? l->frozen_state : l->state;

	return (l->reading == READ_OPEN ? 0u : LIVE_READ_CLOSED) | (s == LIVE_ENDED ? LIVE_WRITE_CLOSED : 0u);
}

void live_restore_ends(struct live *l, unsigned ends)
{
	if ((ends & LIVE_READ_CLOSED) && l->reading == READ_OPEN)
		l->reading = READ_CLOSED;
	if ((ends & LIVE_WRITE_CLOSED) && l->state == LIVE_OWNS)
		live_move(l, LIVE_ENDED);
}

static void describe_keys(const struct live *l, const struct live_direction *d, struct direction_keys *out)
{
	if (!live_is_tls13(l)) {
		*out = d->keys;
		return;
	}
	memcpy(out->secret, d->keys.secret, d->keys.secret_len); /* key and iv follow from it */
	out->secret_len = d->keys.secret_len;
}

int live_describe(const struct live *l, enum live_moment moment, struct live_part *out)
{
	*out = (struct live_part){ .connection = l->connection,
		.epoch = l->epoch,
		.max_fragment = l->max_fragment,
		.read_generation = l->read.generation,
		.write_generation = l->write.generation,
		.read_sequence = l->read.sequence - l->begun_records,
		.write_sequence = l->write.sequence,
		.remaining_s = l->remaining_s,
		.key_update = l->owed == OWES_KEY_UPDATE && !mutant("key-update-forgotten") ? KEY_UPDATE_OWED
											    : KEY_UPDATE_NOT_OWED,
		.exported = l->state == LIVE_FROZEN ? EXPORT_AT_FREEZE : EXPORT_WHILE_OWNED };
	memcpy(out->record_nonce, l->nonce_base, sizeof out->record_nonce);
	describe_keys(l, &l->read, &out->client_write);
	describe_keys(l, &l->write, &out->server_write);
	if (moment == LIVE_NOW || !live_is_tls13(l))
		return 0;
	/* Law 6: this copy goes to RAgent before the KeyUpdate, so it is that of the time behind it. */
	out->write_generation++;
	out->write_sequence = 0;
	out->key_update = KEY_UPDATE_NOT_OWED;
	uint8_t *secret = out->server_write.secret;
	return key_schedule_next_secret(l->pool->schedule, l->suite, secret, secret);
}

void live_freeze(struct live *l, struct live_part *out)
{
	/* law 7: the state that can seal, and the loaded keys, go in the function that exports */
	l->frozen_state = l->state;
	live_move(l, LIVE_FROZEN);
	live_describe(l, LIVE_NOW, out);
	record_key_drop(l->pool->aead, &l->read.loaded);
	record_key_drop(l->pool->aead, &l->write.loaded);
	audit_left(AUDIT_FROZEN, l->connection.bytes, l->epoch);
}

struct live_position live_position(const struct live *l)
{
	return (struct live_position){ .read_generation = l->read.generation,
		.write_generation = l->write.generation,
		.read_sequence = l->read.sequence - l->begun_records,
		.write_sequence = l->write.sequence };
}

unsigned live_unfinished(const struct live *l)
{
	return l->begun_records;
}

bool live_has_record_nonce(const struct live *l)
{
	return cipher_suite_has_record_nonce(l->suite);
}
