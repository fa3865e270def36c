/* opening.c: the handshake as a small state machine over whole messages.
 *
 *   initiator   STARTING --(message 1 sent)--> AWAITING_ANSWER --(message 2 in, 3 out)--> OPEN --> TAKEN
 *   responder   AWAITING_HELLO --(message 1 in, 2 out)--> AWAITING_PROOF --(message 3 in)--> OPEN --> TAKEN
 *
 * and from each state before OPEN to FAILED, which forgets all secrets. Message bodies:
 *
 *   1: opening version (1) | key id length (1) | key id | e (32) | sealed hello     2: e (32) | sealed hello     3: tag
 * (16)
 *
 * A replayed message 1 makes the responder answer with a fresh e; without the initiator's secret no attacker can open
 * that answer or make message 3, so the replay is useless. All three messages are sealed by the handshake's own keys;
 * the transport keys are split off afterwards and have sealed nothing yet when the link begins.
 */
#include "proto/opening.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "proto/noise.h"
#include "proto/wire.h"

#define OPENING_VERSION 1u
#define PROTOCOL_NAME   "CSSL link, Noise NNpsk0, X25519 ChaChaPoly BLAKE2b"
#define LENGTH_LEN      2u
#define BODY_MAX        (OPENING_MESSAGE_MAX - LENGTH_LEN)
#define POINT_LEN       crypto_scalarmult_BYTES

_Static_assert(LENGTH_LEN + 2 + KEY_ID_MAX + POINT_LEN + LINK_HELLO_LEN_MAX + NOISE_TAG_LEN <= OPENING_MESSAGE_MAX,
	"message 1 fits");

enum opening_state { STARTING, AWAITING_ANSWER, AWAITING_HELLO, AWAITING_PROOF, OPEN, TAKEN, FAILED, STATE_COUNT };

struct opening {
	enum opening_state state;
	const struct key_ring *ring;
	unsigned key; /* of the ring */
	enum link_role expected;
	struct link_hello mine, theirs;
	enum { THEIRS_UNREAD, THEIRS_READ } reading;
	struct noise noise;
	uint8_t secret[crypto_scalarmult_SCALARBYTES]; /* ephemeral */
	struct link_keys keys;
};

/* One step: reads the complete body at @in, and writes the answer to @out. 0 or negative. */
typedef int (*opening_step_fn)(struct opening *o, struct wire_reader *in, struct wire_writer *out);

static int say_hello(struct opening *o, struct wire_reader *in, struct wire_writer *out);
static int answer_hello(struct opening *o, struct wire_reader *in, struct wire_writer *out);
static int prove_alive(struct opening *o, struct wire_reader *in, struct wire_writer *out);
static int check_proof(struct opening *o, struct wire_reader *in, struct wire_writer *out);

#define TO(state) (1u << (state))

static const struct {
	unsigned may_move_to;
	opening_step_fn step;
	enum opening_state next;
} states[STATE_COUNT] = {
	[STARTING] = { TO(AWAITING_ANSWER) | TO(FAILED), say_hello, AWAITING_ANSWER },
	[AWAITING_ANSWER] = { TO(OPEN) | TO(FAILED), prove_alive, OPEN },
	[AWAITING_HELLO] = { TO(AWAITING_PROOF) | TO(FAILED), answer_hello, AWAITING_PROOF },
	[AWAITING_PROOF] = { TO(OPEN) | TO(FAILED), check_proof, OPEN },
	[OPEN] = { TO(TAKEN), NULL, TAKEN },
	[TAKEN] = { 0, NULL, TAKEN },
	[FAILED] = { 0, NULL, FAILED },
};

static void forget_secrets(struct opening *o)
{
	noise_wipe(&o->noise);
	sodium_memzero(o->secret, sizeof o->secret);
	sodium_memzero(&o->keys, sizeof o->keys);
}

static void opening_move(struct opening *o, enum opening_state to)
{
	assert(states[o->state].may_move_to & TO(to));
	o->state = to;
	if (to == FAILED || to == TAKEN)
		forget_secrets(o);
}

/* Start the transcript: the protocol, its version and the key both sides use. */
static void opening_begin(struct opening *o)
{
	const char *id = o->ring->keys[o->key].id;
	uint8_t psk[NOISE_KEY_LEN];

	noise_init(&o->noise, PROTOCOL_NAME);
	noise_mix_hash(&o->noise, (const uint8_t[]){ OPENING_VERSION, (uint8_t)strlen(id) }, 2);
	noise_mix_hash(&o->noise, (const uint8_t *)id, strlen(id));
	key_ring_subkey(o->ring, o->key, SUBKEY_OPENING, psk, sizeof psk);
	noise_mix_psk(&o->noise, psk);
	sodium_memzero(psk, sizeof psk);
}

