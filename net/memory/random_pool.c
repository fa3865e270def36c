/* random_pool.c: implements random_pool.h. Bytes are handed out from the end of the pool. */
#include "net/memory/random_pool.h"

#include <pthread.h>
#include <sodium.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "net/memory/secret.h"
#include "proto/error.h"

#define POOL_LEN    512u
#define PERIOD_S    10
#define REQUEST_MAX 64u /* larger ones are worth a call of the kernel */

struct pool {
	uint32_t period;
	uint32_t left; /* zero also in a process that was forked: the kernel has wiped the pool */
	uint8_t bytes[POOL_LEN];
};

static pthread_key_t at_thread_end;
static _Thread_local struct pool *mine;

static void fetch(void *out, size_t len)
{
	randombytes_sysrandom_implementation.buf(out, len);
}

static void pool_drop(void *pool)
{
	mine = NULL;
	secret_free(pool, sizeof(struct pool));
}

/* NULL: there can be none. */
static struct pool *pool_make(void)
{
	struct pool *p = secret_alloc(sizeof *p);

	if (!p)
		return NULL;
	if (madvise(p, sizeof *p, MADV_WIPEONFORK) < 0 || pthread_setspecific(at_thread_end, p) != 0) {
		secret_free(p, sizeof *p);
		return NULL;
	}
	mine = p;
	return p;
}

static void pool_take(struct pool *p, void *out, size_t len)
{
	const uint32_t period = random_period();

	if (p->left < len || p->period != period) {
		fetch(p->bytes, sizeof p->bytes);
		p->period = period;
		p->left = sizeof p->bytes;
	}
	p->left -= (uint32_t)len;
	memcpy(out, p->bytes + p->left, len);
	sodium_memzero(p->bytes + p->left, len);
}

/* By the machine's clock, which goes on while a copy of it lies on a disk. */
uint32_t random_period(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (uint32_t)(t.tv_sec / PERIOD_S);
}

/* --- what libsodium calls --- */

static const char *on_name(void)
{
	return "cssl";
}

static void on_buf(void *const out, const size_t len)
{
	struct pool *p = len > REQUEST_MAX ? NULL : mine ? mine : pool_make();

	if (p)
		pool_take(p, out, len);
	else
		fetch(out, len);
}

static uint32_t on_random(void)
{
	uint32_t r;

	on_buf(&r, sizeof r);
	return r;
}

static void on_stir(void)
{
	randombytes_sysrandom_implementation.stir();
}

int random_pool_begin(void)
{
	static randombytes_implementation pooled = {
		.implementation_name = on_name, .random = on_random, .stir = on_stir, .buf = on_buf
	};

	if (pthread_key_create(&at_thread_end, pool_drop) != 0 || randombytes_set_implementation(&pooled) != 0)
		return CSSL_E_STATE;
	return 0;
}
