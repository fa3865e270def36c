/* own_x25519_pairs.c: pairs are made several at a time, which costs two thirds as much for each.
 *
 * libsodium multiplies the base point of edwards25519 in little more than half the time that it takes on curve25519,
 * where it has no table of multiples. The two curves are birationally equivalent, and the base points correspond
 * (RFC 7748 4.1), so u = (1 + y) / (1 - y) is the public key. The division is the costly part, and several numbers can
 * be inverted for the price of one and some multiplications (Montgomery's trick). It only sees public keys, so its time
 * tells nothing.
 */
#include "sslagent/tls/own_x25519_pairs.h"

#include <openssl/bn.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "net/memory/random_pool.h"
#include "net/memory/secret_heap.h"

#define KEY_LEN OWN_X25519_KEY_LEN
#define PAIRS   16u

/* Made by one thread, for this thread. */
struct stock {
	uint32_t period;                                         /* random_period() when they were made */
	unsigned left;                                           /* the first ones */
	uint8_t scalars[PAIRS][KEY_LEN], points[PAIRS][KEY_LEN]; /* private and public parts */
};

static _Thread_local struct stock *mine;
static pthread_key_t at_thread_end;

static void x25519_stock_drop(void *stock)
{
	secret_heap_free(stock);
	mine = NULL;
}

/* Before any thread begins. */
static __attribute__((constructor)) void x25519_begin(void)
{
	pthread_key_create(&at_thread_end, x25519_stock_drop);
}

/* --- from one curve to the other --- */

/* Numbers modulo 2^255 - 19. */
struct numbers {
	BN_CTX *ctx;
	BIGNUM *prime, *inverse;
	BIGNUM *over[PAIRS], *under[PAIRS], *product[PAIRS]; /* 1 + y; 1 - y; all @under up to here */
};

static bool numbers_take(struct numbers *n)
{
	n->prime = BN_CTX_get(n->ctx);
	n->inverse = BN_CTX_get(n->ctx);
	for (size_t i = 0; i < PAIRS; i++) {
		n->over[i] = BN_CTX_get(n->ctx);
		n->under[i] = BN_CTX_get(n->ctx);
		n->product[i] = BN_CTX_get(n->ctx);
	}
	return n->product[PAIRS - 1] && BN_set_bit(n->prime, 255) && BN_sub_word(n->prime, 19);
}

/* No multiple of the base point by a clamped scalar has y = 1, so nothing here is 0. */
static bool read_point(struct numbers *n, size_t i, uint8_t point[static KEY_LEN])
{
	point[KEY_LEN - 1] &= 0x7f; /* the sign of x (RFC 8032 5.1.2) */
	return BN_lebin2bn(point, KEY_LEN, n->over[i]) && BN_sub(n->under[i], n->prime, n->over[i]) &&
	       BN_add_word(n->under[i], 1) && BN_add_word(n->over[i], 1);
}

static int times(const struct numbers *n, BIGNUM *out, const BIGNUM *a, const BIGNUM *b)
{
	return BN_mod_mul(out, a, b, n->prime, n->ctx);
}

static bool invert_all(struct numbers *n)
{
	int ok = BN_copy(n->product[0], n->under[0]) != NULL;

	for (size_t i = 1; ok && i < PAIRS; i++)
		ok = times(n, n->product[i], n->product[i - 1], n->under[i]);
	return ok && BN_mod_inverse(n->inverse, n->product[PAIRS - 1], n->prime, n->ctx);
}

/* @inverse is that of product[i] before, and of product[i - 1] after. */
static bool x25519_divide(struct numbers *n, size_t i, uint8_t public[static KEY_LEN])
{
	BIGNUM *of_under = i ? n->product[i - 1] : n->inverse;

	return (i == 0 || times(n, of_under, of_under, n->inverse)) && times(n, n->over[i], n->over[i], of_under) &&
	       times(n, n->inverse, n->inverse, n->under[i]) && BN_bn2lebinpad(n->over[i], public, KEY_LEN) == KEY_LEN;
}

static bool to_montgomery(struct numbers *n, uint8_t (*points)[KEY_LEN])
{
	bool ok = numbers_take(n);

	for (size_t i = 0; ok && i < PAIRS; i++)
		ok = read_point(n, i, points[i]);
	ok = ok && invert_all(n);
	for (size_t i = PAIRS; ok && i-- > 0;)
		ok = x25519_divide(n, i, points[i]);
	return ok;
}

/* --- stock --- */

static bool x25519_stock_fill(struct stock *s)
{
	struct numbers n = { .ctx = BN_CTX_new() };
	bool ok = n.ctx != NULL;

	s->period = random_period();
	randombytes_buf(s->scalars, sizeof s->scalars);
	for (size_t i = 0; ok && i < PAIRS; i++)
		ok = crypto_scalarmult_ed25519_base(s->points[i], s->scalars[i]) == 0;
	if (ok) {
		BN_CTX_start(n.ctx);
		ok = to_montgomery(&n, s->points);
		BN_CTX_end(n.ctx);
	}
	BN_CTX_free(n.ctx);
	s->left = ok ? PAIRS : 0;
	return ok;
}

static struct stock *stock_of_thread(void)
{
	if (!mine && (mine = secret_heap_alloc(sizeof *mine))) {
		mine->left = 0;
		pthread_setspecific(at_thread_end, mine);
	}
	return mine;
}

bool own_x25519_pair(uint8_t private[static KEY_LEN], uint8_t public[static KEY_LEN])
{
	struct stock *s = stock_of_thread();

	if (!s || ((s->left == 0 || s->period != random_period()) && !x25519_stock_fill(s)))
		return false;
	s->left--;
	memcpy(private, s->scalars[s->left], KEY_LEN);
	memcpy(public, s->points[s->left], KEY_LEN);
	sodium_memzero(s->scalars[s->left], KEY_LEN);
	return true;
}