/* "e": with a PSK, the ephemeral key also goes into the chaining key (Noise 9.2). */
static void mix_point(struct opening *o, const uint8_t point[static POINT_LEN])
{
	noise_mix_hash(&o->noise, point, POINT_LEN);
	noise_mix_key(&o->noise, point, POINT_LEN);
}

static void say_point(struct opening *o, struct wire_writer *out)
{
	uint8_t point[POINT_LEN];

	randombytes_buf(o->secret, sizeof o->secret);
	crypto_scalarmult_base(point, o->secret);
	wire_put_bytes(out, point, sizeof point);
	mix_point(o, point);
}

/* "ee". libsodium refuses an all-zero result (RFC 7748 6.1). */
static int mix_shared(struct opening *o, const uint8_t point[static POINT_LEN])
{
	uint8_t shared[crypto_scalarmult_BYTES];
	int refused = crypto_scalarmult(shared, o->secret, point);

	if (!refused)
		noise_mix_key(&o->noise, shared, sizeof shared);
	sodium_memzero(shared, sizeof shared);
	return refused ? CSSL_E_AUTH : 0;
}

static int say_mine(struct opening *o, struct wire_writer *out)
{
	uint8_t plain[LINK_HELLO_LEN_MAX], sealed[LINK_HELLO_LEN_MAX + NOISE_TAG_LEN];
	ptrdiff_t len = link_hello_write(&o->mine, plain);

	if (len < 0)
		return (int)len;
	noise_seal(&o->noise, plain, (size_t)len, sealed);
	wire_put_bytes(out, sealed, (size_t)len + NOISE_TAG_LEN);
	sodium_memzero(plain, sizeof plain);
	return 0;
}

/* Take the other side's hello out of the rest of the message, and agree. */
static int read_theirs(struct opening *o, struct wire_reader *in)
{
	uint8_t plain[BODY_MAX];
	size_t len = wire_left(in);
	const uint8_t *sealed = wire_bytes(in, len);
	int r = sealed ? noise_open(&o->noise, sealed, len, plain) : CSSL_E_TRUNCATED;

	if (!r)
		r = link_hello_read(plain, len - NOISE_TAG_LEN, &o->theirs);
	sodium_memzero(plain, sizeof plain);
	if (r)
		return r;
	o->reading = THEIRS_READ;
	o->keys.protection = o->mine.protection;
	o->keys.aead = aead_agree(o->mine.aead, o->theirs.aead);
	return link_hello_match(&o->mine, &o->theirs, o->expected, &o->keys.version);
}

static void split(struct opening *o, uint8_t *initiator, uint8_t *responder)
{
	memcpy(o->keys.transcript, o->noise.hash, sizeof o->keys.transcript);
	noise_split(&o->noise, initiator, responder);
	noise_wipe(&o->noise);
	sodium_memzero(o->secret, sizeof o->secret);
}

/* Initiator, message 1 out. */
static int say_hello(struct opening *o, struct wire_reader *in, struct wire_writer *out)
{
	const char *id = o->ring->keys[o->key].id;

	opening_begin(o);
	wire_put_u8(out, OPENING_VERSION);
	wire_put_u8(out, (uint8_t)strlen(id));
	wire_put_bytes(out, id, strlen(id));
	say_point(o, out);
	return say_mine(o, out);
}

/* Responder: which key does message 1 name? */
static int read_key(struct opening *o, struct wire_reader *in)
{
	uint8_t version = wire_u8(in);
	uint8_t id_len = wire_u8(in);
	const uint8_t *id = wire_bytes(in, id_len);

	if (!id)
		return CSSL_E_TRUNCATED;
	if (version != OPENING_VERSION)
		return CSSL_E_VERSION;
	int index = key_ring_find(o->ring, (const char *)id, id_len);
	if (index < 0)
		return index;
	o->key = (unsigned)index;
	return 0;
}

/* Responder, message 1 in and 2 out. */
static int answer_hello(struct opening *o, struct wire_reader *in, struct wire_writer *out)
{
	int r = read_key(o, in);
	const uint8_t *point = wire_bytes(in, POINT_LEN);

	if (r)
		return r;
	if (!point)
		return CSSL_E_TRUNCATED;
	opening_begin(o);
	mix_point(o, point);
	r = read_theirs(o, in);
	if (r)
		return r;
	/* The thread that accepts connections answers for all workers of the process. */
	if (o->theirs.target_worker >= o->mine.workers)
		return CSSL_E_MISMATCH;
	o->mine.worker = o->theirs.target_worker;
	say_point(o, out);
	r = mix_shared(o, point);
	return r ? r : say_mine(o, out);
}

