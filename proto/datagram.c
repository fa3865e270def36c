/* datagram.c: seal and open one datagram. One object seals for one worker, and only with rising counters (law 1). So a
 * mistake of the caller becomes an error and not a second ciphertext for one nonce. */
#include "proto/datagram.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define NO_WORKER (-1)

struct datagram_key {
	uint64_t id;
	uint64_t next;  /* lowest counter that may be sealed */
	int32_t worker; /* of the worker that seals with this object; NO_WORKER before the first seal */
	struct aead_key *aead;
};

struct datagram_key *datagram_key_create(uint64_t key_id, enum aead aead, const uint8_t key[static AEAD_SECRET_LEN])
{
	struct datagram_key *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->id = key_id;
	k->worker = NO_WORKER;
	k->aead = aead_key_create(aead, key);
	if (!k->aead) {
		datagram_key_destroy(k);
		return NULL;
	}
	return k;
}

void datagram_key_destroy(struct datagram_key *k)
{
	if (!k)
		return;
	aead_key_destroy(k->aead);
	free(k);
}

uint64_t datagram_key_id(const struct datagram_key *k)
{
	return k->id;
}

static void nonce_write(uint8_t out[static AEAD_NONCE_LEN], const struct datagram_header *h)
{
	struct wire_writer w = wire_writer(out, AEAD_NONCE_LEN);

	wire_put_u16(&w, 0);
	wire_put_u16(&w, h->worker);
	wire_put_u64(&w, h->counter);
}

static void header_write(uint8_t out[static DATAGRAM_HEADER_LEN], const struct datagram_header *h)
{
	struct wire_writer w = wire_writer(out, DATAGRAM_HEADER_LEN);

	wire_put_u8(&w, DATAGRAM_VERSION);
	wire_put_u8(&w, 0);
	wire_put_u16(&w, h->worker);
	wire_put_u64(&w, h->key_id);
	wire_put_u64(&w, h->boot_id);
	wire_put_u64(&w, h->counter);
}

static int seal_check(const struct datagram_key *k, const struct datagram_header *h, size_t len, size_t cap)
{
	if (h->key_id != k->id)
		return CSSL_E_MISMATCH;
	if (len > DATAGRAM_PAYLOAD_MAX || cap < DATAGRAM_HEADER_LEN + len + DATAGRAM_TAG_LEN)
		return CSSL_E_TOO_LONG;
	if (h->counter > DATAGRAM_COUNTER_MAX)
		return CSSL_E_EXHAUSTED;
	/* counter and worker are the nonce: no counter twice, no other worker with this object (law 1) */
	if (h->counter < k->next || (k->worker != NO_WORKER && k->worker != h->worker))
		return CSSL_E_UNSAFE;
	return 0;
}

ptrdiff_t datagram_seal(struct datagram_key *k, const struct datagram_header *h, const uint8_t *payload, size_t len,
	uint8_t *out, size_t cap)
{
	uint8_t nonce[AEAD_NONCE_LEN];
	struct aead_message m = { nonce, out, DATAGRAM_HEADER_LEN, payload, len };
	uint8_t *sealed = out + DATAGRAM_HEADER_LEN;
	int r = seal_check(k, h, len, cap);

	if (r)
		return r;
	k->worker = h->worker;
	k->next = h->counter + 1;
	header_write(out, h);
	nonce_write(nonce, h);
	r = aead_seal(k->aead, &m, sealed, sealed + len);
	if (r)
		return r;
	return (ptrdiff_t)(DATAGRAM_HEADER_LEN + len + DATAGRAM_TAG_LEN);
}

int datagram_peek(const uint8_t *in, size_t len, struct datagram_header *out)
{
	struct wire_reader r = wire_reader(in, len);
	uint8_t version = wire_u8(&r);
	uint8_t zero = wire_u8(&r);

	if (len < DATAGRAM_HEADER_LEN + DATAGRAM_TAG_LEN)
		return CSSL_E_TRUNCATED;
	if (len > DATAGRAM_MAX)
		return CSSL_E_TOO_LONG;
	if (version != DATAGRAM_VERSION)
		return CSSL_E_VERSION;
	if (zero != 0)
		return CSSL_E_RANGE;
	out->worker = wire_u16(&r);
	out->key_id = wire_u64(&r);
	out->boot_id = wire_u64(&r);
	out->counter = wire_u64(&r);
	return out->counter > DATAGRAM_COUNTER_MAX ? CSSL_E_RANGE : 0;
}

ptrdiff_t datagram_open(struct datagram_key *k, const uint8_t *in, size_t len, uint8_t *payload, size_t cap)
{
	uint8_t nonce[AEAD_NONCE_LEN];
	struct datagram_header h;
	int r = datagram_peek(in, len, &h);

	if (r)
		return r;
	if (h.key_id != k->id)
		return CSSL_E_MISMATCH;
	size_t sealed_len = len - DATAGRAM_HEADER_LEN - DATAGRAM_TAG_LEN;
	if (sealed_len > cap)
		return CSSL_E_TOO_LONG;
	nonce_write(nonce, &h);
	struct aead_message m = { nonce, in, DATAGRAM_HEADER_LEN, in + DATAGRAM_HEADER_LEN, sealed_len };
	r = aead_open(k->aead, &m, in + len - DATAGRAM_TAG_LEN, payload);
	return r ? r : (ptrdiff_t)sealed_len;
}

/* --- replays: a ring of WINDOW_BITS bits; the counter is the index. The bits of [next - WINDOW_BITS, next) are valid.
 * A step forward clears the bits that it passes over, so nothing is shifted. --- */

#define WORD_BITS 64u
#define WORDS     (WINDOW_BITS / WORD_BITS)

static uint64_t *word_of(struct replay_window *w, uint64_t counter)
{
	return &w->bits[counter / WORD_BITS % WORDS];
}

static uint64_t bit_of(uint64_t counter)
{
	return UINT64_C(1) << counter % WORD_BITS;
}

void replay_window_init(struct replay_window *w, uint64_t first)
{
	w->next = first;
	memset(w->bits, 0xff, sizeof w->bits);
}

int replay_window_check(const struct replay_window *w, uint64_t counter)
{
	/* `next` cannot hold a successor of the last counter; no sender gets that far. */
	if (counter == UINT64_MAX)
		return CSSL_E_REPLAY;
	if (counter >= w->next)
		return 0;
	if (w->next - counter > WINDOW_BITS)
		return CSSL_E_REPLAY;
	return w->bits[counter / WORD_BITS % WORDS] & bit_of(counter) ? CSSL_E_REPLAY : 0;
}

/* Clear the bits of [from, to), word by word. */
static void window_forget(struct replay_window *w, uint64_t from, uint64_t to)
{
	if (to - from >= WINDOW_BITS) {
		memset(w->bits, 0, sizeof w->bits);
		return;
	}
	while (from < to) {
		uint64_t room = WORD_BITS - from % WORD_BITS;
		uint64_t count = to - from < room ? to - from : room;
		*word_of(w, from) &= ~(UINT64_MAX >> (WORD_BITS - count) << from % WORD_BITS);
		from += count;
	}
}

int replay_window_commit(struct replay_window *w, uint64_t counter)
{
	int r = replay_window_check(w, counter);
	if (r < 0)
		return r;
	if (counter >= w->next) {
		window_forget(w, w->next, counter + 1);
		w->next = counter + 1;
	}
	*word_of(w, counter) |= bit_of(counter);
	return 0;
}