/* Initiator, message 2 in and 3 out. */
static int prove_alive(struct opening *o, struct wire_reader *in, struct wire_writer *out)
{
	const uint8_t *point = wire_bytes(in, POINT_LEN);
	uint8_t proof[NOISE_TAG_LEN];

	if (!point)
		return CSSL_E_TRUNCATED;
	mix_point(o, point);
	int r = mix_shared(o, point);
	if (!r)
		r = read_theirs(o, in);
	if (r)
		return r;
	noise_seal(&o->noise, NULL, 0, proof);
	wire_put_bytes(out, proof, sizeof proof);
	split(o, o->keys.send, o->keys.receive);
	return 0;
}

/* Responder, message 3 in. */
static int check_proof(struct opening *o, struct wire_reader *in, struct wire_writer *out)
{
	const uint8_t *proof = wire_bytes(in, NOISE_TAG_LEN);
	uint8_t nothing[1];
	int r = wire_reader_end(in);

	if (!r)
		r = noise_open(&o->noise, proof, NOISE_TAG_LEN, nothing);
	if (r)
		return r;
	split(o, o->keys.receive, o->keys.send);
	return 0;
}

/* The body of the message at the head of @in. 0, OPENING_MORE or negative. */
static int next_message(const uint8_t *in, size_t len, struct wire_reader *body)
{
	struct wire_reader r = wire_reader(in, len);
	size_t body_len = wire_u16(&r);

	if (body_len > BODY_MAX)
		return CSSL_E_TOO_LONG;
	*body = wire_sub(&r, body_len);
	return body->at ? 0 : OPENING_MORE;
}

/* Run the state's step on @body. The answer goes to @out, after its length. 0 or negative. */
static int run_step(struct opening *o, struct wire_reader *body, uint8_t *out, size_t *out_len)
{
	struct wire_writer answer = wire_writer(out + LENGTH_LEN, BODY_MAX);
	int r = states[o->state].step(o, body, &answer);
	ptrdiff_t len = wire_writer_len(&answer);

	if (r)
		return r;
	if (len < 0)
		return (int)len;
	if (len > 0) {
		wire_store_u16(out, (uint16_t)len);
		*out_len = LENGTH_LEN + (size_t)len;
	}
	return 0;
}

int opening_step(struct opening *o, const uint8_t *in, size_t len, size_t *taken,
	uint8_t out[static OPENING_MESSAGE_MAX], size_t *out_len)
{
	struct wire_reader body = wire_reader(NULL, 0);
	int result = 0;

	*taken = 0;
	*out_len = 0;
	if (!states[o->state].step)
		return CSSL_E_STATE;
	if (o->state != STARTING) {
		result = next_message(in, len, &body);
		if (result == OPENING_MORE)
			return OPENING_MORE;
		*taken = result ? 0 : LENGTH_LEN + wire_left(&body);
	}
	if (!result)
		result = run_step(o, &body, out, out_len);
	opening_move(o, result ? FAILED : states[o->state].next);
	if (result)
		return result;
	return o->state == OPEN ? OPENING_DONE : OPENING_MORE;
}

static struct opening *opening_make(const struct key_ring *ring, const struct link_hello *mine, enum link_role peer)
{
	struct opening *o = OPENSSL_zalloc(sizeof *o);

	if (!o)
		return NULL;
	o->ring = ring;
	o->mine = *mine;
	o->expected = peer;
	return o;
}

struct opening *opening_start(
	const struct key_ring *ring, unsigned key, const struct link_hello *mine, enum link_role peer)
{
	struct opening *o = opening_make(ring, mine, peer);

	assert(key < ring->count);
	if (!o)
		return NULL;
	o->state = STARTING;
	o->key = key;
	/* Message 1 is sealed under the PSK alone: an attacker who learns the PSK later could read it. */
	sodium_memzero(o->mine.id_check_key, sizeof o->mine.id_check_key);
	return o;
}

struct opening *opening_answer(const struct key_ring *ring, const struct link_hello *mine, enum link_role peer)
{
	struct opening *o = opening_make(ring, mine, peer);

	if (!o)
		return NULL;
	o->state = AWAITING_HELLO;
	if (mine->role != LINK_ROLE_AGENT || peer != LINK_ROLE_RAGENT)
		sodium_memzero(o->mine.id_check_key, sizeof o->mine.id_check_key);
	return o;
}

void opening_destroy(struct opening *o)
{
	if (o)
		OPENSSL_clear_free(o, sizeof *o);
}

const struct link_hello *opening_peer(const struct opening *o)
{
	return o->reading == THEIRS_READ ? &o->theirs : NULL;
}

int opening_result(struct opening *o, struct link_keys *out)
{
	if (o->state != OPEN)
		return CSSL_E_STATE;
	*out = o->keys;
	opening_move(o, TAKEN);
	return 0;
}
